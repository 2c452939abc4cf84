/* nlconv's importer for the multiline format: see importing.h. */
#include "config.h"

#include "importing.h"

/*
 * Skips inputs for which the records depend on where the input is cut. Blocks contain NULs, and must not be cut. The
 * decoder ignores a byte-order mark only at the beginning of a piece.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (memchr(data, '\0', size) == NULL && memmem(data, size, mark, strlen(mark)) == NULL)
        fuzz_check_import(&multiline_importer, data, size);
    return 0;
}
