/* nlconv's importer for the xml format: see importing.h. */
#include "importing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_check_import(&xml_importer, data, size);
    return 0;
}
