/* nlconv's importer for the journal format: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(journal_importer)
