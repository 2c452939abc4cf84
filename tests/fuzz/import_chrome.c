/* nlconv's importer of chrome: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(chrome_importer)
