/* A helper for decoder tests: decodes an input in pieces, and collects the records as text. */
#ifndef NETLOGGER_TESTS_DECODING_H
#define NETLOGGER_TESTS_DECODING_H

#include "text_support.h"
#include "reader/decoder.h"

/* The result of decoding an input. */
typedef struct decoded {
    nl_buffer text; /* the records in ULM and the output of the callbacks, in order */
    nl_decoder_stats stats;
    nl_format format;
} decoded;

static inline void drain_decoder(nl_decoder *decoder, nl_status last, nl_buffer *text)
{
    const nl_record *record;
    nl_status status;
    while ((status = nl_decoder_next(decoder, &record)) == NL_OK) {
        if (record->flags & NL_RECORD_UNTERMINATED)
            nl_buffer_append(text, "...", 3);
        nl_record_encode(record, NL_FORMAT_ULM, text);
    }
    assert_int_equal(status, last);
}

/*
 * Feeds the input in pieces of piece bytes (0: random sizes). Each piece has its own memory, which is freed before the
 * next piece is fed, so that a sanitizer detects pointers that the decoder keeps too long. The callbacks get the text
 * buffer as user.
 */
static inline decoded decode_in_pieces(const char *input, size_t size, size_t piece, nl_decoder_options options)
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
        drain_decoder(decoder, NL_AGAIN, &d.text);
        free(copy);
        input += now;
        size -= now;
    }
    nl_decoder_finish(decoder);
    drain_decoder(decoder, NL_END, &d.text);
    drain_decoder(decoder, NL_END, &d.text);
    nl_buffer_append(&d.text, "", 1);
    d.stats = *nl_decoder_get_stats(decoder);
    d.format = nl_decoder_format(decoder);
    nl_decoder_free(decoder);
    return d;
}

#endif
