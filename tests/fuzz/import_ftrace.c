/* nlconv's importer of ftrace: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(ftrace_importer)
