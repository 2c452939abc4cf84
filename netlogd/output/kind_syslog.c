/*
 * Syslog: each record a message, a line of text, with the record's level as its priority. It acknowledges nothing, so
 * that what was on its way when netlogd was killed may come twice.
 */
#include "config.h"

#include "kind.h"

#include "failure.h"
#include "options.h"

#include <stdlib.h>
#include <string.h>

static void *open_peer(const output_options *options)
{
    nl_writer *writer = nl_writer_open(options->target, &(nl_writer_options){.format = options->format});
    if (writer == NULL)
        failure("%s", nl_error_message());
    return writer;
}

static nl_status check(const nl_url *url, const output_options *options)
{
    (void)url;
    if (options->format == NL_FORMAT_NLB)
        return failure("syslog takes lines of text, not format nlb");
    nl_writer *writer = open_peer(options);
    if (writer != NULL)
        nl_writer_discard(writer);
    return writer != NULL ? NL_OK : NL_FAILED;
}

static nl_status deliver(void *peer, const char *data, size_t size, output_place place, size_t *taken)
{
    (void)place;
    nl_decoder *decoder = nl_decoder_new(NULL);
    const char *end = memrchr(data, '\n', size);
    size_t whole = end != NULL ? (size_t)(end + 1 - data) : 0;
    const nl_record *record;
    nl_status status = NL_OK;
    nl_decoder_feed(decoder, data, whole);
    while (status == NL_OK && nl_decoder_next(decoder, &record) == NL_OK)
        status = nl_writer_put(peer, record);
    nl_decoder_free(decoder);
    if (status != NL_OK)
        return failure("%s", nl_error_message());
    *taken = whole;
    return NL_OK;
}

static void close_peer(void *peer)
{
    nl_writer_discard(peer);
}

const output_kind output_kind_syslog = {
    .name = "syslog",
    .format = NL_FORMAT_ULM,
    .check = check,
    .open = open_peer,
    .deliver = deliver,
    .close = close_peer,
};
