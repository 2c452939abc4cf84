/*
 * Encodes records as bytes, for programs that store or send bytes themselves. Other programs use a writer
 * (transport/writer.h).
 *
 * nl_encoder_finish appends the collected records to the caller's buffer: as lines of text, as blocks or, if zstd_level
 * is set, as one zstd frame of text. The frame can be read without earlier frames. A record that was read from text of
 * the same format keeps its bytes, unless `canonical` is set or the bytes contain terminal control characters
 * (terminal.h). Only one thread at a time may use an encoder.
 */
#ifndef NETLOGGER_RECORD_ENCODER_H
#define NETLOGGER_RECORD_ENCODER_H

#include <netlogger.h>

#include "record/block_view.h"

struct nl_block_shapes;
typedef struct nl_encoder nl_encoder;

typedef struct nl_encoder_options {
    nl_format format; /* not NL_FORMAT_UNKNOWN */
    int zstd_level;   /* 1 to 19; 0 disables compression */
    bool canonical;   /* encode every record again, so that equal records have equal bytes */
} nl_encoder_options;

/*
 * Creates an encoder, which the caller frees with nl_encoder_free (NULL is allowed). Returns NULL if the format is
 * unknown or memory runs out.
 */
nl_encoder *nl_encoder_new(const nl_encoder_options *options);
void nl_encoder_free(nl_encoder *encoder);

/*
 * Adds a record. Returns NL_FAILED if the record is too large for the format, or memory runs out. In this case, nothing
 * is added, and earlier records are kept. The other functions that return a status return the same values.
 */
nl_status nl_encoder_put(nl_encoder *encoder, const nl_record *record);

/*
 * Adds a moved record (block_move.h). time_ns is in nanoseconds since 1970 UTC. The encoder's format must be
 * NL_FORMAT_NLB.
 */
nl_status nl_encoder_put_moved(nl_encoder *encoder, struct nl_block_shapes *shapes, nl_string moved, int64_t time_ns);

/* Adds lines[0..size), which must be whole records, each with its newline, in the encoder's text format. */
nl_status nl_encoder_put_lines(nl_encoder *encoder, const char *lines, size_t size);

/* Adds a block without decoding it. The encoder's format must be NL_FORMAT_NLB. */
nl_status nl_encoder_put_block(nl_encoder *encoder, const nl_block_view *block);

/*
 * Sets the stream of the following records, which are numbered from first_sequence. Blocks name the stream; text does
 * not. NULL or all zeros mean that the records have no stream, which is the initial state.
 */
nl_status nl_encoder_set_stream(nl_encoder *encoder, const unsigned char stream[16], uint64_t first_sequence);

/* Returns the approximate number of collected bytes; 0 if there are no records. */
size_t nl_encoder_size(const nl_encoder *encoder);

/* Appends the collected records to `out` and empties the encoder. On failure, the encoder keeps the records. */
nl_status nl_encoder_finish(nl_encoder *encoder, nl_buffer *out);

#endif
