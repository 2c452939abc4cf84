/* nlconv's importer for the otlp format: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(otlp_importer)
