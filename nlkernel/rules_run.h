/*
 * A rules file at work: records of a log into its rules, and what these make, with the records themselves, into its
 * reports; and, when that is wanted, into a log of its own. One thread.
 */
#ifndef NLKERNEL_RULES_RUN_H
#define NLKERNEL_RULES_RUN_H

#include "program/program.h"
#include "summary.h"
#include "transport/writer.h"
#include "synthesis/synthesis.h"

typedef struct rules_run {
    rules_file file;
    nl_synthesis *rules;
    summaries summaries;
    nl_writer *output;           /* of what is made; NULL */
    const char *tag, *tag_value; /* a field that every record gets; NULL */
    nl_record *tagged;
    struct kallsyms *symbols; /* of this kernel, now; NULL */
    bool failed;
} rules_run;

/* parameters as nl_synthesis_read has them; output: a path for what is made, or NULL. False with the reason. */
bool rules_run_open(rules_run *run, const char *name, const char *const *parameters, const char *output);

/* The logs are of this very kernel: its addresses have names. */
void rules_run_is_here(rules_run *run);

/* Takes one record. */
void rules_run_take(rules_run *run, const nl_record *record);

/* Reads a log. Returns an exit status, having said what was wrong. */
int rules_run_read(rules_run *run, program_reading *reading, const char *log);

/* The log that follows is of another time: what waits is made now. */
void rules_run_between(rules_run *run);

/* All logs were read: computes the reports. False with the reason when the output could not be written. */
bool rules_run_finish(rules_run *run);
void rules_run_close(rules_run *run);

#endif
