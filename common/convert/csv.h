/* What CSV's reader and writer share. */
#ifndef NETLOGGER_CONVERT_CSV_H
#define NETLOGGER_CONVERT_CSV_H

#include "convert/convert.h"

#include <stdlib.h>

enum { CSV_COLUMN_LIMIT = 16384 };

/* The column that says in which order a record's fields come. */
#define CSV_ORDER "#order"

#endif
