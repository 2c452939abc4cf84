/* nlconv's importer for the perf format: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(perf_importer)
