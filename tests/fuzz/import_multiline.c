/* nlconv's importer for the multiline format: see importing.h. */
#include "importing.h"

/* The format has no blocks; the importer ignores this, and finds blocks that are whole in a piece. Blocks contain NULs.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (memchr(data, '\0', size) == NULL)
        fuzz_check_import(&multiline_importer, data, size);
    return 0;
}
