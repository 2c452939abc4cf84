/*
 * Bytes that arrive in pieces, into records.
 *
 * A decoder is fed bytes as they come (from a file, a socket) and hands out records as they complete. It finds out the
 * format from the first bytes (past the classic 8-byte connection header "ULM\0" and four spaces), keeps a record cut
 * by the end of a piece until the rest comes, and counts and reports what can't be read without stopping. Text and the
 * binary format's blocks may follow one another in one input. Memory: what is kept between pieces, at most
 * max_record_size of text or a block (16 MiB).
 *
 * Blocks say which stream they are part of and count its records, so that the decoder knows when some are missing: they
 * are counted and reported too.
 *
 *   nl_decoder_feed(decoder, data, size);
 *   while (nl_decoder_next(decoder, &record) == NL_OK)
 *       use(record);
 *
 * One decoder is for one thread at a time.
 */
#ifndef NETLOGGER_READER_DECODER_H
#define NETLOGGER_READER_DECODER_H

#include "record/block_view.h"

#include <netlogger.h>

typedef struct nl_decoder nl_decoder;

/*
 * What is remembered of streams of numbered records by several decoders together, so that a stream may go on in another
 * connection, and what is sent again there is known. For one thread at a time. Bounded: the streams that were silent
 * for longest are forgotten first. The gaps of a stream are bounded by nl_streams_admit (admission.h). Freed with
 * nl_streams_free (NULL is allowed) after the decoders that use it.
 */
typedef struct nl_streams nl_streams;
nl_streams *nl_streams_new(void);
void nl_streams_free(nl_streams *streams);

/* What is remembered of a stream, for code that keeps it in a file. */
typedef struct nl_stream_state {
    unsigned char stream[16]; /* its name */
    uint64_t next;            /* the sequence number that is expected */
    int64_t latest_ns;        /* the latest time that was seen */
    size_t gap_count;
    const nl_number_range *gaps; /* numbers that have not come, rising; borrowed until the streams change */
} nl_stream_state;

/* Reads what is remembered of the stream of that name. False when it was not met, or was forgotten. */
bool nl_streams_get(const nl_streams *streams, const unsigned char stream[16], nl_stream_state *state);

/* Replaces what is remembered of a stream, whose name is not all zero. Copies the gaps, which are not this table's. */
void nl_streams_set(nl_streams *streams, const nl_stream_state *state);

/* Calls function for every stream, those that would be forgotten first before the others; it must not change them. */
void nl_streams_list(const nl_streams *streams, void (*function)(void *user, const nl_stream_state *state), void *user);

/*
 * The exact set of sequence numbers that several decoders read, of all streams, in any order. A number is missing when
 * it lies between the lowest and the highest number of its stream and no input has it. Ask when all inputs were read.
 * Bounded: 2^18 streams with 2^18 gaps (about 60 MiB); what does not fit is not checked. For one thread at a time.
 * Freed with nl_sequences_free (NULL is allowed) after the decoders that use it.
 */
typedef struct nl_sequences nl_sequences;
nl_sequences *nl_sequences_new(void);
void nl_sequences_free(nl_sequences *sequences);

/*
 * Calls function for each range of missing numbers, by stream and number; source is the input that showed the range.
 * Lists nothing when an input was not read in full: nl_reader_seek_range passed over parts, or the latest call of
 * nl_decoder_next returned a record.
 */
void nl_sequences_list_missing(const nl_sequences *sequences, void (*function)(void *user, const nl_lost *what),
                               void *user);

/* Whether everything was checked. Otherwise there were too many streams or gaps, and more records may be missing. */
bool nl_sequences_is_complete(const nl_sequences *sequences);

/* The number after the highest one of a stream, and the time of the record with the highest. False when not met. */
bool nl_sequences_get(const nl_sequences *sequences, const unsigned char stream[16], uint64_t *next,
                      int64_t *latest_ns);

typedef struct nl_decoder_options {
    const char *source;                                         /* a name for reports; "-" when NULL; copied */
    nl_format format;                                           /* NL_FORMAT_UNKNOWN: told by the content */
    nl_fraction fraction;                                       /* how short fractions of a second are read */
    size_t max_record_size;                                     /* bytes of a line; 0: 1 MiB. A longer is malformed */
    void (*on_malformed)(void *user, const nl_malformed *what); /* may be NULL: then only counted */
    void (*on_lost)(void *user, const nl_lost *what);           /* may be NULL: then only counted */
    void *user;
    nl_streams *streams; /* shared: a record whose number was met already is passed over. on_lost is called at once for
                            numbers that are not here yet: other decoders may still bring them. NULL: none */
    nl_sequences *sequences; /* shared: gets the numbers that are read. NULL, without streams: the decoder has its own,
                                and calls on_lost for what is missing when the input ends */
    nl_sequences *once;      /* shared: a record whose number is in it is passed over. NULL: none */
} nl_decoder_options;

typedef nl_reader_stats nl_decoder_stats;

/* options may be NULL for all defaults. Freed with nl_decoder_free. */
nl_decoder *nl_decoder_new(const nl_decoder_options *options);
void nl_decoder_free(nl_decoder *decoder);

/*
 * Asks for blocks: on_block is called for each block of records that is whole and has the right checksum, before its
 * records are handed out. With take, one of which nothing was met before and whose records were all read by way of
 * trial is not handed out as records, only as its bytes (taken is then true); the counts are the same.
 */
void nl_decoder_on_block(nl_decoder *decoder, bool take, void (*on_block)(void *user, const nl_block_view *block),
                         void *user);

/*
 * Asks for questions for the time (doc/binary-format.md, "Time"): on_question is called with what each holds, the time
 * sent_ns at which its sender sent it, by the sender's clock. Without it they are passed over, as blocks of unknown
 * type are. on_question may not touch the decoder.
 */
void nl_decoder_on_question(nl_decoder *decoder, void (*on_question)(void *user, int64_t sent_ns), void *user);

/*
 * Takes the numbers of a block, which is of a stream, as a decoder that shares these streams does. Writes the ranges
 * (nl_number_range) of its numbers that had not come before to *fresh, rising. For code that passes blocks on to
 * several places, some of which have had more of a stream than others.
 */
void nl_streams_take(nl_streams *streams, const nl_block_view *block, nl_buffer *fresh);

/*
 * Asks for blocks that nothing was looked at of but their headers and checksums: on_block is called for each that is
 * whole, always with taken, for who has its records read by another decoder, perhaps in another thread. Loss and damage
 * are reported here all the same; stats.records counts what the headers say. With shared streams a block that was met
 * already as a whole is passed over; one that was in part is shown with all its records.
 */
void nl_decoder_on_unread_block(nl_decoder *decoder, void (*on_block)(void *user, const nl_block_view *block),
                                void *user);

/*
 * Asks before each block whether it may be decoded now: when not, nl_decoder_next returns NL_AGAIN, what is left of the
 * piece is copied, and nl_decoder_is_paused is true until nl_decoder_next goes on there, which is to be before anything
 * is fed. For who cannot take all records that a piece may hold at once: there may be very many of them in few bytes.
 * may NULL: they always may.
 */
void nl_decoder_ask(nl_decoder *decoder, bool (*may)(void *user), void *user);
bool nl_decoder_is_paused(const nl_decoder *decoder);

/*
 * Gives the decoder more bytes. It borrows data until nl_decoder_next has returned NL_AGAIN; calling this again before
 * that does nothing but set nl_error_message(). The bytes are not changed.
 */
void nl_decoder_feed(nl_decoder *decoder, const char *data, size_t size);

/*
 * Says that so many lines, size bytes with their newlines, were not fed because they are of no interest or were read in
 * another way (lines.h): what is fed next comes after them, and reports say so. format is theirs. Only between lines of
 * text: otherwise it does nothing but set nl_error_message().
 */
void nl_decoder_pass_over(nl_decoder *decoder, nl_format format, uint64_t lines, uint64_t size);

/* Says that no more bytes come: the next calls give what is left, then NL_END. */
void nl_decoder_finish(nl_decoder *decoder);

/*
 * The next record: NL_OK with *record valid until the next call on this decoder; NL_AGAIN when more bytes are needed;
 * NL_END after nl_decoder_finish when there are no more. Malformed input is reported to on_malformed and passed over.
 */
nl_status nl_decoder_next(nl_decoder *decoder, const nl_record **record);

/* The sequence number of the record that was handed out last. It means nothing unless that came in a block of a
 * stream. */
uint64_t nl_decoder_sequence(const nl_decoder *decoder);

/* The format found, NL_FORMAT_UNKNOWN while it is not known yet. */
nl_format nl_decoder_format(const nl_decoder *decoder);

/* After NL_AGAIN: whether it keeps part of a line or block whose rest has not come. */
bool nl_decoder_is_midway(const nl_decoder *decoder);

/* After NL_AGAIN: about how many bytes of memory it takes for what it keeps, besides what any decoder takes. */
size_t nl_decoder_held(const nl_decoder *decoder);

/* Counts so far; belongs to the decoder. */
const nl_decoder_stats *nl_decoder_get_stats(const nl_decoder *decoder);

#endif
