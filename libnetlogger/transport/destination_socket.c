/*
 * A collector over TCP, plain or within TLS, or a Unix stream socket. Text is not acknowledged, so that what the kernel
 * has taken counts as written; blocks are, and what counts is what the collector says it has written
 * (doc/binary-format.md, "On a connection"). A connection that the other side has closed is noticed before a write, so
 * that no record goes into a dead one unnoticed; then, or when a write fails, a new connection is tried, at most once a
 * back-off period (but for a flush, which is told how it is now), so that a collector that is away costs the program
 * next to nothing.
 */
#include "config.h"

#include "transport/destination.h"

#include "base/error.h"
#include "format/block_read.h"
#include "format/varint.h"
#include "transport/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_TIMEOUT_MS = 10000,
    BACK_OFF_MS = 1000,
    CONFIRM_MS = 1000, /* for a server that does not show whether it took our certificate */
    LINGER_MS = 1000,
    FRAME_MOST = 64 << 10,
    HEARD_AT_ONCE = 64, /* reads: who says more than so many buffers hold must not keep the log from its work */
};

typedef struct socket_destination {
    nl_destination base;
    nl_channel channel;
    nl_tls *tls;    /* NULL: plain */
    char *tls_name; /* whom the certificate must be for */
    char *host;     /* TCP */
    char port[8];
    char *path; /* Unix socket */
    int timeout_ms;
    int64_t retry_ns;             /* on the monotonic clock: no connection is tried before */
    bool acknowledged;            /* blocks: what counts as written is what the collector says it has written */
    uint64_t blocks_sent;         /* over this connection */
    uint64_t blocks_acknowledged; /* of these */
    nl_buffer said;               /* by the collector, and not a whole frame yet */
    void (*on_control)(void *user, const char *commands, size_t size);
    void *user;
} socket_destination;

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NL_NS_PER_SECOND + now.tv_nsec;
}

/* "connect to dolly:14830" in front of the message. */
static nl_status cannot(const socket_destination *s, const char *what)
{
    if (s->path != NULL)
        return nl_error_prepend("%s %s", what, s->path);
    return nl_error_prepend(strchr(s->host, ':') != NULL ? "%s [%s]:%s" : "%s %s:%s", what, s->host, s->port);
}

static nl_status cannot_errno(const socket_destination *s, const char *what, int why)
{
    char words[NL_CHANNEL_WORDS];
    nl_error_set("%s", nl_channel_words(&s->channel, why, words));
    return cannot(s, what);
}

/* Waits until the socket may be written, at most until the deadline. Returns 0 or an errno. */
static int wait_ready(int fd, short what, int64_t deadline_ns)
{
    for (;;) {
        int64_t left_ms = (deadline_ns - monotonic_ns()) / 1000000;
        struct pollfd ready = {.fd = fd, .events = what};
        int count = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
        if (count > 0)
            return 0;
        if (count == 0)
            return ETIMEDOUT;
        if (errno != EINTR)
            return errno;
    }
}

/* Connects a new non-blocking socket. Returns it, or -1 with errno set. */
static int connect_address(int family, const struct sockaddr *address, socklen_t size, int64_t deadline_ns)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int why = connect(fd, address, size) == 0 ? 0 : errno;
    if (why == EINPROGRESS) {
        why = wait_ready(fd, POLLOUT, deadline_ns);
        socklen_t why_size = sizeof why;
        if (why == 0)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &why_size);
    }
    if (why == 0)
        return fd;
    close(fd);
    errno = why;
    return -1;
}

static nl_status connect_tcp(socket_destination *s, int64_t deadline_ns)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses;
    int result = getaddrinfo(s->host, s->port, &hints, &addresses);
    if (result != 0) {
        nl_error_set("%s", result == EAI_SYSTEM ? strerror(errno) : gai_strerror(result));
        return cannot(s, "connect to");
    }
    int fd = -1, why = 0;
    for (struct addrinfo *a = addresses; a != NULL && fd < 0; a = a->ai_next) {
        fd = connect_address(a->ai_family, a->ai_addr, a->ai_addrlen, deadline_ns);
        why = errno;
    }
    freeaddrinfo(addresses);
    if (fd < 0)
        return cannot_errno(s, "connect to", why);
    /* Records are small and meant to be seen at once; those who care for throughput buffer them. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    s->channel.fd = fd;
    return NL_OK;
}

static nl_status connect_unix(socket_destination *s, int64_t deadline_ns)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(s->path) >= sizeof address.sun_path)
        return cannot_errno(s, "connect to", ENAMETOOLONG);
    strcpy(address.sun_path, s->path);
    s->channel.fd = connect_address(AF_UNIX, (struct sockaddr *)&address, sizeof address, deadline_ns);
    return s->channel.fd >= 0 ? NL_OK : cannot_errno(s, "connect to", errno);
}

static void disconnect(socket_destination *s)
{
    nl_channel_close(&s->channel);
    s->blocks_sent = s->blocks_acknowledged = 0;
    s->said.size = 0;
}

/* Takes a step of TLS's beginning again and again, until it is done: 0, or an errno. */
static int complete(socket_destination *s, int (*step)(nl_channel *), int64_t deadline_ns)
{
    while (step(&s->channel) != 0) {
        int why =
            errno == EAGAIN ? wait_ready(s->channel.fd, nl_channel_wants(&s->channel, POLLIN), deadline_ns) : errno;
        if (why != 0 && why != EINTR)
            return why;
    }
    return 0;
}

static nl_status secure(socket_destination *s, int64_t deadline_ns)
{
    if (s->tls == NULL)
        return NL_OK;
    int why =
        nl_channel_secure(&s->channel, s->tls, s->tls_name) ? complete(s, nl_channel_handshake, deadline_ns) : ENOMEM;
    if (why == 0) {
        int64_t confirm_ns = monotonic_ns() + (int64_t)CONFIRM_MS * 1000000;
        why = complete(s, nl_channel_confirm, confirm_ns < deadline_ns ? confirm_ns : deadline_ns);
        why = why == ETIMEDOUT ? 0 : why;
    }
    if (why == 0)
        return NL_OK;
    cannot_errno(s, "connect to", why);
    disconnect(s);
    return NL_FAILED;
}

int nl_socket_connect(const nl_url *url, int timeout_ms)
{
    socket_destination s = {.channel.fd = -1, .host = url->host, .path = url->path};
    int64_t deadline_ns = monotonic_ns() + (int64_t)timeout_ms * 1000000;
    snprintf(s.port, sizeof s.port, "%u", url->port);
    (void)(s.path != NULL ? connect_unix(&s, deadline_ns) : connect_tcp(&s, deadline_ns));
    return s.channel.fd;
}

static nl_status connect_now(socket_destination *s)
{
    int64_t now_ns = monotonic_ns();
    if (now_ns < s->retry_ns && !s->base.at_once) {
        nl_error_set("it was away a moment ago");
        return cannot(s, "connect to");
    }
    int64_t deadline_ns = now_ns + (int64_t)s->timeout_ms * 1000000;
    nl_status status = s->path != NULL ? connect_unix(s, deadline_ns) : connect_tcp(s, deadline_ns);
    if (status == NL_OK)
        status = secure(s, deadline_ns);
    if (status != NL_OK)
        s->retry_ns = monotonic_ns() + (int64_t)BACK_OFF_MS * 1000000;
    return status;
}

/* ---- what a collector says: frames of a magic, a size and that many bytes (doc/binary-format.md) ---- */

/* Takes the first whole frame off what was said. False when there is none, or none that could be one. */
static bool take_frame(socket_destination *s, bool *understood)
{
    enum { HEAD = 8 };
    const char *at = s->said.data;
    size_t size = s->said.size >= HEAD ? nl_le32_get(at + 4) : 0;
    *understood = s->said.size < HEAD || size <= FRAME_MOST;
    if (s->said.size < HEAD || size > FRAME_MOST || s->said.size - HEAD < size)
        return false;
    if (memcmp(at, "NLA1", 4) == 0 && size == sizeof s->blocks_acknowledged)
        s->blocks_acknowledged = nl_le64_get(at + HEAD);
    else if (memcmp(at, "NLC1", 4) == 0 && s->on_control != NULL)
        s->on_control(s->user, at + HEAD, size);
    s->said.size -= HEAD + size;
    memmove(s->said.data, at + HEAD + size, s->said.size);
    return true;
}

/* Keeps what a collector that acknowledges has said; a text collector says nothing, whatever comes is passed over. */
static bool hear(socket_destination *s, const char *bytes, size_t size)
{
    bool understood = true;
    if (!s->acknowledged)
        return true;
    nl_buffer_append(&s->said, bytes, size);
    while (take_frame(s, &understood))
        continue;
    return understood && s->blocks_acknowledged <= s->blocks_sent;
}

/* Whether the other side has closed or reset, or cannot be understood. What it says meanwhile is heard. */
static bool is_closed(socket_destination *s)
{
    char bytes[4096];
    for (int i = 0; i < HEARD_AT_ONCE; i++) {
        ssize_t got = nl_channel_read(&s->channel, bytes, sizeof bytes);
        if (got == 0 || (got > 0 && !hear(s, bytes, (size_t)got)))
            return true;
        if (got < 0 && errno != EINTR)
            return errno != EAGAIN;
    }
    return false;
}

/* ---- sending ---- */

/* Sends over the connection there is. On failure *sent is whole records, and the connection may be gone. */
static nl_status send_all(socket_destination *s, const char *data, size_t size, size_t *sent)
{
    int64_t deadline_ns = monotonic_ns() + (int64_t)s->timeout_ms * 1000000;
    size_t done = 0;
    while (done < size) {
        ssize_t put = nl_channel_write(&s->channel, data + done, size - done);
        if (put > 0) {
            done += (size_t)put;
            continue;
        }
        int why = errno;
        if (why == EAGAIN)
            why = wait_ready(s->channel.fd, nl_channel_wants(&s->channel, POLLOUT), deadline_ns);
        if (why == 0 || why == EINTR)
            continue;
        *sent = nl_destination_whole(&s->base, data, done);
        cannot_errno(s, "send to", why);
        /* Part of a record is on its way: only a new connection can begin with a whole one again. */
        if (!s->acknowledged && (why != ETIMEDOUT || *sent != done || nl_channel_is_midway(&s->channel)))
            disconnect(s);
        return NL_FAILED;
    }
    *sent = size;
    return NL_OK;
}

/* Where the block after the first count blocks of data begins; *found says how many there were. */
static size_t end_of_blocks(const char *data, size_t size, uint64_t count, uint64_t *found)
{
    size_t at = 0;
    nl_block_header header;
    for (*found = 0; *found < count && nl_block_parse_header(data + at, size - at, &header) == NL_OK; ++*found)
        at += nl_block_total_size(&header);
    return at;
}

/* Waits until everything that was sent is acknowledged. */
static nl_status wait_for_acknowledgement(socket_destination *s)
{
    int64_t deadline_ns = monotonic_ns() + (int64_t)s->timeout_ms * 1000000;
    while (s->blocks_acknowledged < s->blocks_sent) {
        int why = wait_ready(s->channel.fd, nl_channel_wants(&s->channel, POLLIN), deadline_ns);
        if (why != 0)
            return cannot_errno(s, "wait for an acknowledgement from", why);
        if (is_closed(s) && s->blocks_acknowledged < s->blocks_sent)
            return cannot_errno(s, "wait for an acknowledgement from", ECONNRESET);
    }
    return NL_OK;
}

/* Sends blocks; those that were acknowledged count. A connection on which some were not is given up: they are sent
 * again. */
static nl_status send_acknowledged(socket_destination *s, const char *data, size_t size, size_t *taken)
{
    uint64_t before = s->blocks_sent, count, found;
    end_of_blocks(data, size, UINT64_MAX, &count);
    s->blocks_sent += count;
    nl_status status = send_all(s, data, size, taken);
    if (status == NL_OK)
        status = wait_for_acknowledgement(s);
    *taken = size;
    if (status == NL_OK)
        return NL_OK;
    is_closed(s); /* what was acknowledged before it broke, or was not heard yet, is not sent again */
    uint64_t acknowledged = s->blocks_acknowledged;
    *taken = acknowledged > before ? end_of_blocks(data, size, acknowledged - before, &found) : 0;
    disconnect(s);
    return status;
}

static nl_status send_over(socket_destination *s, const char *data, size_t size, size_t *taken)
{
    return s->acknowledged ? send_acknowledged(s, data, size, taken) : send_all(s, data, size, taken);
}

static nl_status socket_write(nl_destination *destination, nl_level level, const char *data, size_t size,
                              size_t *written)
{
    (void)level;
    socket_destination *s = (socket_destination *)destination;
    if (s->channel.fd >= 0 && is_closed(s))
        disconnect(s);
    bool fresh = s->channel.fd < 0;
    if (fresh && connect_now(s) != NL_OK)
        return NL_FAILED;
    if (send_over(s, data, size, written) == NL_OK)
        return NL_OK;
    /* A connection that broke is tried anew once, with the records that it had not taken. */
    if (fresh || s->channel.fd >= 0 || connect_now(s) != NL_OK)
        return NL_FAILED;
    size_t more = 0;
    nl_status status = send_over(s, data + *written, size - *written, &more);
    *written += more;
    return status;
}

static void socket_poll(nl_destination *destination)
{
    socket_destination *s = (socket_destination *)destination;
    if (s->channel.fd >= 0 && s->acknowledged && is_closed(s))
        disconnect(s);
}

static void socket_after_fork(nl_destination *destination)
{
    socket_destination *s = (socket_destination *)destination;
    s->said = (nl_buffer){0};       /* the parent's thread may have been in the middle of it */
    nl_channel_forget(&s->channel); /* closes this process's descriptor only: the parent's connection stays */
    disconnect(s);
    s->retry_ns = 0;
}

/*
 * Lets go of TLS only when the other side has, or after a while: a socket that is closed with something unread, and a
 * server may say something of its own accord, is reset, and what was sent and not read over there goes with it.
 */
static void linger(socket_destination *s)
{
    int64_t deadline_ns = monotonic_ns() + (int64_t)(s->timeout_ms < LINGER_MS ? s->timeout_ms : LINGER_MS) * 1000000;
    nl_channel_end(&s->channel);
    while (!is_closed(s) && wait_ready(s->channel.fd, POLLIN, deadline_ns) != ETIMEDOUT)
        continue;
}

static nl_status socket_close(nl_destination *destination, bool keep)
{
    (void)keep;
    socket_destination *s = (socket_destination *)destination;
    if (s->channel.tls != NULL && !s->acknowledged)
        linger(s);
    disconnect(s);
    nl_tls_free(s->tls);
    free(s->tls_name);
    nl_buffer_free(&s->said);
    free(s->host);
    free(s->path);
    free(s);
    return NL_OK;
}

static const nl_destination_kind socket_kind = {
    .write = socket_write, .poll = socket_poll, .after_fork = socket_after_fork, .close = socket_close};

/* What the URL says of TLS. */
static nl_status prepare_tls(socket_destination *s, const nl_url *url)
{
    char words[NL_CHANNEL_WORDS];
    nl_tls_options options = {.ca = nl_url_option_value(url, "ca"),
                              .cert = nl_url_option_value(url, "cert"),
                              .key = nl_url_option_value(url, "key")};
    const char *name = nl_url_option_value(url, "name");
    s->tls_name = strdup(name != NULL ? name : url->host);
    NL_REQUIRE(s->tls_name != NULL, "out of memory");
    s->tls = nl_tls_new(false, &options, words);
    return s->tls != NULL ? NL_OK : nl_error_set("open %s: %s", url->text, words);
}

nl_destination *nl_socket_destination_open(const nl_url *url, const nl_destination_options *options)
{
    socket_destination *s = calloc(1, sizeof *s);
    NL_REQUIRE(s != NULL, "out of memory");
    s->base.kind = &socket_kind;
    s->channel.fd = -1;
    s->acknowledged = options->format == NL_FORMAT_NLB;
    s->on_control = options->on_control;
    s->user = options->user;
    s->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    if (url->scheme == NL_SCHEME_UNIX)
        s->path = strdup(url->path);
    else
        s->host = strdup(url->host);
    NL_REQUIRE(s->path != NULL || s->host != NULL, "out of memory");
    snprintf(s->port, sizeof s->port, "%u", url->port);
    if ((url->scheme != NL_SCHEME_NETLOGS || prepare_tls(s, url) == NL_OK) && connect_now(s) == NL_OK)
        return &s->base;
    socket_close(&s->base, false);
    return NULL;
}
