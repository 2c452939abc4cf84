/*
 * Decodes bytes that arrive in pieces.
 *
 * The caller feeds bytes as they arrive from a file or socket, and gets records as they become complete. The bytes of
 * one call of nl_decoder_feed are a piece. The decoder detects the format, skips the classic connection header, keeps
 * incomplete records until the rest arrives, and continues after it reports malformed input. Text and blocks may follow
 * each other in one input. Between pieces, the decoder keeps at most max_record_size bytes of text, or one block (16
 * MiB). Each block names its stream and has the sequence numbers of its records, so that the decoder can report missing
 * records.
 *
 *   nl_decoder_feed(decoder, data, size);
 *   while (nl_decoder_next(decoder, &record) == NL_OK)
 *       use(record);
 *
 * Only one thread at a time may use a decoder.
 */
#ifndef NETLOGGER_READER_DECODER_H
#define NETLOGGER_READER_DECODER_H

#include "record/block_view.h"

#include <netlogger.h>

typedef struct nl_decoder nl_decoder;

/*
 * The received sequence numbers of streams. Decoders share the table, so that a stream may continue on another
 * connection, and repeated records are recognized. If there are more than NL_STREAMS_MAX (streams.h) streams, the table
 * forgets the streams that were unused longest. nl_streams_admit limits the gaps (admission.h). Only one thread at a
 * time may use the table. The caller frees the table after the decoders that use it; freeing NULL has no effect.
 */
typedef struct nl_streams nl_streams;
nl_streams *nl_streams_new(void);
void nl_streams_free(nl_streams *streams);

/* The state of a stream, to store it in a file. */
typedef struct nl_stream_state {
    unsigned char stream[16];
    uint64_t next;     /* the next expected sequence number */
    int64_t latest_ns; /* latest time of a record, in nanoseconds since 1970 */
    size_t gap_count;
    const nl_number_range *gaps; /* missing numbers in ascending order; valid until the table changes */
} nl_stream_state;

/* Gets the state of a stream. Returns false if the table does not have the stream. */
bool nl_streams_get(const nl_streams *streams, const unsigned char stream[16], nl_stream_state *state);

/*
 * Sets the state of a stream, whose ID must not be all zeros. Copies the gaps, which must not be in the table's memory.
 */
void nl_streams_set(nl_streams *streams, const nl_stream_state *state);

/*
 * Calls `function` for each stream, first for the streams that the table would forget first. `function` must not change
 * the table.
 */
void nl_streams_list(const nl_streams *streams, void (*function)(void *user, const nl_stream_state *state), void *user);

/*
 * The exact set of sequence numbers that several decoders have read, in any order. A number is missing if it is between
 * the lowest and the highest number of its stream and no input has it. Query the set after all inputs were read. The
 * set has at most 2^18 streams and 2^18 gaps (about 60 MiB) and ignores further streams and gaps. Only one thread at a
 * time may use the set. The caller frees the set after the decoders that use it; freeing NULL has no effect.
 */
typedef struct nl_sequences nl_sequences;
nl_sequences *nl_sequences_new(void);
void nl_sequences_free(nl_sequences *sequences);

/*
 * Calls function for each range of missing numbers, in order of streams and numbers. The source of a range is the input
 * that revealed that the numbers are missing. Lists nothing if an input was not read completely. This is the case if
 * nl_reader_seek_matches has skipped parts of the input, or if a decoder's latest call of nl_decoder_next has returned
 * a record.
 */
void nl_sequences_list_missing(const nl_sequences *sequences, void (*function)(void *user, const nl_lost *what),
                               void *user);

/* Returns false if more records may be missing, because there were too many streams or gaps, or memory ran out. */
bool nl_sequences_is_complete(const nl_sequences *sequences);

/*
 * Sets *next to the number after the highest number of a stream, and *latest_ns to the time of the record with the
 * highest number, in nanoseconds since 1970. Returns false if the stream is unknown.
 */
bool nl_sequences_get(const nl_sequences *sequences, const unsigned char stream[16], uint64_t *next,
                      int64_t *latest_ns);

typedef struct nl_decoder_options {
    const char *source;     /* name for reports, which is copied; NULL means "-" */
    nl_format format;       /* NL_FORMAT_UNKNOWN means that the decoder detects the format */
    nl_fraction fraction;   /* how to read fractional seconds of fewer than six digits */
    size_t max_record_size; /* maximum length of a line in bytes; longer lines are malformed; 0 means 1 MiB */
    void (*on_malformed)(void *user, const nl_malformed *what); /* or NULL */
    void (*on_lost)(void *user, const nl_lost *what);           /* or NULL */
    void *user;
    nl_streams *streams; /* shared, or NULL. If set, the decoder skips records with known numbers. It calls on_lost at
                            once for numbers that have not arrived, although other decoders may still receive them */
    nl_sequences
        *sequences; /* shared: the decoder adds all numbers that it reads. If both sequences and streams are NULL, the
                       decoder has its own set, and calls on_lost for missing numbers at the end of the input */
    nl_sequences *once; /* shared, or NULL. If set, the decoder skips records whose numbers are in the set, and adds all
                           other numbers to it */
} nl_decoder_options;

typedef nl_reader_stats nl_decoder_stats;

/* Creates a decoder, which the caller frees. `options` may be NULL. Returns NULL if memory runs out. */
nl_decoder *nl_decoder_new(const nl_decoder_options *options);
void nl_decoder_free(nl_decoder *decoder);

/*
 * Makes the decoder call on_block for each valid block before it returns the block's records. If take is true and all
 * records of a block are new and can be decoded, the decoder only passes the block to on_block, with `taken` set. It
 * counts the records of such a block but does not return them.
 */
void nl_decoder_on_block(nl_decoder *decoder, bool take, void (*on_block)(void *user, const nl_block_view *block),
                         void *user);

/*
 * Makes the decoder call on_question for each time question (doc/binary-format.md, "Time"). The argument of on_question
 * is the time at which the peer sent the question, by the peer's clock. on_question must not use the decoder. Without
 * on_question, the decoder skips time questions.
 */
void nl_decoder_on_question(nl_decoder *decoder, void (*on_question)(void *user, int64_t sent_ns), void *user);

/*
 * Adds the numbers of a stream's block, as a decoder that uses this table does. Sets *fresh to the ranges
 * (nl_number_range) of new numbers, in ascending order. A caller that passes blocks to several destinations has a table
 * for each destination, because each destination may have received a different part of a stream.
 */
void nl_streams_take(nl_streams *streams, const nl_block_view *block, nl_buffer *fresh);

/*
 * Makes the decoder call on_block for each valid block without decoding it, with `taken` set. Use this function if the
 * caller decodes blocks elsewhere, such as in another thread. The decoder still reports loss and damage, and counts the
 * records from the headers. If it has shared streams, it skips blocks whose records are all known, and passes blocks
 * with some known records as a whole.
 */
void nl_decoder_on_unread_block(nl_decoder *decoder, void (*on_block)(void *user, const nl_block_view *block),
                                void *user);

/*
 * Makes the decoder call may_continue before each block, and after malformed text. Callers use may_continue to limit
 * their work, because a few bytes can contain very many compressed records. If may_continue returns false, the decoder
 * copies the rest of the piece, and nl_decoder_next returns NL_AGAIN. nl_decoder_is_paused is then true until the next
 * call of nl_decoder_next, which must precede any call of nl_decoder_feed. If may_continue is NULL, the decoder never
 * pauses.
 */
void nl_decoder_ask(nl_decoder *decoder, bool (*may_continue)(void *user), void *user);
bool nl_decoder_is_paused(const nl_decoder *decoder);

/*
 * Gives the decoder the next piece, of `size` bytes, which must stay valid until nl_decoder_next returns NL_AGAIN. If
 * nl_decoder_next has not returned NL_AGAIN for the previous piece, or after nl_decoder_finish, the function only sets
 * the error.
 */
void nl_decoder_feed(nl_decoder *decoder, const char *data, size_t size);

/*
 * Tells the decoder that the caller has read the next lines itself (line_scanner.h), so that later reports have the
 * correct position. The lines have size bytes, including their newlines. If the decoder is within a line or block, the
 * function only sets the error.
 */
void nl_decoder_pass_over(nl_decoder *decoder, nl_format format, uint64_t lines, uint64_t size);

/* Marks the end of the input. nl_decoder_next then returns the last record, and NL_END. */
void nl_decoder_finish(nl_decoder *decoder);

/*
 * Returns the next record. Reports malformed input to on_malformed and skips it. The result is:
 *   NL_OK      *record is the next record, which is valid until the next call
 *   NL_AGAIN   the decoder needs more bytes
 *   NL_END     there are no more records after nl_decoder_finish
 *   NL_FAILED  memory ran out in this call or in an earlier call
 */
nl_status nl_decoder_next(nl_decoder *decoder, const nl_record **record);

/*
 * Passes over the next lines if they are plain (line_scanner.h), without decoding them. Call it between calls of
 * nl_decoder_next. Returns the number of lines, at most `capacity`, and sets *text to the first line; the offsets of
 * the lines count from *text. Returns 0 if the next line is not plain, or after recent lines that were not plain;
 * nl_decoder_next must then read the line. The text is valid until the next call. The decoder counts the lines as
 * records.
 */
struct nl_scanned_line;
size_t nl_decoder_next_plain(nl_decoder *decoder, struct nl_scanned_line *lines, size_t capacity, const char **text);

/* Returns the sequence number of the latest record, which must be from a block of a stream. */
uint64_t nl_decoder_sequence(const nl_decoder *decoder);

/* Returns the detected format, or NL_FORMAT_UNKNOWN. */
nl_format nl_decoder_format(const nl_decoder *decoder);

/* After NL_AGAIN, returns whether part of a line or block is incomplete. */
bool nl_decoder_is_midway(const nl_decoder *decoder);

/*
 * Tells the decoder that the next bytes are at another offset of the input, in bytes, and that `lines` lines are
 * skipped. Call it between records. Clears the shared streams. Afterwards, neither the decoder's own set nor a shared
 * set of sequences reports missing records.
 */
void nl_decoder_jump(nl_decoder *decoder, uint64_t offset, uint64_t lines);

/* After NL_AGAIN, returns the approximate number of bytes of memory that the decoder keeps. */
size_t nl_decoder_held(const nl_decoder *decoder);

/* Returns the counts so far. The decoder owns the structure and updates it. */
const nl_decoder_stats *nl_decoder_get_stats(const nl_decoder *decoder);

#endif
