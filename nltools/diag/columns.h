/*
 * The values of records' fields in columns. A column has one value for each request and one for each visit; NAN: no
 * value.
 *
 * The values of a column are numbers, or indices of texts. A field with too many different texts explains nothing, so
 * the module closes its column. A float cannot represent every large number exactly. Up to COLUMN_TEXTS_MAX different
 * large numbers therefore each have their own float, which is near the number. IDs, results (durations, status) and
 * threads have no columns. Not thread-safe.
 */
#ifndef NLDIAG_COLUMNS_H
#define NLDIAG_COLUMNS_H

#include <glib.h>
#include <math.h>
#include <netlogger.h>
#include <stdbool.h>

enum { COLUMNS_MAX = 48, COLUMN_TEXTS_MAX = 256, WORD_SIZE = 24 };

typedef struct column {
    char *name;
    bool closed;                     /* the column is ignored */
    bool is_path;                    /* values are paths or URLs, without queries and numbers (path_of_url) */
    bool has_text;                   /* values are indices in texts */
    bool has_number;                 /* values are numbers; a column with both kinds is closed */
    GHashTable *numbers;             /* maps a text (nl_string) to 1 plus its index in texts */
    GPtrArray *texts;                /* char *: the values, or the texts of large numbers */
    GArray *large;                   /* float: for each large number in texts, the value that represents it */
    uint32_t at_begin;               /* number of requests whose first event or first span has the field */
    uint64_t starts, others;         /* numbers of values in start records of spans, and in other records */
    GArray *of_requests, *of_visits; /* elements are float; if shorter than the tables of requests and visits, the
                                        remaining values are NAN */
    GArray *since; /* for each value in of_requests, the nanoseconds from the request's start to the record with the
                      value; NAN: always valid */
} column;

typedef struct columns {
    column all[COLUMNS_MAX];
    uint32_t count;
    GHashTable *by_name; /* maps a field's name (nl_string) to 1 plus the index of its column, or to COLUMNS_MAX + 1 for
                            a field without a column */
} columns;

typedef struct column_value {
    uint32_t column;
    float value;
} column_value;

columns *columns_new(void);
void columns_free(columns *c);

/* Excludes fields with these names from the columns. The list is NULL-terminated. */
void columns_exclude(columns *c, const char *const *names);

/* Converts a field to a value, and adds the field's column if necessary. Returns false if the column is closed, or if
 * the field can have no column. */
bool columns_read(columns *c, const nl_field *field, column_value *value);

/* Adds a column and returns it. Returns NULL if there are too many columns. The column has values only for requests. */
column *columns_add(columns *c, const char *name);

/* Returns the value of a text in a column: its index in `texts`. Closes the column if it has too many texts. */
float column_number(column *c, nl_string text);

/* Sets the value at `index` of a column's of_requests or of_visits, unless the value is already set. */
void column_set(GArray *values, size_t index, float value);

static inline float column_get(const GArray *values, size_t index)
{
    return index < values->len ? g_array_index(values, float, index) : (float)NAN;
}

/*
 * Copies the next word of a name to `word`, in lower case, and returns the position after the word. A word ends before
 * a character that is not a letter, and before an upper-case letter that follows a lower-case letter. At the end of the
 * name, `word` is empty.
 */
const char *column_next_word(const char *name, char word[WORD_SIZE]);

bool column_word_is_among(const char *word, const char *const *words, size_t count);
#define IS_AMONG(word, words) column_word_is_among(word, words, G_N_ELEMENTS(words))

/* Return whether the name of a column means the server of a call, or a host, respectively. */
bool column_names_server(const column *c);
bool column_names_host(const column *c);

/* Returns the text of a value. The caller frees it with g_free. */
char *column_text(const column *c, float value);

#endif
