/* A helper for decoder tests: decodes an input in pieces, and collects the records as text. */
#ifndef NETLOGGER_TESTS_DECODING_H
#define NETLOGGER_TESTS_DECODING_H

#include "text_support.h"
#include "reader/decoder.h"
#include "record/line_scanner.h"

/* The result of decoding an input. */
typedef struct decoded {
    nl_buffer text; /* the records in ULM and the output of the callbacks, in order */
    nl_decoder_stats stats;
    nl_format format;
} decoded;

/* Passes over the next plain lines, and appends their records. Returns whether there were plain lines. */
static inline bool drain_plain(nl_decoder *decoder, nl_buffer *text)
{
    nl_scanned_line lines[3];
    const char *start;
    const size_t count = nl_decoder_next_plain(decoder, lines, sizeof lines / sizeof lines[0], &start);
    for (size_t i = 0; i < count; i++) {
        nl_record *record = nl_record_new();
        assert_true(nl_record_decode(record, nl_decoder_format(decoder), NL_FRACTION_DECIMAL,
                                     start + nl_line_offset(lines[i]), nl_line_size(lines[i])) == NL_OK);
        assert_true(record->time_ns == lines[i].time_ns);
        nl_record_encode(record, NL_FORMAT_ULM, text);
        nl_record_free(record);
    }
    return count > 0;
}

/* If plain is true, passes over plain lines (nl_decoder_next_plain). */
static inline void drain_decoder(nl_decoder *decoder, bool plain, nl_status last, nl_buffer *text)
{
    const nl_record *record;
    nl_status status;
    for (;;) {
        while (plain && drain_plain(decoder, text))
            ;
        status = nl_decoder_next(decoder, &record);
        if (status != NL_OK)
            break;
        if (record->flags & NL_RECORD_UNTERMINATED)
            nl_buffer_append(text, "...", 3);
        nl_record_encode(record, NL_FORMAT_ULM, text);
    }
    assert_int_equal(status, last);
}

/*
 * Feeds the input in pieces of piece bytes (0: random sizes). Each piece has its own memory, which is freed before the
 * next piece is fed, so that a sanitizer detects pointers that the decoder keeps too long. The callbacks get the text
 * buffer as user. For `plain`, see drain_decoder.
 */
static inline decoded decode_in_pieces(const char *input, size_t size, size_t piece, bool plain,
                                       nl_decoder_options options)
{
    decoded d = {0};
    options.user = &d.text;
    nl_decoder *decoder = nl_decoder_new(&options);
    uint64_t seed = size * 2 + 1;
    while (size > 0) {
        size_t now = piece != 0 ? piece : 1 + random_below(&seed, 200);
        now = now < size ? now : size;
        char *copy = malloc(now);
        assert_non_null(copy);
        memcpy(copy, input, now);
        nl_decoder_feed(decoder, copy, now);
        drain_decoder(decoder, plain, NL_AGAIN, &d.text);
        free(copy);
        input += now;
        size -= now;
    }
    nl_decoder_finish(decoder);
    drain_decoder(decoder, plain, NL_END, &d.text);
    drain_decoder(decoder, plain, NL_END, &d.text);
    nl_buffer_append(&d.text, "", 1);
    d.stats = *nl_decoder_get_stats(decoder);
    d.format = nl_decoder_format(decoder);
    nl_decoder_free(decoder);
    return d;
}

#endif
