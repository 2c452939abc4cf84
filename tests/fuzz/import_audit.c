/* nlconv's importer for the audit format: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(audit_importer)
