/* The properties of the decoder, for the targets decoder and binary. */
#ifndef NETLOGGER_TESTS_FUZZ_DECODING_H
#define NETLOGGER_TESTS_FUZZ_DECODING_H

#include "fuzz.h"
#include "reader/decoder.h"

/* The first bytes of an input select the options. The log follows. */
enum {
    FUZZ_CHOICES = 4, /* bytes: the options, then three sizes of pieces, which are used in turn */
};

static inline nl_decoder_options fuzz_chosen_options(uint8_t choice)
{
    static const nl_format formats[] = {NL_FORMAT_UNKNOWN, NL_FORMAT_ULM, NL_FORMAT_BP, NL_FORMAT_UNKNOWN};
    static const size_t limits[] = {0, 1, 32, SIZE_MAX, 64, 100, 200, 1000};
    return (nl_decoder_options){
        .source = "input",
        .format = formats[choice & 3],
        .fraction = choice & 4 ? NL_FRACTION_MICROSECONDS : NL_FRACTION_DECIMAL,
        .max_record_size = limits[choice >> 3 & 7],
    };
}

static inline void fuzz_note_malformed(void *user, const nl_malformed *what)
{
    nl_buffer_append(user, "!", 1);
    fuzz_put_number(user, (int64_t)what->line);
    fuzz_put_number(user, (int64_t)what->offset);
    fuzz_put_string(user, (nl_string){what->reason, strlen(what->reason)});
    fuzz_put_string(user, what->text);
}

static inline void fuzz_note_lost(void *user, const nl_lost *what)
{
    nl_buffer_append(user, "?", 1);
    fuzz_put_string(user, (nl_string){(const char *)what->stream, sizeof what->stream});
    fuzz_put_number(user, (int64_t)what->count);
    fuzz_put_number(user, (int64_t)what->dropped);
    fuzz_put_number(user, what->from_ns);
    fuzz_put_number(user, what->to_ns);
}

static inline void fuzz_note_question(void *user, int64_t sent_ns)
{
    nl_buffer_append(user, "t", 1);
    fuzz_put_number(user, sent_ns);
}

/* Reads all records that are available now. */
static inline void fuzz_drain(nl_decoder *decoder, nl_status last, nl_buffer *out)
{
    const nl_record *record;
    nl_buffer line = {0};
    nl_status status;
    while ((status = nl_decoder_next(decoder, &record)) == NL_OK) {
        fuzz_put_record(out, record);
        fuzz_put_number(out, record->flags);
        fuzz_put_number(out, record->raw_format);
        fuzz_put_string(out, record->raw);
        line.size = 0;
        nl_record_encode(record, NL_FORMAT_ULM, &line);
    }
    fuzz_expect(status == last,
                "the decoder returns NL_AGAIN if it needs more bytes, and NL_END after the end of the input");
    nl_buffer_free(&line);
}

static inline void fuzz_feed(nl_decoder *decoder, const uint8_t *data, size_t size, nl_buffer *out)
{
    char *piece = fuzz_copy(data, size);
    nl_decoder_feed(decoder, piece, size);
    fuzz_drain(decoder, NL_AGAIN, out);
    free(piece);
}

/* Decodes a log in pieces whose sizes are in `pieces` (NULL: one piece). Returns the records, reports and counts as
 * bytes, which a test can compare. */
static inline nl_buffer fuzz_decode(nl_decoder_options options, const uint8_t *pieces, const uint8_t *data, size_t size)
{
    nl_buffer out = {0};
    options.on_malformed = fuzz_note_malformed;
    options.on_lost = fuzz_note_lost;
    options.user = &out;
    nl_decoder *decoder = nl_decoder_new(&options);
    nl_decoder_on_question(decoder, fuzz_note_question, &out);
    size_t turn = 0;
    for (size_t at = 0, piece; at < size; at += piece) {
        piece = pieces != NULL ? pieces[turn++ % (FUZZ_CHOICES - 1)] : size;
        piece = piece < size - at ? piece : size - at;
        fuzz_feed(decoder, data + at, piece, &out);
    }
    nl_decoder_finish(decoder);
    fuzz_drain(decoder, NL_END, &out);
    fuzz_drain(decoder, NL_END, &out);
    const nl_decoder_stats *stats = nl_decoder_get_stats(decoder);
    fuzz_expect(stats->bytes == size, "all bytes are counted");
    fuzz_put_number(&out, (int64_t)stats->records);
    fuzz_put_number(&out, (int64_t)stats->malformed);
    fuzz_put_number(&out, (int64_t)stats->unterminated);
    fuzz_put_number(&out, (int64_t)stats->lost);
    fuzz_put_number(&out, stats->lost_from_ns);
    fuzz_put_number(&out, stats->lost_to_ns);
    fuzz_put_number(&out, nl_decoder_format(decoder));
    nl_decoder_free(decoder);
    return out;
}

/*
 * Checks that any division of the log into pieces gives the same records and reports. `choices` has FUZZ_CHOICES bytes.
 */
static inline void fuzz_check_decoding(const uint8_t *choices, const uint8_t *data, size_t size)
{
    nl_decoder_options options = fuzz_chosen_options(choices[0]);
    uint8_t pieces[FUZZ_CHOICES - 1];
    memcpy(pieces, choices + 1, sizeof pieces);
    if (pieces[0] + pieces[1] + pieces[2] == 0)
        pieces[0] = 1;
    nl_buffer whole = fuzz_decode(options, NULL, data, size), cut = fuzz_decode(options, pieces, data, size);
    fuzz_expect(fuzz_same_bytes(&whole, &cut), "a log in pieces is the same log");
    nl_buffer_free(&whole);
    nl_buffer_free(&cut);
}

#endif
