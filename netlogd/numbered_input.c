#include "config.h"

#include "numbered_input.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "counts.h"
#include "flush.h"
#include "gaps.h"
#include "output/outputs.h"
#include "record/encoder.h"
#include "records.h"
#include "server.h"

#include <stdlib.h>
#include <string.h>

struct numbered_input {
    exporter exporter; /* must be the first member, because a pointer to it is converted to a pointer to the input */
    const char *name;
    unsigned char stream[16];
    nl_encoder *encoder;
    nl_decoder *decoder;
    nl_buffer block;
    bool numbered;
    uint64_t count;    /* records in the block */
    uint64_t rejected; /* records that are too large for a block, and have not been reported yet */
    uint64_t malformed, gaps;
};

static void encode_record(exporter *e, const nl_record *record, bool typed, sink *s)
{
    numbered_input *in = (numbered_input *)e;
    (void)typed, (void)s;
    if (nl_encoder_put(in->encoder, record) == NL_OK)
        in->count++;
    else
        in->rejected++;
}

static const exporter_kind encode_kind = {.name = "stream", .size = sizeof(numbered_input), .put = encode_record};

static void reject_input(void *user, const nl_malformed *what)
{
    numbered_input *in = user;
    records_reject(what, in->name, "", ++in->malformed);
}

static void note_lost_input(void *user, const nl_lost *what)
{
    numbered_input *in = user;
    gaps_note(what, in->name, "", ++in->gaps);
}

static void put_input_block(void *user, const nl_block_view *block)
{
    numbered_input *in = user;
    records_put_block(in->decoder, block, &in->numbered);
}

numbered_input *numbered_input_new(const char *name, const unsigned char stream[16])
{
    numbered_input *in = nl_memory_check(calloc(1, sizeof *in));
    in->exporter.kind = &encode_kind;
    in->name = name;
    memcpy(in->stream, stream, sizeof in->stream);
    in->encoder = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB});
    in->decoder = nl_decoder_new(&(nl_decoder_options){.source = name,
                                                       .fraction = server_settings()->fraction,
                                                       .on_malformed = reject_input,
                                                       .on_lost = note_lost_input,
                                                       .user = in,
                                                       .streams = outputs_streams()});
    return in;
}

void numbered_input_free(numbered_input *in)
{
    if (in == NULL)
        return;
    nl_encoder_free(in->encoder);
    nl_decoder_free(in->decoder);
    nl_buffer_free(&in->block);
    free(in);
}

uint64_t numbered_input_get_stored(const numbered_input *in, uint64_t otherwise)
{
    nl_stream_state state;
    if (!nl_streams_get(outputs_streams(), in->stream, &state))
        return otherwise;
    return state.gap_count > 0 ? state.gaps[0].from : state.next;
}

exporter *numbered_input_begin(numbered_input *in, uint64_t first)
{
    in->count = 0;
    in->block.size = 0;
    nl_encoder_finish(in->encoder, &in->block); /* drops a block that was not put */
    in->block.size = 0;
    nl_encoder_set_stream(in->encoder, in->stream, first);
    return &in->exporter;
}

uint64_t numbered_input_end(numbered_input *in)
{
    nl_encoder_finish(in->encoder, &in->block);
    return in->count;
}

void numbered_input_put(numbered_input *in, size_t bytes)
{
    const nl_record *record;
    uint64_t put = 0;
    counts_add(COUNT_BYTES, bytes);
    for (; in->rejected > 0; in->rejected--)
        reject_input(in, &(nl_malformed){.source = in->name, .reason = "the record is too large"});
    nl_decoder_on_block(in->decoder, records_want_blocks(), put_input_block, in);
    nl_decoder_feed(in->decoder, in->block.data, in->block.size);
    while (nl_decoder_next(in->decoder, &record) == NL_OK) {
        uint64_t sequence = nl_decoder_sequence(in->decoder);
        records_put(record, &sequence, in->name);
        put++;
    }
    counts_add(COUNT_RECORDS, put);
    flush_request(false);
}

void numbered_input_touch(const numbered_input *in)
{
    outputs_touch_stream(in->stream);
}
