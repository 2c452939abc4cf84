/*
 * Records into bytes, for programs that have their own way of keeping bytes; who only wants them in a file or sent
 * takes a writer (writer.h), which is made of this.
 *
 * An encoder gathers records until nl_encoder_finish appends them to the caller's buffer: lines of text, blocks of the
 * binary format, or, when text is compressed, one zstd frame that can be read without those before it. A record that
 * was read from text of the same format goes out as the very bytes that came in, unless canonical is set. One encoder
 * is for one thread at a time.
 */
#ifndef NETLOGGER_RECORD_ENCODER_H
#define NETLOGGER_RECORD_ENCODER_H

#include <netlogger.h>

#include "record/block_view.h"

typedef struct nl_encoder nl_encoder;

typedef struct nl_encoder_options {
    nl_format format; /* a known one */
    int zstd_level;   /* 1 to 19; 0: not compressed */
    bool canonical;   /* encode every record anew, so that equal records give equal bytes */
} nl_encoder_options;

/* Freed with nl_encoder_free (NULL is allowed). NULL when the format is not known or there is no memory. */
nl_encoder *nl_encoder_new(const nl_encoder_options *options);
void nl_encoder_free(nl_encoder *encoder);

/*
 * Adds a record. NL_OK; NL_FAILED with the reason in nl_error_message() when the format cannot hold so large a record,
 * or there is no memory: then nothing is added, and what was added before is kept. So it is with every function below.
 */
nl_status nl_encoder_put(nl_encoder *encoder, const nl_record *record);

/* Adds lines that are whole records in the encoder's format already, which is a text format. */
nl_status nl_encoder_put_lines(nl_encoder *encoder, const char *lines, size_t size);

/* Adds a block as it is, only compressed where that is asked for. The encoder's format is the binary one. */
nl_status nl_encoder_put_block(nl_encoder *encoder, const nl_block_view *block);

/*
 * Says that the records that are put next are of that stream, numbered from first_sequence on: the blocks that are made
 * of them say so. stream NULL or all zero: of none, as at the start. Text says nothing of streams.
 */
nl_status nl_encoder_set_stream(nl_encoder *encoder, const unsigned char stream[16], uint64_t first_sequence);

/* About how many bytes are gathered; 0 when there are none. */
size_t nl_encoder_size(const nl_encoder *encoder);

/* Appends what was gathered to out, whole records, and begins anew. */
nl_status nl_encoder_finish(nl_encoder *encoder, nl_buffer *out);

#endif
