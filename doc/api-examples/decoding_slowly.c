/* A decoder that waits while there is no room for more records, and answers questions for the time. */
#include <netlogger.h>
#include <stdio.h>

/* Who can take three records at a time asks for no more blocks while he has them. */
static bool has_room(void *user)
{
    return *(int *)user < 3;
}

/* What a sender asks: what is it, by your clock? The answer goes back on its connection. */
static void on_question(void *user, int64_t sent_ns)
{
    fprintf(user, "it was sent at %lld, and is read at %lld\n", (long long)sent_ns, (long long)nl_time_now_ns());
}

/* Two blocks of three records. */
static void make_blocks(nl_buffer *out)
{
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB});
    nl_record *record = nl_record_new();
    nl_record_set_event(record, "Tick", 4);
    for (int i = 0; i < 6; i++) {
        nl_encoder_put(encoder, record);
        if (i % 3 == 2)
            nl_encoder_finish(encoder, out);
    }
    nl_record_free(record);
    nl_encoder_free(encoder);
}

int main(void)
{
    nl_buffer input = {0};
    nl_decoder *decoder = nl_decoder_new(NULL);
    const nl_record *record;
    int held = 0, paused = 0, all = 0;
    make_blocks(&input);
    nl_decoder_ask(decoder, has_room, &held);
    nl_decoder_on_question(decoder, on_question, stdout);
    nl_decoder_feed(decoder, input.data, input.size);
    do {
        held = 0; /* what was taken has been worked off */
        while (nl_decoder_next(decoder, &record) == NL_OK) {
            held++;
            all++;
        }
        paused += nl_decoder_is_paused(decoder);
    } while (nl_decoder_is_paused(decoder));
    nl_decoder_free(decoder);
    nl_buffer_free(&input);
    return all == 6 && paused == 1 ? 0 : 1;
}
