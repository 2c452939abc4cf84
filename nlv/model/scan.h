/*
 * Decodes a part of a log into batches, using all processors.
 *
 * Cuts the part into pieces of a megabyte of text or of some blocks. Each thread decodes the records that begin in its
 * piece. The calling thread receives the pieces in order. Threads read files with pread. A mapping would be unsafe,
 * because the process receives SIGBUS if another program truncates a mapped file.
 */
#ifndef NLV_SCAN_H
#define NLV_SCAN_H

#include "model/batch.h"
#include "model/log_file.h"

typedef struct scan_job {
    const log_file *file;
    uint64_t from, to;       /* offsets; from is the start of a line or block */
    const log_block *blocks; /* the blocks between `from` and `to`, if the log is binary */
    size_t block_count;
    const spec *spec;
    bool keeps_none;              /* read the bytes, but extract no records */
    const nl_filter *filter;      /* NULL: all records */
    const correction *clocks;     /* NULL: times as they were logged */
    const time_zones *zones;      /* NULL: no record is in another time zone */
    atomic_bool *has_nanoseconds; /* see extractor; NULL: unknown */
    batch_names names;
    bool has_prints; /* compute fingerprints */
} scan_job;

/* A line that is not plain (line_scanner.h), or a damaged block. The source's decoder later decodes these lines and
 * blocks in order. */
typedef struct scan_odd {
    const log_block *block;              /* NULL: a line */
    uint64_t offset;                     /* offset in the log */
    size_t at, size;                     /* offset and size in odd_text, including the newline, in bytes */
    uint64_t lines_before, bytes_before; /* numbers of decoded lines and bytes since the previous scan_odd */
} scan_odd;

typedef struct scan_part {
    batch rows; /* rows of the plain lines and undamaged blocks */
    nl_buffer odd_text;
    scan_odd *odd;
    size_t odd_count, odd_capacity;
    uint64_t lines_after, bytes_after; /* numbers of decoded lines and bytes after the last scan_odd */
    uint64_t from, end;                /* offsets of the start and end of the scanned lines */
    uint64_t print;                    /* fingerprint of the bytes [from, end), if requested (prints.h) */
    bool met_nul; /* the text has NUL bytes, so it may contain blocks, and the other members are undefined */
} scan_part;

/* Receives a part. Returns false to end the scan. */
typedef bool scan_take(void *user, scan_part *part);

/* Calls `take` for each part, until the job's records are complete, `take` returns false, or reading fails. */
void scan_run(const scan_job *job, scan_take *take, void *user);

#endif
