/* nlconv's importer for the otlp-proto format, which also reads the requests that netlogd receives: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(otlp_proto_importer)
