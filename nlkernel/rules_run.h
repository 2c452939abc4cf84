/* Evaluates a rules file: passes records to the rules, and passes these records and the derived records to the reports.
 * On request, writes the derived records to a log. Not thread-safe. */
#ifndef NLKERNEL_RULES_RUN_H
#define NLKERNEL_RULES_RUN_H

#include "log_input.h"
#include "summary.h"
#include "transport/writer.h"
#include "synthesis/synthesis.h"

typedef struct rules_run {
    rules_file file;
    nl_synthesis *synthesis;
    summaries summaries;
    uint64_t taken;
    nl_writer *output;           /* for derived records, or NULL */
    const char *tag, *tag_value; /* name and value of a field to add to every record, or NULL */
    nl_record *tagged;
    struct kallsyms *symbols; /* symbols of the running kernel, or NULL */
    bool failed;              /* writing output failed */
} rules_run;

/* Reads the rules. `output` is the path for derived records, or NULL. Returns false and sets the error on failure. */
bool rules_run_open(rules_run *run, const char *name, const rules_parameters *parameters, const char *output);

/* Reads the symbols of the running kernel if the rules replace addresses with names. On failure, the addresses remain.
 * Call this function only if this kernel produced the records. */
void rules_run_read_symbols(rules_run *run);

/* Adds a record. `user` is the rules_run. */
void rules_run_take(void *user, const nl_record *record);

/* Ends a recording: derives the records that depend on its end, so that the next recording begins without open
 * spans. */
void rules_run_end_recording(rules_run *run);

/* Ends the last recording and computes the reports. Returns false and sets the error if writing output has failed. */
bool rules_run_finish(rules_run *run);
void rules_run_close(rules_run *run);

#endif
