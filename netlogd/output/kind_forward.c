/*
 * Output to another collector in acknowledged blocks. The other collector recognizes repeated blocks by their streams
 * and numbers, and stores them only once. If netlogd forwards a whole block, the block keeps its producer's stream. All
 * other records belong to this output's own stream (output.c).
 */
#include "config.h"

#include "kind.h"

#include "options.h"
#include "base/text.h"
#include "transport/destination.h"
#include "transport/dial.h"
#include "transport/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 10000 };

static const nl_url_rows own_tables[] = {{nl_dialer_rows, NULL}, {0}};

/* Returns the URL with only the options for a writer. The caller frees it. */
static char *url_for_writer(const output_options *options)
{
    nl_buffer url = {0};
    nl_buffer_append_text(&url, options->target);
    bool any = false;
    for (const nl_option *row = nl_dialer_rows; row->name != NULL; row++) {
        const char *value = nl_url_option_value(options->url, row->name);
        if (value == NULL)
            continue;
        nl_buffer_append(&url, any ? "&" : "?", 1);
        nl_buffer_append_text(&url, row->name);
        nl_buffer_append(&url, "=", 1);
        any = true;
        nl_url_append_escaped(&url, value);
    }
    nl_buffer_append(&url, "", 1);
    return url.data;
}

static void *open_peer(const output_options *options)
{
    char *url = url_for_writer(options);
    nl_writer *writer = nl_writer_open(
        url, &(nl_writer_options){
                 .format = NL_FORMAT_NLB, .zstd_level = -1, .buffer_size = SIZE_MAX, .timeout_ms = TIMEOUT_MS});
    free(url);
    return writer;
}

static nl_status deliver(void *peer, const char *data, size_t size, output_place place, output_delivered *done)
{
    (void)place;
    size_t whole;
    if (nl_writer_put_blocks(peer, data, size, &whole) != NL_OK || nl_writer_flush(peer) != NL_OK)
        return NL_FAILED;
    done->taken = whole;
    return NL_OK;
}

static void close_peer(void *peer)
{
    nl_writer_discard(peer);
}

const output_kind output_kind_forward = {
    .name = "forward",
    .format = NL_FORMAT_NLB,
    .numbered = true,
    .tables = own_tables,
    .open = open_peer,
    .deliver = deliver,
    .close = close_peer,
};
