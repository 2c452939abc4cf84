#include "config.h"

#include "record/format_info.h"
#include "base/error.h"
#include "base/memory.h"
#include "record/number.h"
#include "transport/destination.h"
#include "transport/dial.h"
#include "transport/writer_internal.h"
#include "record/encoder.h"
#include "record/format.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ZSTD_LEVEL_MAX = 19 };

struct nl_writer {
    nl_destination *destination;
    nl_format format;
    size_t buffer_size;
    bool line_levels; /* syslog: records of different levels are not written together */
    nl_level level;   /* of what is buffered */
    nl_encoder *encoder;
    nl_buffer buffer; /* what was encoded before the rest, which is in the encoder */
};

nl_status nl_writer_read_option(const nl_url *url, const nl_url_option *option, nl_writer_options *options)
{
    const char *name = option->name, *value = option->value, *values;
    char formats[100];
    if (strcmp(name, "append") == 0) {
        values = "yes or no";
        bool no = strcasecmp(value, "no") == 0 || strcmp(value, "0") == 0;
        bool yes = strcasecmp(value, "yes") == 0 || strcmp(value, "1") == 0;
        options->truncate = no;
        if (no || yes)
            return NL_OK;
    } else if (strcmp(name, "format") == 0) {
        nl_format_list(formats, sizeof formats);
        values = formats;
        options->format = nl_format_parse(value);
        if (options->format != NL_FORMAT_UNKNOWN)
            return NL_OK;
    } else if (strcmp(name, "zstd") == 0) {
        values = "from 0 (not compressed) to 19";
        size_t level;
        if (nl_size_parse(value, &level) && level <= ZSTD_LEVEL_MAX) {
            options->zstd_level = level == 0 ? -1 : (int)level;
            return NL_OK;
        }
    } else if (strcmp(name, "timeout") == 0) {
        values = "seconds, more than 0 and at most 86400";
        double seconds;
        if (nl_number_parse_double((nl_string){value, strlen(value)}, &seconds) && seconds > 0 && seconds <= 86400) {
            options->timeout_ms = (int)(seconds * 1000 + 0.999); /* a part of a millisecond is one */
            return NL_OK;
        }
    } else {
        if (!nl_dialer_takes_option(url, name))
            return NL_END;
        values = "not empty";
        if (*value != '\0')
            return NL_OK;
    }
    return nl_error_set(NL_ERROR_INVALID, "\"%s\" is no value for option %s, which is %s", value, name, values);
}

nl_status nl_writer_read_options(const nl_url *url, nl_writer_options *options)
{
    for (size_t i = 0; i < url->option_count; i++) {
        nl_status status = nl_writer_read_option(url, &url->options[i], options);
        if (status == NL_END)
            nl_error_set(NL_ERROR_INVALID, "unknown option \"%s\": append, format, zstd and timeout are known%s",
                         url->options[i].name, url->scheme == NL_SCHEME_NETLOGS ? ", and ca, cert, key and name" : "");
        if (status != NL_OK)
            return nl_error_prepend("open %s", url->text);
    }
    return NL_OK;
}

/* Settles what was left open. */
static void settle(const nl_url *url, nl_writer_options *options)
{
    bool file = url->scheme == NL_SCHEME_FILE;
    if (options->format == NL_FORMAT_UNKNOWN && file)
        options->format = nl_format_of_name(url->path);
    if (options->format == NL_FORMAT_UNKNOWN)
        options->format = NL_FORMAT_ULM;
    if (options->zstd_level == 0)
        options->zstd_level = file ? 1 : -1;
}

static nl_status close_writer(nl_writer *writer, bool keep)
{
    nl_status status = nl_destination_close(writer->destination, keep);
    nl_buffer_free(&writer->buffer);
    nl_encoder_free(writer->encoder);
    free(writer);
    return status;
}

nl_writer *nl_writer_open_url(const nl_url *url, const nl_writer_options *options, const char *ident)
{
    nl_writer_options settled = options != NULL ? *options : (nl_writer_options){0};
    if (nl_writer_read_options(url, &settled) != NL_OK)
        return NULL;
    settle(url, &settled);
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
    /* Text is not compressed: a destination must be able to tell whole records from parts. */
    bool compress = settled.zstd_level > 0 && settled.format == NL_FORMAT_NLB;
    writer->encoder = nl_encoder_new(&(nl_encoder_options){
        .format = settled.format, .zstd_level = compress ? settled.zstd_level : 0, .canonical = settled.canonical});
    writer->buffer_size = settled.buffer_size;
    writer->line_levels = url->scheme == NL_SCHEME_SYSLOG;
    if (writer->encoder != NULL)
        return writer;
    close_writer(writer, false);
    return NULL;
}

nl_writer *nl_writer_open(const char *url_text, const nl_writer_options *options)
{
    nl_url *url = nl_url_parse(url_text);
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

/* After something was added. */
static nl_status write_if_full(nl_writer *writer)
{
    bool full = writer->buffer.size + nl_encoder_size(writer->encoder) > writer->buffer_size;
    return full ? nl_writer_flush(writer) : NL_OK;
}

/* Before something of that level is added. */
static nl_status begin(nl_writer *writer, nl_level level)
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
    nl_status status = begin(writer, record->level);
    if (status != NL_OK)
        return status;
    if (nl_encoder_put(writer->encoder, record) != NL_OK)
        return NL_FAILED;
    return write_if_full(writer);
}

/* Lines that are as much as the buffer holds, nothing being in it: they go their way without being copied. */
static nl_status write_through(nl_writer *writer, const char *lines, size_t size)
{
    size_t written = 0;
    nl_status status = nl_destination_write(writer->destination, writer->level, lines, size, &written);
    if (written < size && nl_encoder_put_lines(writer->encoder, lines + written, size - written) != NL_OK)
        return NL_FAILED;
    return status;
}

nl_status nl_writer_put_text(nl_writer *writer, nl_level level, const char *lines, size_t size)
{
    NL_REQUIRE(writer->format != NL_FORMAT_NLB, "the writer's format is not text", NL_FAILED);
    nl_status status = begin(writer, level);
    if (status != NL_OK)
        return status;
    if (size >= writer->buffer_size && writer->buffer.size + nl_encoder_size(writer->encoder) == 0)
        return write_through(writer, lines, size);
    status = nl_encoder_put_lines(writer->encoder, lines, size);
    return status == NL_OK ? write_if_full(writer) : status;
}

nl_status nl_writer_put_blocks(nl_writer *writer, const char *data, size_t size, size_t *taken)
{
    NL_REQUIRE(writer->format == NL_FORMAT_NLB, "the writer's format is text", NL_FAILED);
    size_t whole = nl_destination_whole(writer->destination, data, size);
    *taken = 0;
    if (nl_encoder_finish(writer->encoder, &writer->buffer) != NL_OK || /* what was put before goes before */
        !nl_buffer_append(&writer->buffer, data, whole))
        return NL_FAILED;
    *taken = whole;
    return write_if_full(writer);
}

nl_status nl_writer_close(nl_writer *writer)
{
    nl_status flushed = nl_writer_flush(writer);
    if (flushed == NL_OK)
        return close_writer(writer, true);
    close_writer(writer, false);
    return flushed;
}

void nl_writer_discard(nl_writer *writer)
{
    if (writer != NULL)
        close_writer(writer, false);
}
