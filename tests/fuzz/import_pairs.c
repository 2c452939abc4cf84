/* nlconv's importer for the pairs format: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(pairs_importer)
