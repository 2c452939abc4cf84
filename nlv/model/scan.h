/*
 * A stretch of a log of text into batches, by all processors at once.
 *
 * The stretch is cut into pieces; each thread takes the lines that begin in its piece apart, and the pieces are handed
 * out in their order in the thread that asked. It is read by pread and not mapped: a log may be cut short by its owner
 * at any time, which would be a signal, and what was read is in the page cache once, either way.
 */
#ifndef NLV_SCAN_H
#define NLV_SCAN_H

#include "model/batch.h"

typedef struct scan_job {
    int fd;
    unsigned text;     /* its number in places */
    uint64_t from, to; /* from is the start of a line */
    nl_format format;  /* ULM or BP */
    nl_fraction fraction;
    const spec *spec;
    const nl_filter *filter;  /* NULL: all records */
    const correction *clocks; /* NULL: times as they were logged */
    batch_names names;
    bool has_prints; /* fingerprints are made */
} scan_job;

/* A line that is not plain (lines.h): a decoder is to be asked. */
typedef struct scan_odd {
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
    bool met_nul;                      /* there may be blocks of the binary format; nothing here means anything then */
} scan_part;

/* False: no more. */
typedef bool scan_take(void *user, scan_part *part);

/* Hands out parts until all lines that end in the stretch were in one, or none can be read any more. */
void scan_run(const scan_job *job, scan_take *take, void *user);

#endif
