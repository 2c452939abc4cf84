/*
 * Output to syslog: each record becomes a message with one line of text, and the record's level becomes the priority.
 * After a kill, messages may be repeated. syslog(3) does not report a missing syslog daemon, so this module checks for
 * the daemon before every few messages.
 */
#include "config.h"

#include "kind.h"

#include "base/error.h"
#include "options.h"
#include "reader/decoder.h"
#include "transport/writer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { AT_ONCE = 16 << 10 }; /* approximate number of bytes between checks */

static nl_status kind_syslog_look(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    /* EPROTOTYPE means that a daemon runs, but its socket has another type. */
    bool there = fd >= 0 && (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EPROTOTYPE);
    nl_status status = there ? NL_OK : nl_error_set_errno("connect to %s", address.sun_path);
    if (fd >= 0)
        close(fd);
    return status;
}

static void *open_peer(const output_options *options)
{
    return nl_writer_open(options->target, &(nl_writer_options){.format = options->format});
}

static nl_status check(const nl_url *url, const output_options *options)
{
    (void)url;
    if (options->format == NL_FORMAT_NLB)
        return nl_error_set(NL_ERROR_INVALID, "syslog requires a text format; nlb is binary");
    nl_writer *writer = open_peer(options);
    if (writer != NULL)
        nl_writer_discard(writer);
    return writer != NULL ? NL_OK : NL_FAILED;
}

static nl_status send_lines(nl_writer *writer, const char *lines, size_t size)
{
    nl_decoder *decoder = nl_decoder_new(NULL);
    const nl_record *record;
    nl_status status = NL_OK;
    nl_decoder_feed(decoder, lines, size);
    while (status == NL_OK && nl_decoder_next(decoder, &record) == NL_OK)
        status = nl_writer_put(writer, record);
    nl_decoder_free(decoder);
    return status == NL_OK ? NL_OK : NL_FAILED;
}

static nl_status deliver(void *peer, const char *data, size_t size, output_place place, output_delivered *done)
{
    (void)place;
    for (;;) {
        size_t left = size - done->taken, from = left > AT_ONCE ? AT_ONCE : 0;
        const char *at = data + done->taken;
        const char *end = from > 0 ? memchr(at + from, '\n', left - from) : memrchr(at, '\n', left);
        if (end == NULL)
            return NL_OK;
        if (kind_syslog_look() != NL_OK || send_lines(peer, at, (size_t)(end + 1 - at)) != NL_OK)
            return NL_FAILED;
        done->taken += (size_t)(end + 1 - at);
    }
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
