/*
 * Finds the verb and the name of a table or function in SQL statements, for nlkernel trace. The module skips strings,
 * numbers and comments, because they contain values. The module has no state.
 */
#ifndef NLKERNEL_TRACE_SQL_H
#define NLKERNEL_TRACE_SQL_H

#include "trace/protocol.h"

/* In MySQL, ` quotes names, " can also quote strings, and $ cannot quote strings. */
typedef enum sql_dialect { SQL_POSTGRESQL, SQL_MYSQL } sql_dialect;

/*
 * Finds the verb of a statement, and the table after a keyword such as FROM, INTO or UPDATE. If there is no table,
 * finds the first function. The text may end anywhere.
 */
void sql_read_statement(protocol_request *request, const char *text, size_t size, sql_dialect dialect);

#endif
