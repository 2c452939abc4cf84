/* Reads one line of ULM. Each record that is read can be written and read again. */
#include "text_round_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_check_line(NL_FORMAT_ULM, data, size);
    return 0;
}
