/* Decodes a log of any format in pieces of any size. decoding.h describes how an input begins. */
#include "decoding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= FUZZ_CHOICES)
        fuzz_check_decoding(data, data + FUZZ_CHOICES, size - FUZZ_CHOICES);
    return 0;
}
