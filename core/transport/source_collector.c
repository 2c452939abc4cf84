/*
 * Reads from a collector. The request is one line (doc/requests.md). The reply is a record that accepts or rejects the
 * request. If the request is accepted, the subscribed records follow.
 */
#include "config.h"

#include "transport/source_collector.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/format.h"
#include "transport/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { TIMEOUT_MS = 10000, REPLY_MAX = 16 << 10 };

/* Appends NAME="value", quoted as in ULM. */
static void source_collector_add(nl_buffer *line, const char *name, const char *value)
{
    nl_buffer_append(line, " ", 1);
    nl_buffer_append_text(line, name);
    nl_buffer_append(line, "=\"", 2);
    for (const char *at = value; *at != '\0'; at++) {
        char escape[5];
        if (*at == '"' || *at == '\\')
            nl_buffer_append(line, "\\", 1);
        if ((unsigned char)*at >= ' ')
            nl_buffer_append(line, at, 1);
        else
            nl_buffer_append(line, escape, (size_t)snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)*at));
    }
    nl_buffer_append(line, "\"", 1);
}

static bool set_since(void *settings, const nl_option *row, const char *value)
{
    nl_option plain = *row;
    int64_t time_ns;
    plain.offset = 0;
    ((nl_subscription_options *)settings)->since = value;
    return nl_option_set_by_type(&plain, &time_ns, value);
}

const nl_option nl_subscription_rows[] = {
    {.name = "where",
     .value = "EXPRESSION",
     NL_OPTION_MEMBER(nl_subscription_options, where),
     .help = "Receive only records that match EXPRESSION. Write & in EXPRESSION as %26, or use the operator \"and\""},
    {.name = "since",
     .type = NL_OPTION_TIME,
     .initial = "(only new records)",
     .set = set_since,
     NL_OPTION_MEMBER(nl_subscription_options, since),
     .help = "Also receive older records from the collector's files, beginning at TIME. TIME is absolute, or relative "
             "as in -10m"},
    {.name = "format",
     .type = NL_OPTION_CHOICE,
     .list_choices = nl_format_choices,
     .initial = "nlb",
     NL_OPTION_MEMBER(nl_subscription_options, format),
     .help = "Format in which the collector sends records"},
    {0},
};

/* Appends the request for a URL's options to line. Returns NL_FAILED on failure. */
static nl_status make_request(const nl_url *url, nl_buffer *line)
{
    static const char begin[] = "NETLOGGER/1 subscribe";
    const unsigned failures = nl_memory_failures;
    nl_subscription_options options = {.format = NL_FORMAT_NLB};
    nl_dialer_options tls = {0};
    if (nl_url_read_options(
            url, (const nl_url_rows[]){{nl_subscription_rows, &options}, {nl_dialer_rows, &tls}, {0}}) != NL_OK)
        return nl_error_prepend("open %s", url->text);
    nl_buffer_append(line, begin, sizeof begin - 1);
    if (options.where != NULL)
        source_collector_add(line, "WHERE", options.where);
    if (options.since != NULL)
        source_collector_add(line, "SINCE", options.since);
    source_collector_add(line, "FORMAT", nl_format_name(options.format));
    return nl_buffer_append(line, "\n", 1) && nl_memory_failures == failures ? NL_OK : NL_FAILED;
}

/* Sends the request, which always fits into the send buffer of a new connection. Returns NL_FAILED on failure. */
static nl_status send_request(nl_channel *channel, const nl_buffer *line)
{
    ssize_t sent = nl_channel_write(channel, line->data, line->size);
    if (sent == (ssize_t)line->size)
        return NL_OK;
    if (sent >= 0)
        return nl_error_set(NL_ERROR_UNREACHABLE, "send: the connection to the collector accepts no data");
    nl_channel_fail(channel, errno);
    return nl_error_prepend("send");
}

/* Sets the error for a peer that has sent no valid reply, or only a part of a reply. Returns NL_FAILED. */
static nl_status fail_reply(const nl_buffer *reply, nl_error_code code, const char *otherwise)
{
    const char *problem = reply->size > 0 ? nl_peer_problem(reply->data, reply->size) : NULL;
    return problem != NULL ? nl_error_set(NL_ERROR_PROTOCOL, "%s", problem) : nl_error_set(code, "%s", otherwise);
}

static const char not_netlogd[] = "unexpected reply; is the peer netlogd? check host and port";

/*
 * Waits for the reply. Sets *line_size to the size of the reply's line; the bytes after the line belong to the stream.
 * Returns NL_FAILED on failure.
 */
static nl_status read_reply(nl_channel *channel, nl_buffer *reply, size_t *line_size)
{
    int64_t deadline_ns = nl_deadline_ns(TIMEOUT_MS);
    while (reply->size < REPLY_MAX) {
        char bytes[512];
        ssize_t got = nl_channel_read(channel, bytes, sizeof bytes);
        int error = got < 0 ? errno : 0;
        if (got == 0 || error == ECONNRESET)
            return fail_reply(reply, NL_ERROR_UNREACHABLE, nl_peer_closed);
        if (error == EAGAIN && nl_wait_ready(channel->fd, nl_channel_wants(channel, POLLIN), deadline_ns) != 0)
            return fail_reply(reply, NL_ERROR_TIMEOUT, nl_peer_silent);
        if (error != 0 && error != EAGAIN && error != EINTR) {
            nl_channel_fail(channel, error);
            return nl_error_prepend("read");
        }
        if (!nl_buffer_append(reply, bytes, got > 0 ? (size_t)got : 0))
            return NL_FAILED;
        const char *newline = reply->size > 0 ? memchr(reply->data, '\n', reply->size) : NULL;
        if (newline != NULL) {
            *line_size = (size_t)(newline + 1 - reply->data);
            return NL_OK;
        }
    }
    return fail_reply(reply, NL_ERROR_PROTOCOL, not_netlogd);
}

/*
 * Returns NL_OK if the reply, whose line has size bytes, accepts the subscription. Otherwise, sets the error and
 * returns NL_FAILED.
 */
static nl_status check_reply(const nl_buffer *reply, size_t size)
{
    nl_record *record = nl_record_new();
    if (record == NULL)
        return NL_FAILED;
    nl_field reason;
    nl_status status = nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, reply->data, size - 1);
    if (status != NL_OK)
        fail_reply(reply, NL_ERROR_PROTOCOL, not_netlogd);
    else if (nl_string_is(record->event, "Netlogd.Subscribed"))
        status = NL_OK;
    else if (nl_record_find(record, "REASON", &reason) && reason.type == NL_TYPE_STRING)
        status = nl_error_set(NL_ERROR_INVALID, "%.*s", (int)reason.string.size, reason.string.data);
    else
        status = nl_error_set(NL_ERROR_PROTOCOL, not_netlogd);
    nl_record_free(record);
    return status == NL_OK ? NL_OK : NL_FAILED;
}

/* Connects, sends the request and reads the reply. Returns NL_FAILED on failure. */
static nl_status subscribe(const nl_dialer *dialer, const nl_buffer *line, nl_channel *channel, nl_buffer *stream)
{
    size_t line_size = 0;
    if (nl_dialer_connect(dialer, TIMEOUT_MS, channel) != NL_OK)
        return NL_FAILED;
    if (send_request(channel, line) != NL_OK || read_reply(channel, stream, &line_size) != NL_OK ||
        check_reply(stream, line_size) != NL_OK)
        return nl_dialer_prepend(dialer);
    stream->size -= line_size;
    memmove(stream->data, stream->data + line_size, stream->size);
    return NL_OK;
}

nl_status nl_collector_subscribe(const nl_url *url, nl_dialer **dialer, nl_channel *channel, nl_buffer *stream)
{
    nl_buffer line = {0};
    *channel = (nl_channel){.fd = -1};
    *dialer = NULL;
    nl_status status = make_request(url, &line);
    if (status == NL_OK && (*dialer = nl_dialer_new(url, "netlogd")) == NULL)
        status = NL_FAILED;
    if (status == NL_OK)
        status = subscribe(*dialer, &line, channel, stream);
    nl_buffer_free(&line);
    return status;
}
