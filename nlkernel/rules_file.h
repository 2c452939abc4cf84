/*
 * A rules file defines the events to record, the records to derive from them, and the reports.
 *
 * A rules file consists of sections (synthesis/sections.h). [rules] contains the title, and [event SYSTEM:EVENT] names
 * events to record. [report NAME] describes a report (summary.h). [kernel NAME] (kernel_sum.h) and [workload NAME]
 * (workload.c) request measurements. The other sections are rules of synthesis (doc/synthesis.md). Not thread-safe.
 */
#ifndef NLKERNEL_RULES_FILE_H
#define NLKERNEL_RULES_FILE_H

#include "options.h"
#include "synthesis/sections.h"

/* The values of --set. Initially all zero. The caller frees `list`. */
typedef struct rules_parameters {
    const char **list; /* "NAME=VALUE"; NULL-terminated; NULL: no parameters */
    size_t count;
} rules_parameters;

/* The option row of --set, for a rules_parameters. */
extern const nl_option rules_parameter_options[];

/* The row of the environment variable that names directories of rules files. */
extern const nl_option rules_environment_options[];

typedef struct rules_file {
    char *name, *path;
    const char *title;
    nl_sections sections;
    char **patterns; /* patterns of the events to record; a leading "?" marks events that the kernel may lack */
    size_t pattern_count;
    char *filter; /* filter for the events to record; NULL: all events */
} rules_file;

/*
 * Reads a rules file. If `name` contains a /, it is a path. Otherwise, the function searches the directories of
 * $NETLOGGER_RULES, then the directory of the build, and then the installed directory. Returns false and sets the error
 * on failure.
 */
bool rules_file_read(rules_file *file, const char *name, const rules_parameters *parameters);
void rules_file_free(rules_file *file);

/* Adds the file's events and filter to `o`, which borrows the texts. Returns false and sets the error on failure. */
bool rules_file_add_events(const rules_file *file, recording_options *o);

/* Calls `visit` with the name of each rules file, in alphabetical order. */
void rules_file_each(void (*visit)(const char *name, void *user), void *user);

#endif
