/*
 * The HTTP/1.1 session of OTLP: bytes give the same requests and responses however they are divided, and a request is
 * never larger than its limit.
 */
#include "fuzz.h"

#include "otlp_http1.c" /* NOLINT: the fuzz target includes the module */

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
static otlp_client fuzz_feed_session(const uint8_t *data, size_t size, size_t step)
{
    otlp_client c = {0};
    http1 h = {.base = {.kind = &otlp_http1, .client = &c}};
    otlp_session *s = &h.base;
    for (size_t at = 0; at < size && !c.ended;) {
        if (s->busy) {
            otlp_http1.settled(s);
        } else if (s->more) {
            otlp_http1.feed(s, "", 0);
        } else {
            size_t piece = size - at < step ? size - at : step;
            char *copy = fuzz_copy(data + at, piece);
            otlp_http1.feed(s, copy, piece);
            free(copy);
            at += piece;
        }
    }
    while ((s->busy || s->more) && !c.ended)
        s->busy ? otlp_http1.settled(s) : otlp_http1.feed(s, "", 0);
    fuzz_expect(otlp_http1.held(s) <= 4 * size + HEAD_MAX, "memory is in proportion to the bytes");
    otlp_http1.close(s);
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    otlp_client whole = fuzz_feed_session(data, size, size), bytes = fuzz_feed_session(data, size, 1);
    fuzz_expect(whole.ended == bytes.ended, "the connection ends however the bytes are divided");
    fuzz_expect(whole.log.size == bytes.log.size &&
                    (whole.log.size == 0 || memcmp(whole.log.data, bytes.log.data, whole.log.size) == 0),
                "so are the requests and responses the same");
    nl_buffer_free(&whole.log);
    nl_buffer_free(&bytes.log);
    return 0;
}
