/* nlconv's importer for the ftrace format: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(ftrace_importer)
