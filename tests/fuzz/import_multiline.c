/* nlconv's importer for the multiline format: see importing.h. */
#include "importing.h"

/*
 * Skips inputs that may contain blocks of the binary format, which contain NULs. The importer reads a block only if a
 * piece contains the whole block, so the result would depend on the pieces. Logs of this format have no blocks.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (memchr(data, '\0', size) == NULL)
        fuzz_check_import(&multiline_importer, data, size);
    return 0;
}
