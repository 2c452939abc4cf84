/* nlconv's importer for the csv format: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(csv_importer)
