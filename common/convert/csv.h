/* Definitions that the CSV reader and the CSV writer share. */
#ifndef NETLOGGER_CONVERT_CSV_H
#define NETLOGGER_CONVERT_CSV_H

#include "convert/convert.h"

#include <stdlib.h>

enum { CSV_COLUMN_LIMIT = 16384 };

/* The name of the column that has the order of a record's fields. */
#define CSV_ORDER "#order"

#endif
