/* nlconv's importer for the json format: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(json_importer)
