/*
 * Internals of the decoder. decoder.c splits text into lines and decodes them. decoder_blocks.c decodes blocks, until
 * text follows.
 */
#ifndef NETLOGGER_READER_DECODER_INTERNAL_H
#define NETLOGGER_READER_DECODER_INTERNAL_H

#include "record/block_read.h"
#include "reader/input.h"
#include "reader/sequences.h"
#include "reader/streams.h"

/* A block's mark: its magic and header_size, whose upper byte is 0. */
enum { NL_DECODER_MARK_SIZE = NL_BLOCK_MAGIC_SIZE + 2 };

typedef struct nl_line {
    const char *text;
    const char *end;
    const char *limit; /* memory up to this position may be read; the position is never before `end` */
    uint64_t offset;   /* offset of text in the input */
    bool terminated;
    bool last; /* the input ends at `end` */
} nl_line;

/*
 * Input that is skipped because it is damaged. The decoder reports the damage at its end, or when `text` has
 * max_record_size bytes.
 */
typedef struct nl_damage {
    bool reported;
    bool at_end;      /* a block began here, but the input ends before the block does */
    size_t missing;   /* if at_end is set, the number of bytes that the block lacks; 0 means unknown */
    uint32_t records; /* number of records in the incomplete block */
    char reason[120];
    uint64_t offset; /* offset of the damage in the input */
    nl_buffer text;  /* the first damaged bytes, until they are reported */
} nl_damage;

/*
 * The sequence numbers in the headers of damaged blocks. The decoder uses them only if the numbers of the stream's next
 * valid block directly follow them.
 */
typedef struct nl_suspect {
    unsigned char stream[NL_BLOCK_STREAM_SIZE];
    uint64_t from, to; /* sequence numbers [from, to) of the records; equal if there are no records */
    int64_t from_ns;   /* earliest time in the header of the first of these blocks */
} nl_suspect;

struct nl_decoder {
    nl_suspect *suspect; /* NULL until a block is damaged */
    nl_decoder_options options;
    nl_decoder_stats stats;
    nl_format format; /* format of the latest record */
    nl_record *record;
    char *source;
    nl_input in;

    nl_buffer partial;       /* start of an incomplete line; while skipping is set, the latest bytes of the line */
    uint64_t partial_offset; /* offset of `partial` in the input */
    bool partial_used;       /* the latest record points into `partial`, which the next call empties */
    bool broken;             /* memory ran out; nothing more is read */
    bool skipping;           /* within a line that was reported as too long */
    const char *nul;         /* first NUL in the current piece, or the end of the piece; NULL if unknown */

    bool has_rest;
    nl_line rest; /* rest of a line that contains a second record */

    struct nl_line_scanner *scanner; /* finds plain lines in scanner_format; NULL until needed */
    nl_format scanner_format;
    unsigned plain_pause;      /* the number of next calls of nl_decoder_next_plain that return 0 without a scan */
    unsigned plain_pause_next; /* plain_pause after the next scan that finds no plain line */

    uint64_t lines; /* complete lines so far */
    uint64_t line;  /* number of the current line, for reports; 0 in blocks */

    bool in_blocks; /* a block comes next */
    bool damaged;   /* damage is being skipped */
    nl_damage damage;
    bool open;               /* a block is being decoded; the following members describe it */
    bool all_fresh;          /* all records of the block are new; otherwise, `fresh` lists the new records */
    uint64_t place;          /* index of the block's next record */
    uint64_t first_sequence; /* sequence number of the block's first record */
    nl_buffer fresh;         /* nl_number_range: indexes of new records */
    size_t fresh_at;         /* index in `fresh` of the next range */
    nl_block_reader block;
    nl_string block_bytes;   /* the whole block, for reports */
    uint64_t block_offset;   /* offset of the block in the input */
    uint64_t wasted;         /* total size in bytes of the blocks whose checksum did not match */
    bool midway;             /* the latest call returned a record, so there may be more records */
    nl_sequences *sequences; /* the decoder's own set, or NULL */

    void (*on_block)(void *user, const nl_block_view *block); /* or NULL */
    void *block_user;
    void (*on_question)(void *user, int64_t sent_ns); /* or NULL */
    void *question_user;
    bool take_blocks;
    bool declined;      /* on_block declined the block */
    bool unread_blocks; /* do not decode blocks */

    bool (*may_continue)(void *user); /* see nl_decoder_ask */
    void *may_user;
    bool (*admit)(void *user, const nl_block_header *block); /* see nl_decoder_on_admission */
    void *admit_user;
    bool refused; /* a block was refused */
    bool paused;  /* may_continue returned false */
    bool ask;     /* the input was malformed: call may_continue before continuing */

    uint64_t work; /* work units (decoder_work.h) of blocks and malformed pieces, not counting their bytes */
};

/*
 * Returns the set to which the decoder adds numbers; NULL if the decoder has only shared streams, or if memory runs
 * out.
 */
nl_sequences *nl_decoder_sequences(nl_decoder *decoder);

/* At the end of an input, reports missing records if the decoder has its own set. */
void nl_decoder_report_missing(nl_decoder *decoder);

/* Counts malformed input, and passes it to on_malformed. `offset` is the offset of text in the input, in bytes. */
void nl_decoder_report(nl_decoder *decoder, const char *text, size_t size, uint64_t offset, const char *reason);

/* Clears the decoder's record and returns it. */
nl_record *nl_decoder_record(nl_decoder *decoder);

/*
 * Gets the next record while decoder->in_blocks is set. Returns NL_OK, NL_AGAIN if more bytes are needed or the decoder
 * pauses, or NL_END if no block comes next.
 */
nl_status nl_decoder_next_in_blocks(nl_decoder *decoder, const nl_record **record);

/*
 * Searches for a block in [decoder->in.at, limit). If it finds a block, returns true and sets *text_size to the size of
 * the text before it, which may begin in `partial`.
 */
bool nl_decoder_find_block(nl_decoder *decoder, const char *limit, size_t *text_size);

/* Like nl_decoder_finish, but drops an incomplete line or block at the end, because reading failed there. */
void nl_decoder_abort(nl_decoder *decoder);

/* Tells the decoder that the next bytes begin a new input, such as a rotated log. Call it after NL_END. */
void nl_decoder_restart(nl_decoder *decoder);

#endif
