/*
 * What of the calls is wanted, for a picture and for a report alike: functions of some source files, those that were
 * called often enough, the most called ones. One thread.
 */
#ifndef NLKERNEL_CALL_VIEW_H
#define NLKERNEL_CALL_VIEW_H

#include "calls_read.h"
#include "symbol_map.h"

typedef struct call_view {
    program_reading reading;
    const char *symbols;   /* a map, or a vmlinux; NULL: looked for where files are chosen */
    const char *filepaths; /* folders and files with commas between; NULL: all */
    uint64_t min_count;
    size_t top;  /* 0: all */
    bool chains; /* callers count as much as what is called: calls_in_order */

    calls calls;
    symbol_map map;
    bool *shown;     /* by function */
    uint32_t *order; /* the shown ones, most calls first */
    size_t count;    /* of them */
} call_view;

/* The rows about a call_view of zeros, of which top may be set before. */
extern const nl_option call_view_rows[];

/* The groups of a command whose settings hold a call_view named view. */
#define CALL_VIEW_GROUPS(settings)                                                                                     \
    {"Which functions", call_view_rows, offsetof(settings, view)},                                                     \
    {                                                                                                                  \
        "Reading", program_reading_options, offsetof(settings, view.reading)                                           \
    }

/* Reads the sources and chooses. Returns an exit status, having said what went wrong. */
int call_view_read(call_view *v, char **names, size_t count);

/* The file that a function is in, "" when it is not known; *more are others that have a function of that name. */
const char *call_view_file(const call_view *v, uint32_t function, size_t *more);

/* What there is, and what of it is shown, as a sentence; to be freed. */
char *call_view_summary(const call_view *v);

void call_view_free(call_view *v);

#endif
