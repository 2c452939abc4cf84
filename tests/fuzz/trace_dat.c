/* Reads a trace.dat file of trace-cmd. For any bytes, the numbers of calls add up. */
#include "fuzz.h"

#include "trace_dat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    calls c = {0};
    char *copy = fuzz_copy(data, size);
    if (trace_dat_detect(copy, size) && !trace_dat_read(&c, NULL, copy, size))
        fuzz_expect(*nl_error_message() != '\0', "what can't be read has a reason");
    free(copy);
    calls_finish(&c);
    uint64_t total = 0;
    for (size_t i = 0; i < c.function_count; i++)
        total += c.functions[i].calls;
    fuzz_expect(total == c.total, "each call is one of a function");
    for (size_t i = 0; i < c.edge_count; i++)
        fuzz_expect(c.edges[i].caller < c.function_count && c.edges[i].function < c.function_count, "edges have ends");
    calls_free(&c);
    return 0;
}
