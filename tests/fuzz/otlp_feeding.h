/*
 * Feeds bytes to a session of OTLP, in place of otlp_client.c and otlp_export.c, and notes the requests and responses.
 * A target includes the session's file before this header.
 */
#ifndef NETLOGGER_TESTS_OTLP_FEEDING_H
#define NETLOGGER_TESTS_OTLP_FEEDING_H

#include "fuzz.h"

#include "base/memory.h"

/* A session may hold SESSION_HELD_FACTOR bytes for each received byte, and a constant, which the target names. */
enum { SESSION_HELD_FACTOR = 4 };

/* ---- the client and the export, which note what the session does ---- */

struct otlp_client {
    nl_buffer log;
    bool ended;
};

otlp_result otlp_client_export(otlp_client *c, const otlp_request *request, nl_string body)
{
    char text[80];
    int size =
        snprintf(text, sizeof text, "\n%d %d %d %zu ", request->signal, request->coding, request->json, body.size);
    fuzz_expect(!c->ended, "a session that ended exports nothing");
    fuzz_expect(body.size <= OTLP_BODY_MAX, "a request is within its limit");
    nl_buffer_append(&c->log, text, (size_t)size);
    nl_buffer_append(&c->log, body.data, body.size);
    bool good = body.size % 3 != 0;
    return (otlp_result){.code = good ? OTLP_OK : OTLP_INVALID, .accepted = body.size % 3 == 1};
}

void otlp_client_await(otlp_client *c)
{
    nl_buffer_append(&c->log, "\nawait", 6);
}

void otlp_client_send(otlp_client *c, nl_string bytes)
{
    fuzz_expect(!c->ended, "a session that ended sends nothing");
    nl_buffer_append(&c->log, bytes.data, bytes.size);
}

void otlp_client_end(otlp_client *c)
{
    c->ended = true;
}

bool otlp_client_is_late(const otlp_client *c, int64_t since_ns)
{
    (void)c, (void)since_ns;
    return false;
}

bool otlp_client_is_too_much(const otlp_client *c, size_t more)
{
    (void)c, (void)more;
    return false;
}

void otlp_put_response(const otlp_request *request, const otlp_result *result, nl_buffer *out)
{
    (void)request;
    if (result->message != NULL)
        nl_buffer_append(out, result->message, strlen(result->message));
}

/* ---- feeding ---- */

/* Feeds the data in pieces of `step` bytes, as otlp_client.c does. */
static inline otlp_client fuzz_feed_session(const otlp_session_kind *kind, const uint8_t *data, size_t size,
                                            size_t step, size_t held_max)
{
    otlp_client c = {0};
    otlp_session *s = nl_memory_check(calloc(1, kind->size));
    *s = (otlp_session){.kind = kind, .client = &c};
    for (size_t at = 0; at < size && !c.ended;) {
        if (s->busy && (!kind->reads_while_busy || at % 3 == 0)) {
            kind->settled(s);
        } else if (s->more && !s->busy) {
            kind->feed(s, "", 0);
        } else {
            size_t piece = size - at < step ? size - at : step;
            char *copy = fuzz_copy(data + at, piece);
            kind->feed(s, copy, piece);
            free(copy);
            at += piece;
        }
    }
    while ((s->busy || s->more) && !c.ended)
        s->busy ? kind->settled(s) : kind->feed(s, "", 0);
    fuzz_expect(kind->held(s) <= SESSION_HELD_FACTOR * size + held_max, "memory is in proportion to the bytes");
    kind->close(s);
    free(s);
    return c;
}

#endif
