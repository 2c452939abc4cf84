/*
 * The values of records' fields, by column: one value for each request and one for each visit, NAN if it has none.
 *
 * A column holds numbers, or numbers of texts. A field with too many different texts names things and explains nothing;
 * its column is closed. IDs, results (durations, status) and threads are no columns. One thread at a time.
 */
#ifndef NLDIAG_COLUMNS_H
#define NLDIAG_COLUMNS_H

#include <glib.h>
#include <math.h>
#include <netlogger.h>
#include <stdbool.h>

enum { COLUMNS_MAX = 48, COLUMN_TEXTS_MAX = 256 };

typedef struct column {
    char *name;
    bool closed;         /* ignored */
    bool has_text;       /* values are indices of texts */
    bool has_number;     /* values are numbers; a column of both is closed */
    GHashTable *numbers; /* nl_string to index + 1 */
    GPtrArray *texts;
    uint32_t at_begin;               /* requests whose first event, or first span, has the field */
    GArray *of_requests, *of_visits; /* float; may be shorter than the tables: the rest is NAN */
    GArray *since;                   /* of of_requests: from which time of the request on, in ns; NAN: always */
} column;

typedef struct columns {
    column all[COLUMNS_MAX];
    uint32_t count;
    GHashTable *by_name; /* nl_string to index + 1; COLUMNS_MAX + 1: no column */
} columns;

typedef struct column_value {
    uint32_t column;
    float value;
} column_value;

columns *columns_new(void);
void columns_free(columns *c);

/* Makes fields with these names, ended by NULL, no columns. */
void columns_exclude(columns *c, const char *const *names);

/* Converts a field. Returns false if it is in no column. */
bool columns_read(columns *c, const nl_field *field, column_value *value);

/* Returns the column of a name, new if necessary, or NULL. The column has the values of requests only. */
column *columns_add(columns *c, const char *name);

/* Returns the number of a text in a column; closes the column if it has too many. */
float column_number(column *c, nl_string text);

/* Sets the value at an index of of_requests or of_visits, unless it has one. */
void column_set(GArray *values, size_t index, float value);

/* Returns the value at an index, or NAN. */
static inline float column_get(const GArray *values, size_t index)
{
    return index < values->len ? g_array_index(values, float, index) : (float)NAN;
}

/* Returns the text of a value, for g_free. */
char *column_text(const column *c, float value);

#endif
