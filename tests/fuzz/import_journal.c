/* nlconv's importer of journal: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(journal_importer)
