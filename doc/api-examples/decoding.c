/* Bytes that come in pieces, from a socket for one: a decoder makes records of them, and knows what is missing. */
#include <netlogger.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Three records of a numbered stream as a block of the binary format. */
static void make_block(nl_buffer *out, const unsigned char stream[16], uint64_t first)
{
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB});
    nl_record *record = nl_record_new();
    nl_record_set_event(record, "Tick", 4);
    nl_encoder_set_stream(encoder, stream, first);
    for (int i = 0; i < 3; i++)
        nl_encoder_put(encoder, record);
    nl_encoder_finish(encoder, out);
    nl_record_free(record);
    nl_encoder_free(encoder);
}

static void count_lost(void *user, const nl_lost *what)
{
    *(uint64_t *)user += what->count;
}

static void take_block(void *user, const nl_block_view *block)
{
    nl_streams *streams = user;
    nl_number_range fresh[NL_STREAM_GAPS_MOST + 1];
    printf("a block of %" PRIu64 " records, %zu of its ranges are new\n", block->record_count,
           nl_streams_take(streams, block, fresh));
}

static void print_stream(void *user, const nl_stream_state *state)
{
    fprintf(user, "number %" PRIu64 " is expected next\n", state->next);
}

/* Feeds input by pieces of ten bytes; returns the number of records. */
static int decode(nl_decoder *decoder, const nl_buffer *input)
{
    const nl_record *record;
    int count = 0;
    for (size_t at = 0; at < input->size; at += 10) {
        nl_decoder_feed(decoder, input->data + at, input->size - at < 10 ? input->size - at : 10);
        while (nl_decoder_next(decoder, &record) == NL_OK)
            count++;
        if (nl_decoder_is_midway(decoder) && nl_decoder_held(decoder) > 1 << 24)
            return -1; /* a record that has no end: who sends such is not to be trusted */
    }
    nl_decoder_finish(decoder);
    while (nl_decoder_next(decoder, &record) == NL_OK)
        count++;
    return count;
}

/* The same streams for two connections: what was lost on the way is known, what is sent again is passed over. */
static bool over_two_connections(const nl_buffer *input, const unsigned char stream[16])
{
    uint64_t lost = 0;
    nl_streams *streams = nl_streams_new(), *other = nl_streams_new();
    nl_decoder_options options = {.streams = streams, .on_lost = count_lost, .user = &lost};
    nl_decoder *first = nl_decoder_new(&options), *second = nl_decoder_new(&options);
    int once = decode(first, input), again = decode(second, input);
    printf("%d records, the last one is number %" PRIu64 ", in %s; %" PRIu64 " lost\n", once,
           nl_decoder_sequence(first), nl_format_name(nl_decoder_format(first)), lost);
    bool good = once == 6 && again == 0 && lost == 7 && nl_decoder_get_stats(second)->repeated == 6;

    /* What is remembered can be kept in a file, and given to a new process. */
    nl_stream_state state;
    nl_streams_list(streams, print_stream, stdout);
    good = good && nl_streams_get(streams, stream, &state) && state.next == 13;
    nl_streams_set(other, &state);
    nl_decoder_free(first);
    nl_decoder_free(second);
    nl_streams_free(streams);
    nl_streams_free(other);
    return good;
}

/* Blocks whole, for who passes them on; with nl_decoder_on_unread_block even without reading their records. */
static bool as_blocks(const nl_buffer *input)
{
    nl_streams *streams = nl_streams_new();
    nl_decoder *taking = nl_decoder_new(NULL), *unread = nl_decoder_new(NULL);
    nl_decoder_on_block(taking, true, take_block, streams);
    nl_decoder_on_unread_block(unread, take_block, streams);
    bool good = decode(taking, input) == 0 && decode(unread, input) == 0 && nl_decoder_get_stats(unread)->blocks == 2;
    nl_decoder_free(taking);
    nl_decoder_free(unread);
    nl_streams_free(streams);
    return good;
}

/* One stream out of two files: what is missing from both is known when both were read. */
static bool out_of_two_files(const unsigned char stream[16])
{
    nl_sequences *sequences = nl_sequences_new();
    uint64_t lost = 0, next = 0;
    int64_t latest_ns = 0;
    for (uint64_t first = 6; first <= 12; first += 6) {
        nl_buffer file = {0};
        nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.sequences = sequences});
        make_block(&file, stream, 12 - first);
        make_block(&file, stream, first + 3);
        decode(decoder, &file);
        nl_decoder_free(decoder);
        nl_buffer_free(&file);
    }
    nl_sequences_list_missing(sequences, count_lost, &lost);
    bool good = nl_sequences_is_complete(sequences) && nl_sequences_get(sequences, stream, &next, &latest_ns);
    printf("%" PRIu64 " of %" PRIu64 " records are missing\n", lost, next);
    nl_sequences_free(sequences);
    return good && lost == 6 && next == 18;
}

int main(void)
{
    const unsigned char stream[16] = "an example's own";
    nl_buffer input = {0};
    make_block(&input, stream, 0);
    make_block(&input, stream, 10); /* numbers 3 to 9 are missing */
    bool good = over_two_connections(&input, stream) && as_blocks(&input) && out_of_two_files(stream);
    nl_buffer_free(&input);
    return good ? 0 : 1;
}
