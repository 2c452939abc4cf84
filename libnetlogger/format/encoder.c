#include "config.h"

#include "base/error.h"
#include "format/block_write.h"

#include <stdlib.h>

struct nl_encoder {
    nl_encoder_options options;
    nl_buffer ready;       /* lines, or blocks */
    nl_block_writer block; /* NL_FORMAT_NLB: the records behind those, not a block yet */
};

nl_encoder *nl_encoder_new(const nl_encoder_options *options)
{
    NL_REQUIRE(options->format != NL_FORMAT_UNKNOWN, "the format is not known");
    nl_encoder *encoder = calloc(1, sizeof *encoder);
    NL_REQUIRE(encoder != NULL, "out of memory");
    encoder->options = *options;
    return encoder;
}

void nl_encoder_free(nl_encoder *encoder)
{
    if (encoder == NULL)
        return;
    nl_buffer_free(&encoder->ready);
    nl_block_writer_free(&encoder->block);
    free(encoder);
}

static void finish_block(nl_encoder *encoder)
{
    static const nl_block_identity nobody;
    nl_block_finish(&encoder->block, &nobody, encoder->options.zstd_level, &encoder->ready);
}

static nl_status put_in_block(nl_encoder *encoder, const nl_record *record)
{
    if (nl_block_put(&encoder->block, record))
        return NL_OK;
    finish_block(encoder);
    return nl_block_put(&encoder->block, record) ? NL_OK : nl_error_set("a record is larger than format nlb allows");
}

nl_status nl_encoder_put(nl_encoder *encoder, const nl_record *record)
{
    const nl_encoder_options *options = &encoder->options;
    if (options->format == NL_FORMAT_NLB) {
        nl_status status = put_in_block(encoder, record);
        if (nl_block_is_full(&encoder->block))
            finish_block(encoder);
        return status;
    }
    if (!options->canonical && record->raw.data != NULL && record->raw_format == options->format) {
        nl_buffer_append(&encoder->ready, record->raw.data, record->raw.size);
        nl_buffer_append(&encoder->ready, "\n", 1);
    } else {
        nl_record_encode(record, options->format, &encoder->ready);
    }
    return NL_OK;
}

void nl_encoder_put_lines(nl_encoder *encoder, const char *lines, size_t size)
{
    NL_REQUIRE(encoder->options.format != NL_FORMAT_NLB, "the encoder's format is not text");
    nl_buffer_append(&encoder->ready, lines, size);
}

size_t nl_encoder_size(const nl_encoder *encoder)
{
    return encoder->ready.size + nl_block_size(&encoder->block);
}

void nl_encoder_finish(nl_encoder *encoder, nl_buffer *out)
{
    if (encoder->options.format == NL_FORMAT_NLB)
        finish_block(encoder);
    if (out->size == 0) {
        nl_buffer given = *out;
        *out = encoder->ready;
        encoder->ready = given;
    } else {
        nl_buffer_append(out, encoder->ready.data, encoder->ready.size);
        encoder->ready.size = 0;
    }
}
