/*
 * One pass over the input of a conversion. The main thread cuts the input into chunks of whole records, several threads
 * convert the chunks, and the main thread writes the results in the order of the input.
 */
#ifndef NLCONV_PIPELINE_H
#define NLCONV_PIPELINE_H

#include "convert/convert.h"
#include "convert/output.h"

typedef struct pass {
    char **sources; /* read one after another: several are the files of an archive */
    size_t source_count;
    const char *copy;          /* of a single source that can be read only once; NULL: no copy */
    bool is_first;             /* another pass follows and reports problems of the input */
    const importer_kind *from; /* NULL: detect; set by the pass */
    const exporter_kind *to;
    void *export_shared;
    program_reading *reading; /* gets the reports of malformed input */
    const nl_filter *where;
    bool strict; /* stop at the first malformed input */
    import_about about;
    output *out; /* NULL: the exporter's kind learns instead */
    unsigned threads;
    /* results */
    bool undated;     /* times had an unknown origin */
    uint64_t records; /* number converted */
    uint64_t losses[LOSS_COUNT];
    bool stopped;   /* by malformed input */
    bool failed;    /* writing or learning failed */
    bool unwritten; /* or there were no records */
} pass;

/*
 * Runs a pass. Returns false after reporting that reading or writing failed; the output has the records that were read
 * before.
 */
bool pass_run(pass *p);

/* Returns whether the input is a directory in a foreign format. */
bool pass_reads_directory(const pass *p);

#endif
