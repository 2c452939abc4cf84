/* HTTP/1.0 and HTTP/1.1 (RFC 9112), and the traceparent header (W3C Trace Context). */
#include "config.h"

#include "trace/protocol.h"

#include <netlogger.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *find_line_end(const char *at, const char *end)
{
    return at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
}

/* Returns the length of the method that begins the data, or 0. */
static size_t find_method(const protocol_bytes *bytes)
{
    static const char *const methods[] = {"GET",   "POST",    "PUT",   "DELETE",   "HEAD",      "OPTIONS",
                                          "PATCH", "CONNECT", "TRACE", "PROPFIND", "PROPPATCH", "MKCOL"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        size_t length = strlen(methods[i]);
        if (bytes->captured > length && bytes->data[length] == ' ' && memcmp(bytes->data, methods[i], length) == 0)
            return length;
    }
    return 0;
}

void protocol_copy_path(protocol_request *request, const char *target, size_t length)
{
    if (length == 0)
        return;
    /* skip the part before the path, which may contain a password */
    const char *scheme = memmem(target, length, "://", 3);
    if (*target != '/' && scheme != NULL) {
        const char *host = scheme + 3, *end = target + length;
        while (host < end && *host != '/')
            host++;
        length = (size_t)(end - host);
        target = host;
    } else if (*target != '/') {
        return;
    }
    size_t path = 0;
    while (path < length && strchr("?#;", target[path]) == NULL)
        path++;
    protocol_copy_name(request->object, sizeof request->object, target, path);
}

/* Returns the value of a header line with this name, or NULL. */
static const char *match_header(const char *line, const char *end, const char *name)
{
    size_t length = strlen(name);
    if ((size_t)(end - line) <= length || strncasecmp(line, name, length) != 0 || line[length] != ':')
        return NULL;
    line += length + 1;
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    return line;
}

void protocol_read_traceparent(protocol_request *request, const char *value, size_t length)
{
    enum { TRACE = 3, PARENT = 36 };
    nl_context context;
    while (length > 0 && isspace((unsigned char)value[length - 1]))
        length--;
    if (nl_traceparent_parse(value, length, &context) != NL_OK)
        return;
    memcpy(request->trace_id, value + TRACE, sizeof request->trace_id - 1);
    memcpy(request->parent_id, value + PARENT, sizeof request->parent_id - 1);
}

static bool read_http_request(const protocol_bytes *bytes, protocol_request *request)
{
    size_t method = find_method(bytes);
    if (method == 0)
        return false;
    const char *end = bytes->data + bytes->captured, *target = bytes->data + method + 1,
               *line_end = find_line_end(target, end), *target_end = target;
    while (target_end < end && *target_end != ' ' && *target_end != '\r' && *target_end != '\n')
        target_end++;
    /* require the version after the target, unless the target is longer than the captured bytes */
    if (target == target_end || (target_end < end && (end - target_end < 6 || memcmp(target_end, " HTTP/", 6) != 0)))
        return false;
    protocol_copy_name(request->verb, sizeof request->verb, bytes->data, method);
    protocol_copy_path(request, target, (size_t)(target_end - target));
    while (line_end != NULL) {
        const char *line = line_end + 1, *value;
        line_end = find_line_end(line, end);
        if (line < end && (*line == '\r' || *line == '\n'))
            break;
        if (line_end != NULL && (value = match_header(line, line_end, "traceparent")) != NULL)
            protocol_read_traceparent(request, value, (size_t)(line_end - value));
    }
    return true;
}

static protocol_progress count_body(const protocol_bytes *bytes, protocol_reply *reply)
{
    if (reply->counted) {
        reply->left -= reply->left < bytes->size ? reply->left : bytes->size;
        return reply->left == 0 ? PROTOCOL_COMPLETE : PROTOCOL_MORE;
    }
    if (!reply->chunked)
        return PROTOCOL_UNKNOWN;
    const char *tail = bytes->tail_size > 0 ? bytes->tail : bytes->data + bytes->captured;
    size_t size = bytes->tail_size;
    if (size == 0 && bytes->captured == bytes->size)
        tail -= size = bytes->captured;
    if (size == 0)
        return PROTOCOL_UNKNOWN;
    return size >= 5 && memcmp(tail + size - 5, "0\r\n\r\n", 5) == 0 ? PROTOCOL_COMPLETE : PROTOCOL_MORE;
}

/* Reads the headers of a reply. Returns the start of the body, or NULL if the captured bytes do not contain the end of
 * the headers. */
static const char *read_reply_head(const protocol_bytes *bytes, protocol_reply *reply)
{
    const char *end = bytes->data + bytes->captured, *line = bytes->data, *line_end, *value;
    while ((line_end = find_line_end(line, end)) != NULL) {
        if (*line == '\n' || (*line == '\r' && line[1] == '\n'))
            return line_end + 1;
        if ((value = match_header(line, line_end, "Content-Length")) != NULL && isdigit((unsigned char)*value)) {
            reply->left = strtoull(value, NULL, 10); /* strtoull stops at the end of the line at the latest */
            reply->counted = true;
        } else if ((value = match_header(line, line_end, "Transfer-Encoding")) != NULL) {
            reply->chunked = strncasecmp(value, "chunked", 7) == 0;
        }
        line = line_end + 1;
    }
    return NULL;
}

static protocol_progress read_http_reply(const protocol_bytes *bytes, const protocol_request *request,
                                         protocol_reply *reply)
{
    enum { STATUS = 9, STATUS_LENGTH = 3 };
    if (reply->begun)
        return count_body(bytes, reply);
    if (bytes->captured < STATUS + STATUS_LENGTH || memcmp(bytes->data, "HTTP/1.", 7) != 0)
        return PROTOCOL_UNKNOWN;
    const char *status = bytes->data + STATUS;
    if (*status == '1' && memcmp(status, "101", 3) != 0)
        return PROTOCOL_INTERIM;
    reply->begun = true;
    protocol_copy_name(reply->status, sizeof reply->status, status, STATUS_LENGTH);
    reply->failed = *status == '5';
    const char *body = read_reply_head(bytes, reply);
    if (strcmp(request->verb, "HEAD") == 0 || memcmp(status, "204", 3) == 0 || memcmp(status, "304", 3) == 0) {
        reply->counted = true;
        reply->left = 0;
    }
    if (body == NULL) {
        reply->counted = reply->chunked = false;
        return PROTOCOL_UNKNOWN;
    }
    if (reply->chunked)
        reply->counted = false;
    if (reply->counted) {
        uint64_t head = (uint64_t)(body - bytes->data);
        reply->left -= reply->left < bytes->size - head ? reply->left : bytes->size - head;
        return reply->left == 0 ? PROTOCOL_COMPLETE : PROTOCOL_MORE;
    }
    return count_body(bytes, reply);
}

const protocol protocol_http = {"http", "PATH", false, read_http_request, read_http_reply, NULL};

const protocol protocol_http2 = {"http2", "PATH", false, NULL, NULL, NULL};
