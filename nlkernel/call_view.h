/* Selects the functions to show in a report or picture: by source file, minimum number of calls, and rank by number of
 * calls. Not thread-safe. */
#ifndef NLKERNEL_CALL_VIEW_H
#define NLKERNEL_CALL_VIEW_H

#include "calls.h"
#include "log_input.h"
#include "symbol_map.h"

typedef struct call_view {
    const char *symbols;   /* path of a map or vmlinux; NULL: nlkernel searches for a vmlinux if filepaths is set */
    const char *filepaths; /* directories and files, separated by commas; NULL: all */
    uint64_t min_count;
    size_t top;  /* maximum number of functions; 0: all */
    bool chains; /* see calls_in_order */

    calls calls;
    symbol_map map;
    uint32_t *order; /* the functions to show, in descending order of calls */
    size_t count;    /* number of functions in order */
} call_view;

/* The option rows for a call_view. Set `top` to its default before parsing. */
extern const nl_option call_view_rows[];

/* The option groups of a command whose settings contain a call_view called view and a log_input called input. */
#define CALL_VIEW_GROUPS(settings)                                                                                     \
    {"Selecting functions", call_view_rows, offsetof(settings, view)}, LOG_INPUT_GROUPS(settings)

/* The description of the sources in --help. */
#define CALLS_SOURCES                                                                                                  \
    "A SOURCE can be: a log written by nlkernel record --functions, in any format; a trace.dat file from trace-cmd; "  \
    "text from ftrace's trace file or from trace-cmd report; or output of perf script. Each may be compressed with "   \
    "zstd or gzip. Without SOURCE, read standard input"

/* Reads the sources (standard input if `count` is 0), selects the functions and finishes `input`. Returns an exit
 * status. */
int call_view_read(call_view *v, log_input *input, char **names, size_t count);

/* Returns the path of a function's source file, or "" if the path is unknown. If `more` is not NULL, sets *more to the
 * number of other files that contain a function with this name. */
const char *call_view_file(const call_view *v, uint32_t function, size_t *more);

/* Returns a sentence with the numbers of calls and functions. The caller frees it. */
char *call_view_summary(const call_view *v);

void call_view_free(call_view *v);

#endif
