#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "transport/destination.h"
#include "transport/dial.h"
#include "transport/writer.h"
#include "record/encoder.h"
#include "record/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nl_writer {
    nl_destination *destination;
    nl_format format;
    size_t buffer_size;
    bool line_levels; /* for syslog: each write has records of only one level */
    nl_level level;   /* level of the buffered records */
    nl_encoder *encoder;
    nl_buffer buffer; /* encoded records; later records are in the encoder */
};

/* Stores level 0 as -1, because 0 is the destination's default. */
static bool set_zstd(void *settings, const nl_option *row, const char *value)
{
    nl_writer_options *options = settings;
    if (!nl_option_set_by_type(row, options, value))
        return false;
    if (options->zstd_level == 0)
        options->zstd_level = -1;
    return true;
}

static const char *get_zstd(const void *settings, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    int level = ((const nl_writer_options *)settings)->zstd_level;
    snprintf(scratch, NL_OPTION_TEXT_SIZE, "%d", level > 0 ? level : 0);
    return index == 0 && level != 0 ? scratch : NULL;
}

const nl_option nl_writer_rows[] = {
    {.name = "format",
     .type = NL_OPTION_CHOICE,
     .list_choices = nl_format_choices,
     .initial = "(nlb for collectors; for files, the format of the suffix, such as .nlb; otherwise ulm)",
     NL_OPTION_MEMBER(nl_writer_options, format),
     .help = "Format of the records. A collector acknowledges only the binary format, nlb. If the "
             "collector or the connection fails, records in a text format (ulm, bp, logfmt) can be lost, and NetLogger "
             "does not count them. This option does not set the format of the collector's log"},
    {.name = "zstd",
     .type = NL_OPTION_COUNT,
     .maximum = 19,
     .value = "LEVEL",
     .initial = "(1 for files that NetLogger's programs write, otherwise 0)",
     .set = set_zstd,
     .get = get_zstd,
     NL_OPTION_MEMBER(nl_writer_options, zstd_level),
     .help = "Compression level of nlb blocks; 0 disables compression. Text is never compressed"},
    {.name = "append",
     .type = NL_OPTION_CHOICE,
     .choices = "yes|no",
     .commands = "file",
     .initial = "yes",
     NL_OPTION_MEMBER(nl_writer_options, truncate),
     .help = "Append to the file; the value no truncates the file first"},
    {.name = "timeout",
     .type = NL_OPTION_DURATION,
     .minimum = 1000000,
     .maximum = 86400 * NL_NS_PER_SECOND,
     .unit = 1000000,
     .initial = "10s",
     NL_OPTION_MEMBER(nl_writer_options, timeout_ms),
     .help = "For collectors, the maximum time of a write, including connecting and acknowledgement, but not the host "
             "name lookup. For pipes, the maximum time that opening and writing wait for a reader"},
    {0},
};

static nl_status nl_writer_read_options(const nl_url *url, nl_writer_options *options)
{
    nl_dialer_options tls = {0};
    nl_status status =
        nl_url_read_options(url, (const nl_url_rows[]){{nl_writer_rows, options}, {nl_dialer_rows, &tls}, {0}});
    return status == NL_OK ? NL_OK : nl_error_prepend("open %s", url->text);
}

nl_format nl_writer_url_format(const nl_url *url)
{
    const char *option = nl_url_option_value(url, "format");
    if (option != NULL)
        return nl_format_parse(option);
    if (nl_url_is_collector(url))
        return NL_FORMAT_NLB;
    return url->scheme == NL_SCHEME_FILE ? nl_format_of_name(url->path) : NL_FORMAT_UNKNOWN;
}

void nl_writer_options_settle(nl_writer_options *options, const nl_url *url)
{
    if (options->format == NL_FORMAT_UNKNOWN)
        options->format = nl_writer_url_format(url);
    if (options->format == NL_FORMAT_UNKNOWN)
        options->format = NL_FORMAT_ULM;
}

static nl_status writer_close_writer(nl_writer *writer, bool keep)
{
    nl_status status = nl_destination_close(writer->destination, keep);
    nl_buffer_free(&writer->buffer);
    nl_encoder_free(writer->encoder);
    free(writer);
    return status;
}

static nl_writer *nl_writer_open_url(const nl_url *url, const nl_writer_options *options, const char *ident)
{
    nl_writer_options settled = options != NULL ? *options : (nl_writer_options){0};
    if (nl_writer_read_options(url, &settled) != NL_OK)
        return NULL;
    nl_writer_options_settle(&settled, url);
    if (settled.zstd_level == 0)
        settled.zstd_level = url->scheme == NL_SCHEME_FILE ? 1 : -1;
    nl_destination_options how = {.truncate = settled.truncate,
                                  .atomic = settled.atomic,
                                  .patient = true,
                                  .timeout_ms = settled.timeout_ms,
                                  .format = settled.format,
                                  .ident = ident};
    nl_destination *destination = nl_destination_open(url, &how);
    if (destination == NULL)
        return NULL;
    nl_writer *writer = nl_memory_check(calloc(1, sizeof *writer));
    if (writer == NULL) {
        nl_destination_close(destination, false);
        return NULL;
    }
    writer->destination = destination;
    writer->format = settled.format;
    /* Text is not compressed, because a destination must find the ends of records. */
    bool compress = settled.zstd_level > 0 && settled.format == NL_FORMAT_NLB;
    writer->encoder = nl_encoder_new(&(nl_encoder_options){
        .format = settled.format, .zstd_level = compress ? settled.zstd_level : 0, .canonical = settled.canonical});
    writer->buffer_size = settled.buffer_size;
    writer->line_levels = url->scheme == NL_SCHEME_SYSLOG;
    if (writer->encoder != NULL)
        return writer;
    writer_close_writer(writer, false);
    return NULL;
}

nl_writer *nl_writer_open(const char *url_text, const nl_writer_options *options)
{
    nl_url *url = nl_url_parse_for(url_text, NL_URL_WRITE);
    if (url == NULL)
        return NULL;
    nl_writer *writer = nl_writer_open_url(url, options, NULL);
    nl_url_free(url);
    return writer;
}

static nl_status write_buffer(nl_writer *writer)
{
    if (writer->buffer.size == 0)
        return NL_OK;
    size_t written;
    nl_status status =
        nl_destination_write(writer->destination, writer->level, writer->buffer.data, writer->buffer.size, &written);
    writer->buffer.size -= written;
    memmove(writer->buffer.data, writer->buffer.data + written, writer->buffer.size);
    return status;
}

nl_status nl_writer_flush(nl_writer *writer)
{
    nl_status status = nl_encoder_finish(writer->encoder, &writer->buffer);
    return status == NL_OK ? write_buffer(writer) : status;
}

static nl_status write_if_full(nl_writer *writer)
{
    bool full = writer->buffer.size + nl_encoder_size(writer->encoder) > writer->buffer_size;
    return full ? nl_writer_flush(writer) : NL_OK;
}

/* Flushes if the next records have another level and must be in a separate write. Returns NL_FAILED on failure. */
static nl_status writer_begin(nl_writer *writer, nl_level level)
{
    nl_status status = NL_OK;
    if (writer->line_levels && level != writer->level)
        status = nl_writer_flush(writer);
    writer->level = level;
    return status;
}

nl_status nl_writer_put(nl_writer *writer, const nl_record *record)
{
    NL_REQUIRE(writer != NULL && record != NULL, "writer or record is NULL", NL_FAILED);
    nl_status status = writer_begin(writer, record->level);
    if (status != NL_OK)
        return status;
    if (nl_encoder_put(writer->encoder, record) != NL_OK)
        return NL_FAILED;
    return write_if_full(writer);
}

nl_status nl_writer_put_moved(nl_writer *writer, struct nl_block_shapes *shapes, nl_string moved, int64_t time_ns)
{
    NL_REQUIRE(writer->format == NL_FORMAT_NLB, "the writer's format is text", NL_FAILED);
    return nl_encoder_put_moved(writer->encoder, shapes, moved, time_ns) == NL_OK ? write_if_full(writer) : NL_FAILED;
}

/*
 * Writes lines that would fill the empty buffer, without copying them. Keeps the lines that the destination did not
 * accept. Returns NL_FAILED on failure.
 */
static nl_status write_through(nl_writer *writer, const char *lines, size_t size)
{
    size_t written = 0;
    nl_status status = nl_destination_write(writer->destination, writer->level, lines, size, &written);
    if (written < size && nl_encoder_put_lines(writer->encoder, lines + written, size - written) != NL_OK)
        return NL_FAILED;
    return status;
}

nl_status nl_writer_put_text(nl_writer *writer, const char *lines, size_t size)
{
    NL_REQUIRE(writer->format != NL_FORMAT_NLB, "the writer's format is not text", NL_FAILED);
    nl_status status = writer_begin(writer, NL_LEVEL_NONE);
    if (status != NL_OK)
        return status;
    if (size >= writer->buffer_size && writer->buffer.size + nl_encoder_size(writer->encoder) == 0)
        return write_through(writer, lines, size);
    status = nl_encoder_put_lines(writer->encoder, lines, size);
    return status == NL_OK ? write_if_full(writer) : status;
}

nl_format nl_writer_get_format(const nl_writer *writer)
{
    return writer->format;
}

nl_status nl_writer_put_blocks(nl_writer *writer, const char *data, size_t size, size_t *taken)
{
    NL_REQUIRE(writer->format == NL_FORMAT_NLB, "the writer's format is text", NL_FAILED);
    size_t whole = nl_destination_whole(writer->destination, data, size);
    *taken = 0;
    if (nl_encoder_finish(writer->encoder, &writer->buffer) != NL_OK || /* earlier records must precede the blocks */
        !nl_buffer_append(&writer->buffer, data, whole))
        return NL_FAILED;
    *taken = whole;
    return write_if_full(writer);
}

nl_status nl_writer_close(nl_writer *writer)
{
    nl_status flushed = nl_writer_flush(writer);
    if (flushed == NL_OK)
        return writer_close_writer(writer, true);
    writer_close_writer(writer, false);
    return flushed;
}

void nl_writer_discard(nl_writer *writer)
{
    if (writer != NULL)
        writer_close_writer(writer, false);
}
