#include "config.h"

#include "transport/destination.h"

#include "base/error.h"
#include "record/block_read.h"

#include <string.h>

static nl_destination *open_kind(const nl_url *url, const nl_destination_options *options)
{
    switch (url->scheme) {
    case NL_SCHEME_STDIO:
    case NL_SCHEME_FILE:
        return nl_file_destination_open(url, options);
    case NL_SCHEME_NETLOG:
    case NL_SCHEME_NETLOGS:
    case NL_SCHEME_UNIX:
        return nl_socket_destination_open(url, options);
    case NL_SCHEME_SYSLOG:
        return nl_syslog_destination_open(url, options);
    case NL_SCHEME_MEMORY:
        return nl_memory_destination_open(url);
    case NL_SCHEME_UDP:
    case NL_SCHEME_INHERITED:
    case NL_SCHEME_NATS:
    case NL_SCHEME_OTLP:
    case NL_SCHEME_OTLP_HTTP:
    case NL_SCHEME_SYSLOG_UDP:
    case NL_SCHEME_SYSLOG_TCP:
    case NL_SCHEME_SYSLOG_TLS:
        break;
    }
    nl_error_set(NL_ERROR_UNSUPPORTED, "open %s: URLs of this scheme cannot be written", url->text);
    return NULL;
}

nl_destination *nl_destination_open(const nl_url *url, const nl_destination_options *options)
{
    nl_destination *destination = open_kind(url, options);
    if (destination != NULL)
        destination->format = options->format;
    return destination;
}

static size_t whole_blocks(const char *data, size_t size)
{
    size_t whole = 0;
    nl_block_header header;
    for (size_t block; (block = nl_block_whole_size(data + whole, size - whole, &header)) > 0;)
        whole += block;
    return whole;
}

size_t nl_records_whole(nl_format format, const char *data, size_t size)
{
    if (format == NL_FORMAT_NLB)
        return whole_blocks(data, size);
    const char *newline = size == 0 ? NULL : memrchr(data, '\n', size);
    return newline == NULL ? 0 : (size_t)(newline + 1 - data);
}

size_t nl_records_first(nl_format format, const char *data, size_t size)
{
    nl_block_header header;
    if (format != NL_FORMAT_NLB) {
        const char *newline = size == 0 ? NULL : memchr(data, '\n', size);
        return newline == NULL ? size : (size_t)(newline + 1 - data);
    }
    size_t block = nl_block_whole_size(data, size, &header);
    return block > 0 ? block : size;
}

uint64_t nl_records_count(nl_format format, const char *data, size_t size)
{
    uint64_t count = 0;
    nl_block_header header;
    if (format != NL_FORMAT_NLB)
        for (size_t i = 0; i < size; i++)
            count += data[i] == '\n';
    else
        for (size_t at = 0, block; (block = nl_block_whole_size(data + at, size - at, &header)) > 0; at += block)
            count += header.record_count;
    return count;
}

size_t nl_destination_whole(const nl_destination *destination, const char *data, size_t size)
{
    return nl_records_whole(destination->format, data, size);
}

nl_status nl_destination_write(nl_destination *destination, nl_level level, const char *data, size_t size,
                               size_t *written)
{
    *written = 0;
    return destination->kind->write(destination, level, data, size, written);
}

int64_t nl_destination_size(nl_destination *destination)
{
    return destination->kind->size != NULL ? destination->kind->size(destination) : -1;
}

nl_status nl_destination_exchange(nl_destination *destination, nl_exchange *exchange)
{
    return destination->kind->exchange != NULL ? destination->kind->exchange(destination, exchange) : NL_OFF;
}

void nl_destination_poll(nl_destination *destination)
{
    if (destination->kind->poll != NULL)
        destination->kind->poll(destination);
}

void nl_destination_after_fork(nl_destination *destination)
{
    if (destination->kind->after_fork != NULL)
        destination->kind->after_fork(destination);
}

nl_status nl_destination_close(nl_destination *destination, bool keep)
{
    return destination->kind->close(destination, keep);
}
