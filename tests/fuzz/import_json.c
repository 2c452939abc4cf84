/* nlconv's importer of json: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(json_importer)
