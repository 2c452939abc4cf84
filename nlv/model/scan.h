/*
 * Reads a part of a log into batches, by all processors at once.
 *
 * The part is cut into pieces: of a megabyte of text, or of some blocks. Each thread decodes the records that begin in
 * its piece, and the pieces are handed out in their order in the calling thread. Files are read by pread and not
 * mapped: their owner may cut them short at any time, which would be a signal, and what was read is in the page cache
 * once, either way.
 */
#ifndef NLV_SCAN_H
#define NLV_SCAN_H

#include "model/batch.h"
#include "model/log_file.h"

typedef struct scan_job {
    const log_file *file;
    uint64_t from, to;       /* offsets; from is the start of a line or block */
    const log_block *blocks; /* those that end between them, when the file is one of blocks */
    size_t block_count;
    const spec *spec;
    const nl_filter *filter;  /* NULL: all records */
    const correction *clocks; /* NULL: times as they were logged */
    batch_names names;
    bool has_prints; /* fingerprints are made */
} scan_job;

/* A line that is not plain (lines.h), or a block that cannot be read without fault: the source's decoder reads it. */
typedef struct scan_odd {
    const log_block *block;              /* NULL: it is a line */
    uint64_t offset;                     /* in the log */
    size_t at, size;                     /* in odd_text, with its newline */
    uint64_t lines_before, bytes_before; /* that were taken apart since the odd one before it, or the part's start */
} scan_odd;

typedef struct scan_part {
    batch rows; /* of the plain lines */
    nl_buffer odd_text;
    scan_odd *odd;
    size_t odd_count, odd_room;
    uint64_t lines_after, bytes_after; /* behind the last odd one */
    uint64_t from, end;                /* what was dealt with: whole lines */
    uint64_t print;                    /* of the bytes from there to there, when it was asked for (prints.h) */
    bool met_nul;                      /* in text: there may be blocks; nothing here means anything then */
} scan_part;

/* False: no more. */
typedef bool scan_take(void *user, scan_part *part);

/* Hands out parts until all records that end between from and to were in one, or none can be read any more. */
void scan_run(const scan_job *job, scan_take *take, void *user);

#endif
