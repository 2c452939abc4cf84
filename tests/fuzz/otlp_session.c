/*
 * The HTTP/1.1 session of OTLP. A session makes the same requests and responses from bytes however the bytes are
 * divided. A request is never larger than its limit.
 */
#include "otlp_http1.c" /* NOLINT: the fuzz target includes the module */

#include "otlp_feeding.h"

enum { HELD_MAX = 16 << 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    otlp_client whole = fuzz_feed_session(&otlp_http1, data, size, size, HELD_MAX),
                bytes = fuzz_feed_session(&otlp_http1, data, size, 1, HELD_MAX);
    fuzz_expect(whole.ended == bytes.ended, "the connection ends however the bytes are divided");
    fuzz_expect(whole.log.size == bytes.log.size &&
                    (whole.log.size == 0 || memcmp(whole.log.data, bytes.log.data, whole.log.size) == 0),
                "so are the requests and responses the same");
    nl_buffer_free(&whole.log);
    nl_buffer_free(&bytes.log);
    return 0;
}
