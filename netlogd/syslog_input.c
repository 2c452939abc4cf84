#include "config.h"

#include "syslog_input.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "convert/syslog.h"
#include "peer_host.h"
#include "server.h"

#include <stdlib.h>
#include <string.h>

enum {
    USER_NOTICE = 13, /* priority of messages without a priority (RFC 3164, section 4.3.3) */
    HELD_SIZE = 4096, /* bytes; larger buffers are freed after use */
};

struct syslog_input {
    syslog_input_options options;
    nl_buffer held;     /* the beginning of an incomplete message, with its framing */
    size_t expected;    /* size of this message, with its framing; 0: unknown */
    size_t skipped;     /* number of bytes that have not arrived of a message that is too long and has a known size */
    bool skipping_line; /* the next bytes belong to a message that is too long and ends with a newline */
    nl_reader_stats stats;
    char host[PEER_ADDRESS_SIZE];
};

typedef struct syslog_exporter {
    exporter base;
    syslog_input *in;
} syslog_exporter;

static syslog_reader *reader; /* the reader that all inputs share */

static void syslog_put(exporter *e, const nl_record *record, bool typed, sink *s)
{
    syslog_input *in = ((syslog_exporter *)e)->in;
    (void)typed, (void)s;
    in->stats.records++;
    in->options.put(in->options.user, record);
}

static const exporter_kind put_kind = {.name = "records", .size = sizeof(syslog_exporter), .put = syslog_put};

syslog_input *syslog_input_new(const syslog_input_options *options)
{
    syslog_input *in = nl_memory_check(calloc(1, sizeof *in));
    in->options = *options;
    if (reader == NULL)
        reader = syslog_reader_new();
    return in;
}

void syslog_input_free(syslog_input *in)
{
    if (in != NULL)
        nl_buffer_free(&in->held);
    free(in);
}

void syslog_input_set_sender(syslog_input *in, const struct sockaddr *peer)
{
    peer_address_host(peer, in->host);
}

static void read_message(syslog_input *in, nl_string message, int64_t now_ns)
{
    syslog_exporter to = {.base = {.kind = &put_kind}, .in = in};
    sink s = {.out = &to.base};
    if (message.size > 0)
        syslog_read(reader, message, &(syslog_about){.now_ns = now_ns, .host = in->host, .priority = USER_NOTICE}, true,
                    &s);
}

static void reject_message(syslog_input *in, const char *reason, const char *data, size_t size)
{
    in->stats.malformed++;
    in->options.reject(in->options.user, &(nl_malformed){.source = in->host,
                                                         .line = in->stats.records + in->stats.malformed,
                                                         .reason = reason,
                                                         .text = {data, size}});
}

/* Rejects a message that is larger than max-record-size. Keeps only the beginning of the message. */
static void reject_long(syslog_input *in, const char *data, size_t size)
{
    size_t maximum = server_settings()->max_record_size;
    reject_message(in, "the message is larger than max-record-size", data, size < maximum ? size : maximum);
}

/* Skips the rest of a message that is too long. Returns the number of bytes that belong to the message. */
static size_t skip_rest(syslog_input *in, const char *data, size_t size)
{
    size_t skip = in->skipped < size ? in->skipped : size;
    in->skipped -= skip;
    if (!in->skipping_line)
        return skip;
    const char *newline = memchr(data, '\n', size);
    in->skipping_line = newline == NULL;
    return newline != NULL ? (size_t)(newline + 1 - data) : size;
}

/* Returns whether a frame, of which `left` bytes have arrived, is larger than max-record-size without its newline. */
static bool is_too_long(const syslog_frame *frame, size_t left)
{
    size_t maximum = server_settings()->max_record_size;
    return frame->expected > 0 ? frame->expected > maximum
           : frame->size > 0   ? frame->size - 1 > maximum
                               : left > maximum;
}

/*
 * Reads the whole messages. Rejects messages that are too long, and begins to skip the rest of the last message if it
 * is too long. Returns the number of bytes that were read.
 */
static size_t read_messages(syslog_input *in, const char *data, size_t size, int64_t now_ns)
{
    for (size_t at = 0;;) {
        if (size > at && (in->skipped > 0 || in->skipping_line))
            at += skip_rest(in, data + at, size - at);
        syslog_frame frame = syslog_find_frame(data + at, size - at);
        size_t left = size - at;
        bool too_long = is_too_long(&frame, left);
        in->expected = frame.size == 0 ? frame.expected : 0;
        if (too_long)
            reject_long(in, data + at, frame.size > 0 ? frame.size : left);
        else if (frame.size > 0)
            read_message(in, frame.message, now_ns);
        if (frame.size == 0 && !too_long)
            return at;
        if (frame.size == 0) {
            in->skipped = frame.expected > 0 ? frame.expected - left : 0;
            in->skipping_line = frame.expected == 0;
            in->expected = 0;
            return size;
        }
        at += frame.size;
    }
}

void syslog_input_feed(syslog_input *in, const char *data, size_t size)
{
    int64_t now_ns = nl_time_now_ns();
    in->stats.bytes += size;
    if (in->held.size + size < in->expected) {
        nl_buffer_append(&in->held, data, size);
        return;
    }
    if (in->held.size == 0) {
        size_t done = read_messages(in, data, size, now_ns);
        if (done < size)
            nl_buffer_append(&in->held, data + done, size - done);
        return;
    }
    nl_buffer_append(&in->held, data, size);
    size_t done = read_messages(in, in->held.data, in->held.size, now_ns);
    in->held.size -= done;
    memmove(in->held.data, in->held.data + done, in->held.size);
    if (in->held.size == 0 && in->held.capacity > HELD_SIZE)
        nl_buffer_free(&in->held);
}

void syslog_input_finish(syslog_input *in)
{
    nl_string rest = {in->held.data, in->held.size};
    if (rest.size > 0 && in->expected == 0 && in->stats.records + in->stats.malformed == 0)
        read_message(in, rest, nl_time_now_ns());
    else if (rest.size > 0)
        reject_message(in, "incomplete message: the connection ended within the message", rest.data, rest.size);
    in->held.size = 0;
}

void syslog_input_read_datagram(syslog_input *in, const char *data, size_t size)
{
    size_t maximum = server_settings()->max_record_size;
    in->stats.bytes += size;
    while (size > 0 && (data[size - 1] == '\n' || data[size - 1] == '\r' || data[size - 1] == '\0'))
        size--;
    if (size <= maximum)
        read_message(in, (nl_string){data, size}, nl_time_now_ns());
    else
        reject_long(in, data, size);
}

bool syslog_input_is_midway(const syslog_input *in)
{
    return in->held.size > 0 || in->skipped > 0 || in->skipping_line;
}

size_t syslog_input_held(const syslog_input *in)
{
    return in->held.capacity;
}

const nl_reader_stats *syslog_input_get_stats(const syslog_input *in)
{
    return &in->stats;
}
