/* nlconv's importer of otlp: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(otlp_importer)
