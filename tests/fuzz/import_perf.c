/* nlconv's importer of perf: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(perf_importer)
