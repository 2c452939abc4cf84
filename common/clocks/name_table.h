/*
 * A table of names, which are numbered from 0 in the order in which they are added. {0} is an empty table. A name ends
 * at its first NUL. If memory runs out, the program ends. Only one thread at a time may change a table; any number of
 * threads may call name_table_find.
 */
#ifndef NETLOGGER_TIMEKEEPING_NAME_TABLE_H
#define NETLOGGER_TIMEKEEPING_NAME_TABLE_H

#include <netlogger.h>

typedef struct name_table {
    char **texts; /* indexed by number; owned by the table */
    size_t count;
    uint32_t *slots; /* numbers plus 1; 0 in unused slots */
    size_t slot_count;
    uint64_t seed; /* seed of the hashes */
} name_table;

#define NAME_NONE SIZE_MAX

/* Returns the number of a name, or NAME_NONE. */
size_t name_table_find(const name_table *n, nl_string name);

/* Returns the number of a non-empty name. Adds the name if it is new. */
size_t name_table_add(name_table *n, nl_string name);

/* Empties the table and frees its memory. */
void name_table_free(name_table *n);

#endif
