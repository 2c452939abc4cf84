/* Writing records: a writer into any destination, an encoder into memory, and what a kill left of a file. */
#include <netlogger.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char line[] = "DATE=20260131120000.000001 HOST=a PROG=b LVL=Usage NL.EVNT=One\n";

static void keep_block(void *user, const nl_block_view *block)
{
    nl_encoder_put_block(user, block); /* as it is */
}

/* Lines and records, gathered until they are asked for. */
static bool encode(nl_record *record, nl_buffer *blocks)
{
    nl_buffer lines = {0};
    nl_encoder *text = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_ULM});
    nl_encoder *binary = nl_encoder_new(&(nl_encoder_options){.format = NL_FORMAT_NLB, .zstd_level = 1});
    nl_encoder_put_lines(text, line, strlen(line));
    bool good = nl_encoder_put(text, record) == NL_OK && nl_encoder_put(binary, record) == NL_OK &&
                nl_encoder_size(text) > strlen(line);
    nl_encoder_finish(text, &lines);
    nl_encoder_set_stream(binary, NULL, 0);
    nl_encoder_finish(binary, blocks);

    /* Blocks that a decoder finds are put into another encoder without being read. */
    nl_decoder *decoder = nl_decoder_new(NULL);
    nl_decoder_on_unread_block(decoder, keep_block, binary);
    nl_decoder_feed(decoder, blocks->data, blocks->size);
    const nl_record *none;
    good = good && nl_decoder_next(decoder, &none) == NL_AGAIN && nl_encoder_size(binary) > 0;
    nl_encoder_finish(binary, blocks);
    nl_decoder_free(decoder);
    nl_encoder_free(binary);
    nl_encoder_free(text);
    nl_buffer_free(&lines);
    return good;
}

/* A log that is rotated: when its file was moved away, a new one is begun. */
static bool rotate(const nl_record *record)
{
    nl_writer *writer = nl_writer_open("writing.log", &(nl_writer_options){.truncate = true, .buffer_size = 65536});
    bool good = writer != NULL && nl_writer_put_text(writer, NL_USAGE, line, strlen(line)) == NL_OK &&
                nl_writer_flush(writer) == NL_OK && rename("writing.log", "writing.log.1") == 0 &&
                nl_writer_reopen(writer) == NL_OK && nl_writer_put(writer, record) == NL_OK;
    return nl_writer_close(writer) == NL_OK && good;
}

/* A result that is there whole, or not at all. */
static bool all_or_nothing(const nl_buffer *blocks, bool done)
{
    size_t taken;
    nl_writer *writer = nl_writer_open("writing.nlb", &(nl_writer_options){.atomic = true});
    bool good = writer != NULL && nl_writer_put_blocks(writer, blocks->data, blocks->size, &taken) == NL_OK &&
                taken == blocks->size;
    if (!done) {
        nl_writer_discard(writer); /* what was there stays */
        return good;
    }
    return nl_writer_close(writer) == NL_OK && good;
}

/* Who goes on with a file after a kill cuts off what is no whole record. */
static bool mend(const char *path)
{
    uint64_t size, whole;
    FILE *file = fopen(path, "a");
    if (file == NULL || fputs("DATE=2026013112", file) < 0 || fclose(file) != 0)
        return false;
    return nl_archive_find_end(path, &size, &whole) == NL_OK && whole == size - 15 && truncate(path, (off_t)whole) == 0;
}

int main(void)
{
    nl_buffer blocks = {0};
    nl_record *record = nl_record_new();
    nl_record_set_time(record, nl_time_now_ns());
    nl_record_set_event(record, "Two", 3);
    bool good = encode(record, &blocks) && rotate(record) && all_or_nothing(&blocks, false) &&
                all_or_nothing(&blocks, true) && mend("writing.log.1");
    nl_record_free(record);
    nl_buffer_free(&blocks);
    return good ? 0 : 1;
}
