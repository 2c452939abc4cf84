/*
 * nlkernel trace finds requests in HTTP/2 connections, whose frames any program may send. The input is a series of
 * events. The bits of an event's first byte are: 1: the process receives (otherwise, it sends); 2: it is the client; 4:
 * it is the server; 8: bytes are missing before the event; 16: the event belongs to the second connection. The second
 * and third bytes are the size of the data, which follow.
 */
#include "config.h"

#include "fuzz.h"

#include "trace/exchanges.h"

enum { RECEIVES = 1, ROLE_SHIFT = 1, ROLE_MASK = 3, GAP = 8, CONNECTION = 16, HEAD_SIZE = 3 };

static bool is_name(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return length < size;
}

static void take_span(void *user, span *s)
{
    (void)user;
    fuzz_expect(s->protocol == &protocol_http2, "the protocol is known");
    fuzz_expect(is_name(s->request.verb, sizeof s->request.verb), "a method is a name");
    fuzz_expect(is_name(s->request.object, sizeof s->request.object), "a path is a name");
    fuzz_expect(strpbrk(s->request.object, "?#;") == NULL, "a path has no query");
    fuzz_expect(*s->request.object == '\0' || *s->request.object == '/', "a path begins with a slash");
    fuzz_expect(*s->request.verb != '\0' || s->has_unknown, "a method is known, or unknown");
    fuzz_expect(strspn(s->reply.grpc_status, "0123456789") == strlen(s->reply.grpc_status), "a status is a number");
    fuzz_expect(s->end_ns >= s->begin_ns, "a span has a duration");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    exchanges *x = exchanges_new(take_span, NULL, NULL);
    uint64_t now_ns = 1000000000;
    while (size >= HEAD_SIZE) {
        size_t length = ((size_t)data[1] << 8 | data[2]) % (TRACE_CAPTURE_MAX + 1);
        struct trace_event e = {.kind = (data[0] & RECEIVES) != 0 ? TRACE_RECEIVE : TRACE_SEND,
                                .role = data[0] >> ROLE_SHIFT & ROLE_MASK,
                                .http2 = (data[0] & GAP) != 0 ? TRACE_FRAMES_AFTER_GAP : TRACE_FRAMES,
                                .socket = data[0] & CONNECTION,
                                .family = 2,
                                .pid = 1,
                                .tid = 1,
                                .size = 1,
                                .begin_ns = now_ns,
                                .end_ns = now_ns + 1};
        data += HEAD_SIZE;
        size -= HEAD_SIZE;
        length = length < size ? length : size;
        e.captured = (__u16)length;
        memcpy(e.data, data, length);
        exchanges_put(x, &e);
        data += length;
        size -= length;
        exchanges_advance(x, (int64_t)(now_ns += 1000000));
    }
    exchanges_finish(x, (int64_t)now_ns);
    fuzz_expect(exchanges_counts(x)->spans >= exchanges_counts(x)->requests, "requests are spans");
    exchanges_free(x);
    return 0;
}
