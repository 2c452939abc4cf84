/*
 * The gRPC session of OTLP. The frames after the preface may contain anything, and may be divided in any way. A request
 * is never larger than its limit, memory is in proportion to the bytes, and the session sends nothing after its end.
 */
#include "otlp_grpc.c" /* NOLINT: the fuzz target includes the module */

#include "otlp_feeding.h"

enum { HELD_MAX = SESSION_SIZE + (16 << 10) };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"; /* with empty SETTINGS */
    nl_buffer in = {0};
    nl_buffer_append(&in, preface, sizeof preface - 1);
    nl_buffer_append(&in, data, size);
    for (size_t step = 1; step < 2 * in.size; step = step == 1 ? 23 : step == 23 ? in.size : 2 * in.size) {
        otlp_client c = fuzz_feed_session(&otlp_grpc, (const uint8_t *)in.data, in.size, step, HELD_MAX);
        nl_buffer_free(&c.log);
    }
    nl_buffer_free(&in);
    return 0;
}
