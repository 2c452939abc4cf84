/*
 * One pass over an input: it is cut into chunks, several threads convert them, and what they made is put together in
 * the input's order.
 */
#ifndef NLCONV_PIPELINE_H
#define NLCONV_PIPELINE_H

#include "convert/convert.h"
#include "convert/output.h"

typedef struct pass {
    char **sources; /* of the input, one after another: several are an archive's files */
    size_t source_count;
    const char *read_from;     /* where a single one is really read; NULL: there */
    bool is_first;             /* another follows, which reports what can't be read */
    const importer_kind *from; /* NULL at first: told by the content */
    const exporter_kind *to;
    void *export_shared;
    program_reading *reading; /* malformed input is reported to it */
    const nl_filter *where;
    bool strict;
    import_about about;
    bool undated; /* there were times that nobody knows what they count from */
    output *out;  /* NULL when the exporter's kind learns */
    unsigned threads;
    uint64_t records; /* converted */
    uint64_t losses[LOSS_COUNT];
    bool stopped;   /* by malformed input, as strict has it */
    bool unwritten; /* the output is not what it should be */
} pass;

/* False, after having said why, when reading or writing failed; what was read until then is in the output. */
bool pass_run(pass *p);

/* Whether its format is one of folders. */
bool pass_reads_folder(const pass *p);

#endif
