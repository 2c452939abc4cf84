/*
 * One pass over the input of a conversion. The main thread cuts the input into chunks of whole records, several threads
 * convert the chunks, and the main thread writes the results in the order of the input.
 */
#ifndef NLCONV_PIPELINE_H
#define NLCONV_PIPELINE_H

#include "convert/convert.h"
#include "convert/output.h"

typedef struct pass {
    char **sources; /* read in this order; several sources are the files of an archive */
    size_t source_count;
    const char *copy;          /* copy of a single source that can be read only once; NULL: none */
    bool is_first;             /* another pass follows, which will report problems of the input */
    const importer_kind *from; /* NULL: the pass detects the format and sets this member */
    const exporter_kind *to;
    void *export_shared;
    program_reading *reading; /* receives the reports of malformed input */
    const nl_filter *where;
    bool strict; /* stop at the first malformed input */
    import_about about;
    output *out; /* NULL: the pass writes nothing, and the exporter only learns */
    unsigned threads;
    /* results */
    bool undated;     /* the origin of the timestamps is unknown */
    uint64_t records; /* number of converted records */
    uint64_t losses[LOSS_COUNT];
    bool stopped;   /* malformed input stopped the pass */
    bool failed;    /* writing or learning failed */
    bool unwritten; /* nothing was written, because of a failure or because there were no records */
} pass;

/*
 * Runs a pass. Returns false after reporting that reading or writing failed; the output has the records that were read
 * before.
 */
bool pass_run(pass *p);

/* Returns whether the input is a directory in a foreign format. */
bool pass_reads_directory(const pass *p);

#endif
