/*
 * Names by numbers, from 0 in the order in which they come; {0} is empty. What is behind a NUL in one does not count.
 * Aborts when there is no memory. One thread at a time.
 */
#ifndef NETLOGGER_TIMEKEEPING_NAME_TABLE_H
#define NETLOGGER_TIMEKEEPING_NAME_TABLE_H

#include <netlogger.h>

typedef struct name_table {
    char **texts; /* by number; the table's own */
    size_t count;
    uint32_t *slots; /* number and one; 0: empty */
    size_t slot_count;
} name_table;

#define NAME_NONE SIZE_MAX

/* The name's number; NAME_NONE when it is not there, as the empty one never is. */
size_t name_table_find(const name_table *n, nl_string name);

/* The number of a name, not empty, that is added when it is not there. */
size_t name_table_add(name_table *n, nl_string name);

/* Frees what it holds; it is empty again. */
void name_table_free(name_table *n);

#endif
