#include "config.h"

#include "diag/time_units.h"

#include "stat/text_key.h"

#include <glib.h>
#include <string.h>

enum { UNITS = 5, PROGRAMS_MAX = 4096, RECORDS_MIN = 20 };

static const int64_t units_ns[UNITS] = {60 * NL_NS_PER_SECOND, NL_NS_PER_SECOND, NL_NS_PER_SECOND / 10,
                                        NL_NS_PER_SECOND / 100, NL_NS_PER_SECOND / 1000};

/* Minimum part of a program's times that are multiples of its unit. */
#define MULTIPLES_MIN 0.99

/* The number of a program's records, and for each unit, the number of records whose times are multiples of the unit. */
typedef struct program_times {
    uint64_t count, multiples[UNITS];
} program_times;

struct time_units {
    GHashTable *programs; /* maps a program (nl_string) to its program_times */
};

time_units *time_units_new(void)
{
    time_units *t = g_new(time_units, 1);
    t->programs = g_hash_table_new_full(text_key_hash, text_key_equal, g_free, g_free);
    return t;
}

void time_units_free(time_units *t)
{
    g_hash_table_destroy(t->programs);
    g_free(t);
}

void time_units_add(time_units *t, const nl_record *record)
{
    program_times *of = g_hash_table_lookup(t->programs, &record->prog);
    if (of == NULL) {
        if (g_hash_table_size(t->programs) == PROGRAMS_MAX)
            return;
        of = g_new0(program_times, 1);
        g_hash_table_insert(t->programs, text_key_new(record->prog), of);
    }
    of->count++;
    for (size_t i = UNITS; i-- > 0 && record->time_ns % units_ns[i] == 0;) /* each unit is a multiple of the next */
        of->multiples[i]++;
}

double time_units_find(const time_units *t, const char *program)
{
    const nl_string name = {program, strlen(program)};
    const program_times *of = g_hash_table_lookup(t->programs, &name);
    for (size_t i = 0; i < UNITS && of != NULL && of->count >= RECORDS_MIN; i++)
        if ((double)of->multiples[i] >= MULTIPLES_MIN * (double)of->count)
            return (double)units_ns[i];
    return 0;
}
