/* nlconv's importer of strace: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(strace_importer)
