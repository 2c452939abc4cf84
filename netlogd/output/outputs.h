/*
 * All outputs of netlogd. A record goes to each output whose filter (where= option) matches the record.
 *
 * Each output stores each matching record exactly once. netlogd acknowledges a block to its client when every output
 * has settled the block. Each output then has the matching records of the block in its file, and the numbers of the
 * block in its journal. netlogd may be killed after it has written the journal of one output but not of another. Then
 * one output has records that the other lacks, and the client, which received no acknowledgement, sends the block
 * again. Each output therefore remembers all streams, regardless of its filter. outputs_streams, which decoders use to
 * skip numbers, contains only the numbers that all outputs have. If any output lacks a part of a block, the block is
 * decoded, and each output stores the records that it lacks.
 *
 * Each record must be stored exactly once, even if netlogd is killed at any moment. Therefore, the following rules
 * define which records each output should have:
 * - netlogd assumes that three kinds of outputs will not receive earlier records from clients: outputs whose journal
 *   marks a clean end, outputs without a journal, and outputs that a running netlogd adds. If other outputs have more
 *   records of a stream, such an output continues at their position, with the same gaps. It writes this position to its
 *   journal before it stores any record.
 * - An output of a killed netlogd has no records of a stream that the output does not know. Clients may send the
 *   stream's first numbers again.
 * - No output writes streams to its journal before the journals of all outputs mark netlogd as running.
 *
 * If an output cannot be written, netlogd stops reading from all clients, so that memory does not grow. The other
 * outputs still write and settle their records.
 *
 * The module owns the list of outputs. Only the server's thread may call it.
 */
#ifndef NETLOGD_OUTPUT_OUTPUTS_H
#define NETLOGD_OUTPUT_OUTPUTS_H

#include "output.h"

#include "record/block_read.h"

/* Opens the outputs with these URLs. On failure, sets the error and returns NL_FAILED. */
nl_status outputs_open(char *const *texts, size_t count);

/*
 * Starts delivery. The process must not fork afterwards. Writes events about repairs and failed deliveries to log,
 * which may be NULL and must remain valid until outputs_close.
 */
void outputs_start(nl_log *log);

/*
 * Replaces the outputs with outputs for these URLs. Settles the old outputs first. An output whose target stays the
 * same stays open, and gets the new options. If the output rejects the options, netlogd reports this, and the output
 * keeps its old options. Other outputs are closed or opened. On failure, sets the error and returns NL_FAILED; the
 * outputs are then unchanged.
 */
nl_status outputs_change(char *const *texts, size_t count, nl_log *log);

/* Returns the numbers of the clients' streams that all outputs have. */
nl_streams *outputs_streams(void);

/*
 * Marks a stream as in use, even if its records do not arrive at present. The outputs then forget other streams first.
 */
void outputs_touch_stream(const unsigned char stream[16]);

/*
 * Returns whether all outputs have space for the numbers of a block (nl_streams_admit). Do not put a rejected block
 * into the outputs.
 */
bool outputs_admit_block(const nl_block_header *block, unsigned owner);

/* Returns the output at an index, or NULL after the last output. */
output *outputs_get(size_t i);

/*
 * Call the function of output.h for each output, or return whether a condition holds for any or all outputs. If several
 * calls fail, the error is that of the first failure.
 */
uint64_t outputs_encoded(void); /* average of all outputs */
bool outputs_want_blocks(void);
bool outputs_want_lines(nl_format format);
void outputs_put(const nl_record *record, const uint64_t *sequence);

/* Puts plain lines (line_scanner.h) into all outputs. The offsets of the lines count from `text`. */
void outputs_put_lines(const char *text, const struct nl_scanned_line *lines, size_t count);

/*
 * Puts a block into all outputs. Returns false if the caller must put its records one by one, because an output already
 * has a part of the block, or the decoder does not provide the whole block.
 */
bool outputs_put_block(const nl_block_view *block);
nl_status outputs_flush(void);
nl_status outputs_settle(void);
bool outputs_are_empty(void);
bool outputs_are_blocked(void);
bool outputs_are_due(void);
bool outputs_are_settled(void);
int outputs_settle_ms(void); /* minimum of the outputs that are not settled; INT_MAX if all are settled */
bool outputs_have_seal_due(void);
nl_status outputs_reopen(void);

/*
 * Settles and closes all outputs. Waits for deliveries for about as long as ending.h allows. On failure, sets the error
 * and returns NL_FAILED.
 */
nl_status outputs_close(void);

/*
 * Returns the name of a file beside the first output that has files or a spool (output_file_name_beside), or NULL. The
 * caller frees it.
 */
char *outputs_name_beside(const char *suffix);

/* Returns the first output for which output_holds_all returns true, or NULL. */
const output *outputs_with_all(void);

#endif
