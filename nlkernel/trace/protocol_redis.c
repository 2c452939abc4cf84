/* Redis's serialization protocol, RESP (https://redis.io/docs/reference/protocol-spec). */
#include "config.h"

#include "trace/protocol.h"

#include <ctype.h>
#include <string.h>

/* Reads a number before "\r\n". Returns the start of the next line, or NULL if there is no number. */
static const char *read_number(const char *at, const char *end, int64_t *number)
{
    bool negative = at < end && *at == '-';
    at += negative;
    int64_t value = 0;
    const char *first = at;
    while (at < end && isdigit((unsigned char)*at) && at - first < 15)
        value = value * 10 + (*at++ - '0');
    *number = negative ? -value : value;
    return at > first && end - at >= 2 && at[0] == '\r' && at[1] == '\n' ? at + 2 : NULL;
}

/* Returns the end of an array of strings. Returns NULL if the bytes are not an array of strings, or if the array ends
 * beyond the captured bytes. */
static const char *skip_command(const char *at, const char *end)
{
    int64_t count, length;
    if (at >= end || *at != '*' || (at = read_number(at + 1, end, &count)) == NULL)
        return NULL;
    for (; count > 0; count--) {
        if (at >= end || *at != '$' || (at = read_number(at + 1, end, &length)) == NULL || length < 0 ||
            end - at < length + 2)
            return NULL;
        at += length + 2;
    }
    return at;
}

static bool read_redis_request(const protocol_bytes *bytes, protocol_request *request)
{
    const char *end = bytes->data + bytes->captured, *at = bytes->data;
    int64_t count, length;
    if (at >= end || *at != '*' || (at = read_number(at + 1, end, &count)) == NULL || count < 1 || at >= end ||
        *at != '$' || (at = read_number(at + 1, end, &length)) == NULL || length < 1 || length >= PROTOCOL_VERB_SIZE ||
        end - at < length)
        return false;
    for (int64_t i = 0; i < length; i++) {
        if (!isalpha((unsigned char)at[i]) && at[i] != '.' && at[i] != '_')
            return false;
        request->verb[i] = (char)toupper((unsigned char)at[i]);
    }
    const char *next = skip_command(bytes->data, end);
    request->several = next == NULL || next < end || bytes->captured < bytes->size;
    return true;
}

static protocol_progress read_redis_reply(const protocol_bytes *bytes, const protocol_request *request,
                                          protocol_reply *reply)
{
    const char *end = bytes->data + bytes->captured;
    int64_t length;
    if (reply->counted) {
        reply->left -= reply->left < bytes->size ? reply->left : bytes->size;
        return reply->left == 0 ? PROTOCOL_COMPLETE : PROTOCOL_MORE;
    }
    if (bytes->captured == 0 || reply->begun)
        return PROTOCOL_UNKNOWN;
    reply->begun = true;
    if (*bytes->data == '-') { /* the status is the first word, such as WRONGTYPE; the rest may contain values */
        size_t word = 1;
        while (word < bytes->captured && isupper((unsigned char)bytes->data[word]))
            word++;
        protocol_copy_name(reply->status, sizeof reply->status, bytes->data + 1, word - 1);
        reply->failed = true;
    }
    if (request->several)
        return PROTOCOL_UNKNOWN;
    if (memchr("+-:,#_(", *bytes->data, 7) != NULL)
        return bytes->captured == bytes->size && bytes->captured > 2 && end[-1] == '\n' ? PROTOCOL_COMPLETE
                                                                                        : PROTOCOL_UNKNOWN;
    const char *body = *bytes->data == '$' ? read_number(bytes->data + 1, end, &length) : NULL;
    if (body == NULL)
        return PROTOCOL_UNKNOWN;
    uint64_t total = (uint64_t)(body - bytes->data) + (length < 0 ? 0 : (uint64_t)length + 2);
    reply->counted = true;
    reply->left = total > bytes->size ? total - bytes->size : 0;
    return reply->left == 0 ? PROTOCOL_COMPLETE : PROTOCOL_MORE;
}

const protocol protocol_redis = {"redis", "OBJECT", false, read_redis_request, read_redis_reply, NULL};
