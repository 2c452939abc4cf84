/* nlconv's importer for syslog messages: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(syslog_importer)
