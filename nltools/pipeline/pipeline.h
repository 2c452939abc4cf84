/*
 * One pass over the input of a conversion. The main thread cuts the input into chunks of whole records. Several threads
 * convert the chunks, and the main thread writes the results in the order of the input.
 */
#ifndef NLCONV_PIPELINE_H
#define NLCONV_PIPELINE_H

#include "convert/convert.h"
#include "convert/output.h"

typedef struct pass {
    char **sources; /* read in this order; several sources are the files of an archive */
    size_t source_count;
    const char *copy;          /* copy of a single source that can be read only once; NULL: no copy */
    bool is_first;             /* another pass follows, which reports the problems of the input */
    const importer_kind *from; /* NULL: the pass detects the format and sets this member */
    const exporter_kind *to;
    void *export_shared;
    program_reading *reading; /* receives reports of malformed input */
    const nl_filter *where;
    bool strict; /* stop at the first malformed input */
    import_about about;
    output *out; /* NULL: no output; the exporter only learns */
    unsigned threads;
    /* Results: */
    bool undated;     /* the origin of the timestamps is unknown */
    uint64_t records; /* number of converted records */
    uint64_t losses[LOSS_COUNT];
    bool stopped;   /* malformed input stopped the pass */
    bool failed;    /* the exporter has failed to learn or write */
    bool unwritten; /* the output is incomplete because of a failure, or empty because there were no records */
} pass;

/* Runs a pass. If reading or writing fails, reports the problem and returns false. After a read failure, the output
 * contains the records before the failure. */
bool pass_run(pass *p);

/* Returns whether the input is a directory in a foreign format. */
bool pass_reads_directory(const pass *p);

#endif
