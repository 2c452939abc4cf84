/* Names by numbers, from 0 in the order in which they come. */
#ifndef NETLOGGER_TIMEKEEPING_NAME_TABLE_H
#define NETLOGGER_TIMEKEEPING_NAME_TABLE_H

#include <netlogger.h>

typedef struct name_table {
    char **texts;
    size_t count;
    uint32_t *slots; /* number and one; 0: empty */
    size_t slot_count;
} name_table;

#define NAME_NONE SIZE_MAX

/* The name's number; NAME_NONE when it is not there. */
size_t name_table_find(const name_table *n, nl_string name);

/* The same; it is added. */
size_t name_table_add(name_table *n, nl_string name);

void name_table_free(name_table *n);

#endif
