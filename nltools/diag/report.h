/* What nldiag says, on standard output or into a file. */
#ifndef NLDIAG_REPORT_H
#define NLDIAG_REPORT_H

#include "diag/findings.h"

/* sources are as they were given, count of them: for the commands that are proposed. */
typedef struct report_sources {
    char *const *names;
    int count;
    const char *config; /* NULL when there is none */
} report_sources;

/* What the verdict does not cover because of memory limits, as a sentence for g_free; NULL if it covers everything. */
char *report_limits(const observed *o);

void report_text(const findings *f, const report_sources *sources);
void report_json(const findings *f, const report_sources *sources);

/* A page that needs nothing else, with a picture by nlv where that runs. Returns false on failure. */
bool report_html(const findings *f, const report_sources *sources, const char *path);

/* The command that shows a cause in nlv: the caller's to free. Times are corrected there, too, where they are here. */
char *report_view(const findings *f, const finding *cause, const report_sources *sources);

/* Whether a clock was measured to be off. */
bool report_has_wrong_clocks(const observed *o);

/* What changed from one log to another: objects' time, and which legs and resources it is due to. */
void report_changes(const observed *before, const observed *after);

#endif
