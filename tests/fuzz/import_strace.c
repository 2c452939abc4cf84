/* nlconv's importer for the strace format: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(strace_importer)
