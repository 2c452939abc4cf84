/* Reports of nldiag, on standard output or in a file. */
#ifndef NLDIAG_REPORT_H
#define NLDIAG_REPORT_H

#include "diag/findings.h"

/* The sources on the command line, for the proposed commands. */
typedef struct report_sources {
    char *const *names;
    int count;
    const char *config; /* NULL: none */
} report_sources;

/* Returns what the verdict does not cover because of limits, as a sentence; NULL if it covers everything. */
const char *report_limits(const observed *o);

void report_text(const findings *f, const report_sources *sources);
void report_json(const findings *f, const report_sources *sources);

/* Writes a self-contained page, with pictures if nlv is installed. Returns false on failure. */
bool report_html(const findings *f, const report_sources *sources, const char *path);

/* Returns the command that shows a cause in nlv, with corrected times if nldiag corrected them. */
const char *report_view(const findings *f, const finding *cause, const report_sources *sources);

/* Returns whether a clock was measured to be wrong. */
bool report_has_wrong_clocks(const observed *o);

/* Compares two logs: the time of objects, and the legs and resources that changed most. */
void report_changes(const observed *before, const observed *after);

#endif
