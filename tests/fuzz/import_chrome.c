/* nlconv's importer for the chrome format: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(chrome_importer)
