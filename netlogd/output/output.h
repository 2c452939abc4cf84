/*
 * An output writes the records that match its filter, in the order of arrival, to one file or to numbered files, as
 * text or as blocks (options.h). If its kind has a destination (kind.h), the output then delivers the records.
 *
 * The output collects records and writes them in batches. If writing fails, for example because the disk is full, the
 * records stay in memory. Memory grows by at most the records of one read, because the server does not read from
 * clients until output_flush succeeds.
 *
 * Written records count as stored only when the journal (journal.h) has an entry for them. Records are settled when
 * netlogd may acknowledge them. This requires that the journal has the entry and, if fsync= requires it, that the file
 * and the journal are on the disk. The server calls output_flush only when no block is partly stored. Each output has
 * its own journal and its own table of streams. After a kill, one output may have records that another output lacks,
 * and each output then accepts only the records that it lacks. outputs.h explains how the outputs stay consistent. Only
 * the server's thread may call these functions.
 */
#ifndef NETLOGD_OUTPUT_H
#define NETLOGD_OUTPUT_H

#include "delivery.h"
#include "options.h"
#include "reader/decoder.h"

#include <netlogger.h>

typedef struct output output;

/* State of the journal when the output was opened. */
typedef enum output_past {
    OUTPUT_PAST_NONE,  /* there was no journal */
    OUTPUT_PAST_ENDED, /* netlogd had ended cleanly, so clients do not repeat the records that this output should
                          have */
    OUTPUT_PAST_KILLED
} output_past;

typedef struct output_counts {
    uint64_t records;   /* number of records added */
    uint64_t unwritten; /* number of records that could not be encoded */
    uint64_t
        undecided;    /* number of records that were stored because the evaluation of the filter took too many steps */
    uint64_t bytes;   /* number of bytes written */
    uint64_t encoded; /* number of bytes from the encoder, before compression */
    uint64_t deleted; /* number of old files deleted */
    uint64_t deleted_bytes;
    uint64_t unsearched;    /* number of old files deleted although keep_where= had not kept their requests */
    uint64_t kept_requests; /* number of requests that keep_where= has kept */
    uint64_t kept_records;  /* number of records of these requests in kept files */
} output_counts;

/*
 * Opens an output. Repairs a damaged end, and removes the bytes that a killed netlogd wrote but did not acknowledge.
 * Takes ownership of `options`, even on failure. On failure, sets the error and returns NULL.
 */
output *output_open(output_options *options);

/* Starts delivery in a thread. The process must not fork afterwards. log, which may be NULL, receives an event when
 * delivery fails and when it succeeds again. Does nothing for files. */
void output_start(output *out, nl_log *log);

/* Writes an event for each repair to `log`, which may be NULL. */
void output_report_repairs(output *out, nl_log *log);

const output_options *output_get_options(const output *out);
const output_counts *output_get_counts(const output *out);

/* Returns the encoded size of all records put so far, before compression, in bytes. */
uint64_t output_encoded(const output *out);

/* Returns the output's table of the clients' streams. The output owns the table. */
nl_streams *output_streams(output *out);
output_past output_get_past(const output *out);

/*
 * Replaces the journal's entries with one entry that contains all streams of output_streams. The entry marks netlogd as
 * running. On failure, sets the error and returns NL_FAILED.
 */
nl_status output_note_streams(output *out);

/*
 * Writes the first journal entry for the current file, if the file has no entry and a journal is needed. On failure,
 * sets the error and returns NL_FAILED.
 */
nl_status output_begin(output *out);

/* Returns the stream of the records that the output itself numbers, or NULL. */
const unsigned char *output_own_stream(const output *out);

/* Returns whether the output accepts whole blocks. */
bool output_wants_blocks(const output *out);

/*
 * Appends the record to `line` as a line of a text format. Copies the record's raw text if that is a clean line of this
 * format.
 */
void output_put_line(const nl_record *record, nl_format format, nl_buffer *line);

/*
 * Adds a record if it matches the filter. `sequence` is the record's number in the block of the latest
 * output_begin_block, or NULL. Returns true if the call wrote a batch and the file is now full (output_is_full).
 */
bool output_put(output *out, const nl_record *record, const uint64_t *sequence);

/* Returns whether the output stores clean lines of this text format unchanged, and needs no fields of their records. */
bool output_wants_lines(const output *out, nl_format format);

/*
 * Returns how many of the given lines to add to the current batch, from 1 to `count`. The result is less than `count`
 * only if fewer lines fill the batch.
 */
size_t output_count_due(const output *out, const struct nl_scanned_line *lines, size_t count);

/*
 * Adds plain lines (line_scanner.h), if output_wants_lines returns true. The offsets of the lines count from `text`.
 * Returns the same as output_put.
 */
bool output_put_lines(output *out, const char *text, const struct nl_scanned_line *lines, size_t count);

/*
 * Counts the numbers of a block as received. Call it before output_put_block, or before output_put for each of the
 * block's records. Returns whether the output can store the whole block. An output cannot store the whole block if it
 * already has a part of the block, or if it must number the records itself.
 */
bool output_begin_block(output *out, const nl_block_view *block);

/* Adds the block of the latest output_begin_block. Returns the same as output_put. */
bool output_put_block(output *out, const nl_block_view *block);

/*
 * Writes the collected records. Also settles the records, unless fsync=DURATION allows a delay. On NL_FAILED, the
 * records stay in memory, and output_is_blocked returns true.
 */
nl_status output_flush(output *out);

/* Like output_flush, but always settles the records. */
nl_status output_settle(output *out);

/*
 * Returns whether a numbered file has reached its maximum size and has records for which its journal has no entry.
 * Returns false while the output is blocked. The caller must settle the output as soon as no block is partly stored.
 */
bool output_is_full(const output *out);

/* Returns whether all records are in the file, even if they are not settled. */
bool output_is_empty(const output *out);

bool output_is_blocked(const output *out);

/* Returns whether the output has received so many bytes since the latest flush that the caller must flush it now. */
bool output_is_due(const output *out);

/*
 * output_is_settled returns whether netlogd may acknowledge all flushed records. output_settle_ms returns the time in
 * milliseconds until output_settle is due.
 */
bool output_is_settled(const output *out);
int output_settle_ms(const output *out);

/* Returns whether a seal is due; output_settle writes it. */
bool output_is_seal_due(const output *out);

/*
 * Deletes old files, as keep= and keep_size= require (retention.h). `first_needed` is the number of the first file that
 * a subscriber must still read, or UINT64_MAX. `memory_max` is the maximum memory for the requests of keep_where= in
 * bytes. Call it every second. Writes events to log, which may be NULL.
 */
void output_delete_old(output *out, uint64_t first_needed, size_t memory_max, nl_log *log);

/* Gets the state of delivery. Returns false if the output does not deliver. */
bool output_delivers(output *out, delivery_state *state);

/* Returns whether the output has all records, in files that can be read while netlogd writes them. */
bool output_holds_all(const output *out);

/*
 * Settles the output. Then opens the file again by its name, or begins the next numbered file. Does not replace
 * standard output or an empty numbered file. On failure, sets the error and returns NL_FAILED; the old file then stays
 * in use.
 */
nl_status output_reopen(output *out);

/*
 * Sets new options for the same target, and takes ownership of them. Settles earlier records with the old options. On
 * NL_FAILED, the old options stay in force, and the new options are freed.
 */
nl_status output_change(output *out, output_options *options);

/* Settles, closes and frees the output. On failure, sets the error and returns NL_FAILED. */
nl_status output_close(output *out);

/*
 * Like output_close, but does not mark the journal as cleanly ended, because other outputs have records that this
 * output lacks.
 */
nl_status output_close_behind(output *out);

/* Frees an output that was opened but is not needed. Writes no records and no journal entry. */
void output_abandon(output *out);

#endif
