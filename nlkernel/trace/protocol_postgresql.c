/* PostgreSQL's protocol, version 3 (PostgreSQL documentation, "Frontend/Backend Protocol"). */
#include "config.h"

#include "trace/protocol.h"
#include "trace/sql.h"

#include <stdio.h>
#include <string.h>

enum { HEAD_SIZE = 5, MESSAGE_SIZE_MAX = 1 << 30, VERSION_3 = 3 << 16 };

static uint32_t read_length(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static bool read_start(const protocol_bytes *bytes, protocol_request *request)
{
    if (bytes->captured < 8 || bytes->data[0] != 0 || read_length(bytes->data) != bytes->size)
        return false;
    uint32_t code = read_length(bytes->data + 4);
    if (code != VERSION_3 && code >> 16 != 1234) /* 1234: cancellation, or a request for encryption */
        return false;
    snprintf(request->verb, sizeof request->verb, "%s", code == VERSION_3 ? "startup" : "negotiate");
    return true;
}

/* Returns the position after the first NUL, or `end`. A Parse message consists of name, NUL, statement, NUL. */
static const char *skip_name(const char *at, const char *end)
{
    const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
    return nul != NULL ? nul + 1 : end;
}

static bool read_postgresql_request(const protocol_bytes *bytes, protocol_request *request)
{
    if (read_start(bytes, request))
        return true;
    if (bytes->captured < HEAD_SIZE || strchr("QPBCDEFSHXdcfp", *bytes->data) == NULL || *bytes->data == '\0')
        return false;
    uint32_t length = read_length(bytes->data + 1);
    if (length < 4 || length > MESSAGE_SIZE_MAX || (*bytes->data == 'Q' && length + 1 != bytes->size))
        return false;
    const char *text = bytes->data + HEAD_SIZE, *end = bytes->data + bytes->captured;
    if ((uint64_t)length + 1 < bytes->captured)
        end = bytes->data + length + 1;
    if (*bytes->data == 'P')
        text = skip_name(text, end);
    if (*bytes->data == 'Q' || *bytes->data == 'P')
        sql_read_statement(request, text, (size_t)(end - text), SQL_POSTGRESQL);
    else
        snprintf(request->verb, sizeof request->verb, "%s",
                 *bytes->data == 'p'                          ? "authenticate"
                 : *bytes->data == 'B' || *bytes->data == 'E' ? "execute"
                 : *bytes->data == 'd' || *bytes->data == 'c' ? "copy"
                 : *bytes->data == 'X'                        ? "terminate"
                                                              : "protocol");
    request->silent = *bytes->data == 'X';
    return true;
}

/* Reads the fields of an error. Each field consists of a type, a text and NUL. The status is the field of type C, the
 * SQLSTATE code. Unlike the error's message, the code contains no data of the query. */
static void read_error(protocol_reply *reply, const char *at, const char *end)
{
    while (at < end && *at != '\0') {
        const char *next = skip_name(at, end);
        if (*at == 'C')
            protocol_copy_name(reply->status, sizeof reply->status, at + 1, (size_t)(next - at - 1));
        at = next;
    }
    reply->failed = true;
}

static protocol_progress read_postgresql_reply(const protocol_bytes *bytes, const protocol_request *request,
                                               protocol_reply *reply)
{
    enum { READY_SIZE = 6 };
    static const char ready[] = {'Z', 0, 0, 0, 5};
    (void)request;
    const char *at = bytes->data, *end = at + bytes->captured;
    while (!reply->begun && end - at >= HEAD_SIZE) {
        uint32_t length = read_length(at + 1);
        const char *next = length >= 4 && length <= (size_t)(end - at) - 1 ? at + 1 + length : end;
        if (*at == 'E')
            read_error(reply, at + HEAD_SIZE, next);
        at = next;
    }
    reply->begun = true;
    const char *tail = bytes->tail_size > 0 ? bytes->tail : bytes->data;
    size_t size = bytes->tail_size > 0 ? bytes->tail_size : bytes->captured;
    if (bytes->tail_size == 0 && bytes->captured < bytes->size)
        return PROTOCOL_UNKNOWN;
    return size >= READY_SIZE && memcmp(tail + size - READY_SIZE, ready, sizeof ready) == 0 ? PROTOCOL_COMPLETE
                                                                                            : PROTOCOL_MORE;
}

const protocol protocol_postgresql = {"postgresql",          "OBJECT", true, read_postgresql_request,
                                      read_postgresql_reply, NULL};
