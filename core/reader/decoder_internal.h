/*
 * The decoder from inside. decoder.c finds lines and makes records of them; where a block begins it hands over to
 * decoder_blocks.c, until something comes that is no block.
 */
#ifndef NETLOGGER_READER_DECODER_INTERNAL_H
#define NETLOGGER_READER_DECODER_INTERNAL_H

#include "record/block_read.h"
#include "reader/input.h"
#include "reader/sequences.h"
#include "reader/streams.h"

/* What a block is known by: its magic and header_size, whose upper byte is 0. */
enum { NL_DECODER_MARK_SIZE = NL_BLOCK_MAGIC_SIZE + 2 };

/* A line to be decoded. */
typedef struct nl_line {
    const char *text;
    const char *end;
    const char *limit; /* end or beyond: how far memory may be looked at */
    uint64_t offset;   /* of text, in the input */
    bool terminated;
} nl_line;

/* What is being passed over because no whole block begins there. It is reported when it ends, or is long enough. */
typedef struct nl_damage {
    bool reported;
    char reason[80];
    uint64_t offset;
    nl_buffer text; /* until it is reported: its bytes so far */
} nl_damage;

/* What the headers of damaged blocks said, which is believed when the next block of the stream begins where they end.
 */
typedef struct nl_suspect {
    unsigned char stream[NL_BLOCK_STREAM_SIZE];
    uint64_t from, to; /* numbers of records; equal: nothing */
    int64_t from_ns;
} nl_suspect;

struct nl_decoder {
    nl_suspect *suspect; /* NULL: no damage yet */
    nl_decoder_options options;
    nl_decoder_stats stats;
    nl_format format; /* of the latest record */
    nl_record *record;
    char *source;
    nl_input in;

    nl_buffer carry;       /* the beginning of a line whose end has not come yet; while skipping, its latest bytes */
    uint64_t carry_offset; /* of its first byte */
    bool carry_used;       /* the latest record views the carry: it is empty from the next call on */
    bool broken;           /* memory ran out: nothing more is read */
    bool skipping;         /* inside a line that was too long, and was reported */
    const char *nul;       /* the first NUL of what is left in one place, its end if there is none; NULL: not known */

    bool has_rest;
    nl_line rest; /* of a line in which a second record was found behind a cut one */

    uint64_t lines; /* whose end was met */
    uint64_t line;  /* the number of the one that is being decoded, for reports; 0 in blocks */

    bool in_blocks; /* a block comes next: */
    bool damaged;   /* or what is left of one that is not whole: the next beginning is being looked for */
    nl_damage damage;
    bool open;               /* a block is being read */
    bool all_fresh;          /* none of its records was met already; otherwise: */
    uint64_t place;          /* of its next record, from 0 */
    uint64_t first_sequence; /* of its first record */
    nl_buffer fresh;         /* nl_number_range: the places of those that were not */
    size_t fresh_at;         /* which of them comes next */
    nl_block_reader block;
    nl_string block_bytes; /* all of it, for reports */
    uint64_t block_offset;
    uint64_t wasted;         /* bytes that were looked through for a checksum that did not match */
    bool midway;             /* a record was handed out, and nobody asked for more yet: there may be */
    nl_sequences *sequences; /* its own; NULL: none yet */

    void (*on_block)(void *user, const nl_block_view *block); /* NULL: nobody asks for blocks */
    void *block_user;
    void (*on_question)(void *user, int64_t sent_ns); /* NULL: nobody answers */
    void *question_user;
    bool take_blocks;
    bool declined;      /* the block that is shown */
    bool unread_blocks; /* they are passed on as they are */

    bool (*may)(void *user); /* whether the next block may be decoded; NULL: any may */
    void *may_user;
    bool (*admit)(void *user, const nl_block_header *block); /* NULL: every block is taken */
    void *admit_user;
    bool refused; /* a block was */
    bool paused;  /* it may not */
    bool ask;     /* something was malformed: whether to go on is asked for */

    uint64_t work; /* units (record/work.h) that blocks and malformed pieces cost, besides their bytes */
};

/* The set that gets the numbers that are read; NULL: none. */
nl_sequences *nl_decoder_sequences(nl_decoder *decoder);

/* At the end of an input: reports what is missing from it, where the decoder has sequences of its own. */
void nl_decoder_report_missing(nl_decoder *decoder);

/* Counts and reports something that can't be read. */
void nl_decoder_report(nl_decoder *decoder, const char *text, size_t size, uint64_t offset, const char *reason);

/* The decoder's record, empty. */
nl_record *nl_decoder_record(nl_decoder *decoder);

/*
 * The next record while decoder->in_blocks: NL_OK; NL_AGAIN when more bytes are needed; NL_END when no block comes
 * next, or nothing at all.
 */
nl_status nl_decoder_next_in_blocks(nl_decoder *decoder, const nl_record **record);

/* Looks for the beginning of a block in [decoder->in.at, limit). When it is there, true and *text_size is the size of
 * what comes before it, which may begin in the carry. */
bool nl_decoder_find_block(nl_decoder *decoder, const char *limit, size_t *text_size);

/*
 * Between records: what is fed next comes from offset on, lines lines further, and what was between was passed over:
 * records that are missing there are not.
 */
void nl_decoder_jump(nl_decoder *decoder, uint64_t offset, uint64_t lines);

/* After nl_decoder_finish and NL_END: what is fed next is a new input (a log that was rotated), lines counted from 1.
 */
void nl_decoder_restart(nl_decoder *decoder);

#endif
