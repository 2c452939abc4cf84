/* nlconv's importer of csv: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(csv_importer)
