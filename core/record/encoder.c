#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "record/block_move.h"
#include "record/terminal.h"
#include "record/text.h"
#include "record/text_shapes.h"
#include "record/encoder.h"
#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

struct nl_encoder {
    nl_encoder_options options;
    nl_known_second second; /* time of the previous record as text */
    nl_buffer ready;        /* finished lines or blocks */
    nl_block_writer block;  /* NL_FORMAT_NLB: records that are not in a block yet */
    nl_block_identity identity;
    struct ZSTD_CCtx_s *zstd; /* compresses text; NULL until needed */
    nl_text_shapes *shapes;   /* shapes of the encoded text records; NULL until the second record */
    bool has_encoded;         /* a text record was encoded */
};

nl_encoder *nl_encoder_new(const nl_encoder_options *options)
{
    NL_REQUIRE(options->format != NL_FORMAT_UNKNOWN, "unknown format", NULL);
    nl_encoder *encoder = nl_memory_check(calloc(1, sizeof *encoder));
    if (encoder != NULL)
        encoder->options = *options;
    return encoder;
}

void nl_encoder_free(nl_encoder *encoder)
{
    if (encoder == NULL)
        return;
    nl_buffer_free(&encoder->ready);
    nl_block_writer_free(&encoder->block);
    ZSTD_freeCCtx(encoder->zstd);
    nl_text_shapes_free(encoder->shapes);
    free(encoder);
}

/* Finishes the block, if it has records. Keeps the records if memory runs out. Returns NL_FAILED on failure. */
static nl_status finish_block(nl_encoder *encoder)
{
    uint64_t next = encoder->identity.first_sequence + encoder->block.record_count;
    if (!nl_block_finish(&encoder->block, &encoder->identity, encoder->options.zstd_level, &encoder->ready))
        return NL_FAILED;
    encoder->identity.first_sequence = next;
    return NL_OK;
}

static nl_status put_in_block(nl_encoder *encoder, const nl_record *record)
{
    unsigned failures = nl_memory_failures;
    if (nl_block_put(&encoder->block, record) ||
        (nl_memory_failures == failures && finish_block(encoder) == NL_OK && nl_block_put(&encoder->block, record)))
        return NL_OK;
    if (nl_memory_failures != failures)
        return nl_error_set(NL_ERROR_MEMORY, "out of memory");
    if (record->field_count > NL_BLOCK_SHAPE_FIELDS_MAX)
        return nl_error_set(NL_ERROR_LIMIT, "a record has %zu fields, but the nlb format allows %d; use a text format",
                            record->field_count, NL_BLOCK_SHAPE_FIELDS_MAX);
    return nl_error_set(NL_ERROR_LIMIT, "a record is larger than the nlb format allows; use a text format");
}

static nl_status encoder_put_text(nl_encoder *encoder, const nl_record *record)
{
    const nl_text_format *format = nl_text_format_of(encoder->options.format);
    if (encoder->has_encoded && encoder->shapes == NULL)
        encoder->shapes = nl_text_shapes_new(format); /* if this fails, the record is encoded without a shape */
    encoder->has_encoded = true;
    const nl_text_shape *shape = encoder->shapes != NULL ? nl_text_shapes_find(encoder->shapes, record) : NULL;
    return nl_text_encode(format, record, shape, &encoder->second, &encoder->ready) ? NL_OK : NL_FAILED;
}

nl_status nl_encoder_put(nl_encoder *encoder, const nl_record *record)
{
    NL_REQUIRE(encoder != NULL && record != NULL, "encoder or record is NULL", NL_FAILED);
    if (record->flags & NL_RECORD_INCOMPLETE)
        return nl_memory_failed();
    const nl_encoder_options *options = &encoder->options;
    if (options->format == NL_FORMAT_NLB) {
        nl_status status = put_in_block(encoder, record);
        if (status == NL_OK && nl_block_is_full(&encoder->block))
            finish_block(encoder); /* if this fails, the call for the next record tries again */
        return status;
    }
    if (!options->canonical && record->raw.data != NULL && record->raw_format == options->format &&
        !nl_terminal_controls(record->raw.data, record->raw.size)) {
        nl_buffer *ready = &encoder->ready;
        if (!nl_buffer_reserve(ready, record->raw.size + 1))
            return NL_FAILED;
        memcpy(ready->data + ready->size, record->raw.data, record->raw.size);
        ready->size += record->raw.size + 1;
        ready->data[ready->size - 1] = '\n';
        return NL_OK;
    }
    return encoder_put_text(encoder, record);
}

nl_status nl_encoder_put_moved(nl_encoder *encoder, nl_block_shapes *shapes, nl_string moved, int64_t time_ns)
{
    nl_block_writer *w = &encoder->block;
    unsigned failures = nl_memory_failures;
    if (!nl_block_put_moved(w, shapes, moved, time_ns) &&
        (nl_memory_failures != failures || finish_block(encoder) != NL_OK ||
         !nl_block_put_moved(w, shapes, moved, time_ns)))
        return nl_memory_failures != failures
                   ? nl_error_set(NL_ERROR_MEMORY, "out of memory")
                   : nl_error_set(NL_ERROR_LIMIT, "a record is larger than the nlb format allows; use a text format");
    if (nl_block_is_full(w))
        finish_block(encoder); /* if this fails, the call for the next record tries again */
    return NL_OK;
}

nl_status nl_encoder_put_lines(nl_encoder *encoder, const char *lines, size_t size)
{
    NL_REQUIRE(encoder->options.format != NL_FORMAT_NLB, "the encoder's format is not text", NL_FAILED);
    return nl_buffer_append(&encoder->ready, lines, size) ? NL_OK : NL_FAILED;
}

nl_status nl_encoder_put_block(nl_encoder *encoder, const nl_block_view *block)
{
    NL_REQUIRE(encoder->options.format == NL_FORMAT_NLB, "the encoder's format is text", NL_FAILED);
    bool good = finish_block(encoder) == NL_OK && nl_block_repack(&encoder->block, block->bytes, block->expanded,
                                                                  encoder->options.zstd_level, &encoder->ready);
    return good ? NL_OK : NL_FAILED;
}

nl_status nl_encoder_set_stream(nl_encoder *encoder, const unsigned char stream[NL_BLOCK_STREAM_SIZE],
                                uint64_t first_sequence)
{
    static const unsigned char none[NL_BLOCK_STREAM_SIZE];
    if (stream == NULL)
        stream = none;
    bool same = memcmp(encoder->identity.stream, stream, sizeof none) == 0;
    if (same && (memcmp(stream, none, sizeof none) == 0 ||
                 encoder->identity.first_sequence + encoder->block.record_count == first_sequence))
        return NL_OK;
    if (finish_block(encoder) != NL_OK)
        return NL_FAILED;
    memcpy(encoder->identity.stream, stream, sizeof none);
    encoder->identity.first_sequence = first_sequence;
    return NL_OK;
}

size_t nl_encoder_size(const nl_encoder *encoder)
{
    return encoder->ready.size + nl_block_size(&encoder->block);
}

/* Appends the finished lines to `out` as one zstd frame. Returns NL_FAILED on failure. */
static nl_status finish_frame(nl_encoder *encoder, nl_buffer *out)
{
    if (encoder->zstd == NULL)
        encoder->zstd = ZSTD_createCCtx();
    if (encoder->zstd == NULL)
        return nl_memory_failed();
    ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_compressionLevel, encoder->options.zstd_level);
    ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_checksumFlag, 1);
    size_t bound = ZSTD_compressBound(encoder->ready.size);
    if (!nl_buffer_reserve(out, bound))
        return NL_FAILED;
    size_t packed =
        ZSTD_compress2(encoder->zstd, out->data + out->size, bound, encoder->ready.data, encoder->ready.size);
    if (ZSTD_isError(packed)) /* the buffer is large enough, so memory ran out */
        return nl_memory_failed();
    out->size += packed;
    encoder->ready.size = 0;
    return NL_OK;
}

nl_status nl_encoder_finish(nl_encoder *encoder, nl_buffer *out)
{
    bool binary = encoder->options.format == NL_FORMAT_NLB;
    if (binary && finish_block(encoder) != NL_OK)
        return NL_FAILED;
    if (encoder->ready.size == 0)
        return NL_OK;
    if (!binary && encoder->options.zstd_level > 0)
        return finish_frame(encoder, out);
    if (out->size == 0) {
        nl_buffer given = *out;
        *out = encoder->ready;
        encoder->ready = given;
    } else {
        if (!nl_buffer_append(out, encoder->ready.data, encoder->ready.size))
            return NL_FAILED;
        encoder->ready.size = 0;
    }
    return NL_OK;
}
