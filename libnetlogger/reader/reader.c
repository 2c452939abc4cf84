#include "config.h"

#include "reader/decoder_internal.h"

#include "base/error.h"
#include "transport/source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WAIT_MS = 1000,
    LOOKS = 256, /* at blocks' headers, of a seek that must not take long */
};

struct nl_reader {
    nl_source *source;
    nl_decoder *decoder;
    nl_status outcome; /* what to return once the decoder has handed out what is left */
    char *failure;     /* the words for it, which decoding what is left may overwrite */
    bool nonblocking;
    off_t sought; /* the blocks before it are passed over */
};

nl_reader *nl_reader_open(const char *url_text, const nl_reader_options *options)
{
    static const nl_reader_options defaults;
    if (options == NULL)
        options = &defaults;
    nl_url *url = nl_url_parse(url_text);
    if (url == NULL)
        return NULL;
    nl_source *source = nl_source_open(url, options->follow, options->nonblocking);
    nl_url_free(url);
    if (source == NULL)
        return NULL;
    nl_reader *reader = calloc(1, sizeof *reader);
    NL_REQUIRE(reader != NULL, "out of memory");
    nl_decoder_options decoding = options->decoder;
    if (decoding.source == NULL)
        decoding.source = url_text;
    reader->source = source;
    reader->decoder = nl_decoder_new(&decoding);
    reader->nonblocking = options->nonblocking;
    return reader;
}

void nl_reader_close(nl_reader *reader)
{
    if (reader == NULL)
        return;
    nl_decoder_free(reader->decoder);
    nl_source_close(reader->source);
    free(reader->failure);
    free(reader);
}

/* The input ends here, for good or because reading failed: the decoder's last record comes out before that is said. */
static void finish(nl_reader *reader, nl_status outcome)
{
    reader->outcome = outcome;
    if (outcome == NL_FAILED && (reader->failure = strdup(nl_error_message())) == NULL)
        nl_abort_call(__func__, "out of memory");
    nl_decoder_finish(reader->decoder);
}

/* Gets the decoder more to do. NL_OK when it has. */
static nl_status feed(nl_reader *reader)
{
    const char *data;
    size_t size;
    nl_status status = nl_source_read(reader->source, &data, &size);
    if (status == NL_OK)
        nl_decoder_feed(reader->decoder, data, size);
    else if (status == NL_END && nl_source_was_replaced(reader->source))
        finish(reader, NL_OK);
    else if (status != NL_AGAIN)
        finish(reader, status);
    else if (reader->nonblocking)
        return NL_AGAIN;
    else
        nl_source_wait(reader->source, WAIT_MS);
    return NL_OK;
}

nl_status nl_reader_next(nl_reader *reader, const nl_record **record)
{
    for (;;) {
        nl_status status = nl_decoder_next(reader->decoder, record);
        if (status == NL_OK)
            return NL_OK;
        if (status == NL_END) {
            if (reader->failure != NULL)
                nl_error_set("%s", reader->failure);
            if (reader->outcome != NL_OK)
                return reader->outcome;
            nl_decoder_restart(reader->decoder);
        }
        status = feed(reader);
        if (status != NL_OK)
            return status;
    }
}

/*
 * Moves *at on to where the first block begins that is not wholly before from_ns, or is none. False when it has looked
 * at most blocks, and there are more.
 */
static bool find_time(int fd, int64_t from_ns, size_t most, off_t *at)
{
    char bytes[NL_BLOCK_HEADER_SIZE];
    nl_block_header header;
    struct stat status;
    if (fstat(fd, &status) != 0)
        return true;
    for (size_t i = 0; i < most; i++) {
        ssize_t got = pread(fd, bytes, sizeof bytes, *at);
        if (got != (ssize_t)sizeof bytes || nl_block_parse_header(bytes, sizeof bytes, &header) != NL_OK)
            return true;
        if (header.record_count > 0 && header.max_time_ns >= from_ns)
            return true;
        if (nl_block_total_size(&header) > (size_t)(status.st_size - *at))
            return true;
        *at += (off_t)nl_block_total_size(&header);
    }
    return false;
}

nl_status nl_reader_seek(nl_reader *reader, int64_t from_ns)
{
    int fd = nl_source_unread_file(reader->source);
    if (fd < 0)
        return NL_OK;
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* what lies between the headers is not wanted */
    bool found = find_time(fd, from_ns, reader->nonblocking ? LOOKS : SIZE_MAX, &reader->sought);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (!found)
        return NL_AGAIN;
    if (reader->sought == 0)
        return NL_OK;
    reader->decoder->in.end_offset = (uint64_t)reader->sought;
    return nl_source_begin_at(reader->source, (uint64_t)reader->sought);
}

nl_format nl_reader_format(const nl_reader *reader)
{
    return nl_decoder_format(reader->decoder);
}

const nl_decoder_stats *nl_reader_get_stats(const nl_reader *reader)
{
    return nl_decoder_get_stats(reader->decoder);
}

uint64_t nl_reader_size(const nl_reader *reader)
{
    return nl_source_size(reader->source);
}

uint64_t nl_reader_position(const nl_reader *reader)
{
    return nl_source_position(reader->source);
}
