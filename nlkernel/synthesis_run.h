/*
 * A schema at work: records of a log into its rules, and what these make, with the records themselves, into its
 * reports; and, when that is wanted, into a log of its own. One thread.
 */
#ifndef NLKERNEL_SYNTHESIS_RUN_H
#define NLKERNEL_SYNTHESIS_RUN_H

#include "program/program.h"
#include "summary.h"
#include "transport/writer.h"
#include "synthesis/synthesis.h"

typedef struct schema_run {
    schema schema;
    nl_synthesis *rules;
    summaries summaries;
    nl_writer *output;           /* of what is made; NULL */
    const char *tag, *tag_value; /* a field that every record gets; NULL */
    nl_record *tagged;
    struct kallsyms *symbols; /* of this kernel, now; NULL */
    bool failed;
} schema_run;

/* parameters as nl_synthesis_read has them; output: a path for what is made, or NULL. False with the reason. */
bool schema_run_open(schema_run *run, const char *name, const char *const *parameters, const char *output);

/* The logs are of this very kernel: its addresses have names. */
void schema_run_is_here(schema_run *run);

/* Takes one record. */
void schema_run_take(schema_run *run, const nl_record *record);

/* Reads a log. Returns an exit status, having said what was wrong. */
int schema_run_read(schema_run *run, program_reading *reading, const char *log);

/* The log that follows is of another time: what waits is made now. */
void schema_run_between(schema_run *run);

/* All logs were read: computes the reports. False with the reason when the output could not be written. */
bool schema_run_finish(schema_run *run);
void schema_run_close(schema_run *run);

#endif
