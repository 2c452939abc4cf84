/* nlconv's importer of xml: see importing.h. */
#include "importing.h"

FUZZ_IMPORTER(xml_importer)
