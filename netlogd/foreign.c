#include "config.h"

#include "foreign.h"

#include "transport/peer.h"

#include <stdbool.h>
#include <string.h>

#define ANSWER_BODY "This is a NetLogger collector. It does not support HTTP.\n"

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* Recognizes the methods that browsers and common clients send, including the blank that follows. */
static foreign_kind recognise_method(const char *data, size_t size)
{
    static const char *const methods[] = {"GET ",    "POST ",  "PUT ",   "HEAD ",  "OPTIONS ",
                                          "DELETE ", "PATCH ", "TRACE ", "PRI * ", "CONNECT "};
    foreign_kind kind = FOREIGN_NONE;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        size_t length = strlen(methods[i]);
        if (memcmp(data, methods[i], size < length ? size : length) != 0)
            continue;
        if (size >= length)
            return FOREIGN_HTTP;
        kind = FOREIGN_PERHAPS;
    }
    return kind;
}

/* Returns whether the first line is METHOD TARGET HTTP/1.x. */
static bool is_request_line(const char *data, size_t size)
{
    static const char version[] = " HTTP/1.";
    const char *newline = memchr(data, '\n', size);
    size_t length = newline != NULL ? (size_t)(newline - data) : 0, method = 0;
    if (length > 0 && data[length - 1] == '\r')
        length--;
    while (method < length && is_upper(data[method]))
        method++;
    size_t end = sizeof version; /* length of "HTTP/1." and the last digit, which takes the place of the NUL */
    return method > 0 && length > method + end && data[method] == ' ' &&
           memcmp(data + length - end, version, end - 1) == 0;
}

foreign_kind foreign_recognise(const char *data, size_t size)
{
    static const char hello[] = {0x16, 0x03};
    if (size == 0)
        return FOREIGN_PERHAPS;
    if (memcmp(data, hello, size < sizeof hello ? size : sizeof hello) == 0)
        return size < sizeof hello ? FOREIGN_PERHAPS : FOREIGN_TLS;
    foreign_kind kind = recognise_method(data, size);
    return kind == FOREIGN_NONE && is_request_line(data, size) ? FOREIGN_HTTP : kind;
}

const char *foreign_answer(foreign_kind kind, size_t *size)
{
    static const char http[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 57\r\n"
                               "Connection: close\r\n\r\n" ANSWER_BODY;
    static const char alert[] = {0x15, 0x03, 0x01, 0x00, 0x02, 0x02, NL_PEER_ALERT_PLAIN}; /* a fatal alert */
    _Static_assert(sizeof ANSWER_BODY - 1 == 57, "Content-Length");
    *size = kind == FOREIGN_TLS ? sizeof alert : sizeof http - 1;
    return kind == FOREIGN_TLS ? alert : http;
}

const char *foreign_reason(foreign_kind kind)
{
    return kind == FOREIGN_TLS
               ? "closed: the client uses TLS, but this port does not; listen on an x-netlogs URL for TLS"
               : "closed: the client sent HTTP";
}
