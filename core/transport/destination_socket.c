/*
 * The destination for a collector over TCP, TLS or a Unix stream socket.
 *
 * The collector does not acknowledge text, so text counts as written when the kernel has accepted the bytes. Blocks
 * count as written when the collector acknowledges them (doc/binary-format.md, "On a connection"). Before each write,
 * the module checks whether the peer has closed the connection, so that no record is lost in a closed connection. If
 * the connection is closed or the write fails, the module tries to connect once more; the owner chooses the pauses
 * between attempts. A write takes no longer than the timeout, including all these steps. If a connection is reset after
 * text was sent over it, the text may be lost, and closing the destination fails.
 *
 * A connection begins with a time question, which netlogd answers at once. Therefore, the module detects a peer that is
 * not netlogd before the peer gets records. The module sends text only after netlogd has also acknowledged the
 * question, because netlogd sends nothing more after that. If a program were killed while its socket had unread bytes,
 * the kernel would reset the connection, and netlogd would lose text.
 */
#include "config.h"

#include "transport/destination.h"

#include "base/descriptor.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "record/block_read.h"
#include "record/varint.h"
#include "transport/dial.h"
#include "transport/peer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LINGER_MS = 1000,
    EXCHANGE_MS = 500,
    OPEN_WAIT_MS = 100,          /* time for which a log that is being opened waits for the collector's first answer */
    INTERRUPT_NS = 20 * 1000000, /* maximum time until a wait notices an interrupt */
    FRAME_MAX = 64 << 10,
    READS_AT_ONCE = 64, /* maximum number of consecutive reads, so that a collector that sends much data does not block
                         * the log */
};

typedef struct socket_destination {
    nl_destination base;
    struct socket_destination *next,
        **link; /* in the list of destinations, and the pointer to this destination there */
    nl_channel channel;
    nl_identity identity; /* identity of the descriptor's file */
    bool connecting;      /* nl_dialer_connect uses the channel, and `identity` is not set yet */
    nl_dialer *dialer;
    int timeout_ms;               /* maximum time for a write */
    int patience_ms;              /* maximum time for the collector's first answer */
    bool acknowledged;            /* the format is blocks, which count as written only when they are acknowledged */
    uint64_t blocks_sent;         /* number of blocks sent on this connection */
    uint64_t blocks_acknowledged; /* number of these blocks that are acknowledged */
    uint64_t question;            /* index of the latest time question among blocks_sent */
    int64_t question_ns;          /* time of sending; 0 if no question is unanswered */
    bool replied;                 /* the reply to the question has arrived; `reply` and `collector` contain it */
    int64_t reply[2];             /* times of receipt and reply by the collector's clock */
    char collector[256];          /* the name in the reply */
    bool has_no_time;             /* the collector acknowledged a time question, but did not reply with its time */
    nl_buffer received;           /* bytes of an incomplete frame */
    bool greeted;                 /* the peer has answered the first question, so it is a collector */
    bool sent_text;               /* text was sent on this connection */
    bool text_lost;               /* a connection was reset after text was sent over it */
    void (*on_control)(void *user, const char *commands, size_t size);
    void *user;
    unsigned *interrupt; /* bits of nl_interrupt; or NULL */
} socket_destination;

/* All destinations of this kind, so that a child of fork finds the connections of the parent's threads. */
static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static socket_destination *list;

static void add_to_list(socket_destination *s)
{
    pthread_mutex_lock(&list_mutex);
    s->next = list;
    s->link = &list;
    if (list != NULL)
        list->link = &s->next;
    list = s;
    pthread_mutex_unlock(&list_mutex);
}

static void remove_from_list(const socket_destination *s)
{
    pthread_mutex_lock(&list_mutex);
    *s->link = s->next;
    if (s->next != NULL)
        s->next->link = s->link;
    pthread_mutex_unlock(&list_mutex);
}

static void disconnect(socket_destination *s)
{
    nl_channel_close(&s->channel);
    s->blocks_sent = s->blocks_acknowledged = s->question = 0;
    s->question_ns = 0;
    s->has_no_time = s->greeted = s->sent_text = false;
    s->received.size = 0;
}

/* Returns the milliseconds up to a deadline; 0 after the deadline. */
static int remaining_ms(int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - nl_monotonic_ns();
    return left_ns > 0 ? (int)(left_ns / 1000000) : 0;
}

/* ---- interrupts ---- */

static bool is_interrupted(const socket_destination *s)
{
    return s->interrupt != NULL && (__atomic_load_n(s->interrupt, __ATOMIC_ACQUIRE) & NL_INTERRUPT_WANTED) != 0;
}

/* Begins to write records. Returns false if an interrupt came first. */
static bool begin_writing(const socket_destination *s)
{
    return s->interrupt == NULL ||
           (__atomic_fetch_or(s->interrupt, NL_INTERRUPT_WRITES, __ATOMIC_ACQ_REL) & NL_INTERRUPT_WANTED) == 0;
}

/* Ends what begin_writing began, also if begin_writing returned false. */
static void end_writing(const socket_destination *s)
{
    if (s->interrupt != NULL)
        __atomic_fetch_and(s->interrupt, ~(unsigned)NL_INTERRUPT_WRITES, __ATOMIC_ACQ_REL);
}

/*
 * Like nl_wait_ready, but also ends at the deadline if the descriptor is always ready. Returns ECANCELED soon after an
 * interrupt.
 */
static int wait_until(const socket_destination *s, short what, int64_t deadline_ns)
{
    int error = ETIMEDOUT;
    for (int64_t now_ns; error == ETIMEDOUT && (now_ns = nl_monotonic_ns()) < deadline_ns;) {
        if (is_interrupted(s))
            return ECANCELED;
        const bool slices = s->interrupt != NULL && deadline_ns - now_ns > INTERRUPT_NS;
        error = nl_wait_ready(s->channel.fd, what, slices ? now_ns + INTERRUPT_NS : deadline_ns);
    }
    return error;
}

/* ---- frames from the collector (doc/binary-format.md) ---- */

/* Handles a reply to a time question. Ignores late replies. */
static void socket_handle_time(socket_destination *s, const char *bytes, size_t size)
{
    if (size < NL_TIME_ANSWER_MIN || s->question_ns == 0 || (int64_t)nl_le64_get(bytes) != s->question_ns)
        return;
    uint64_t came = nl_le64_get(bytes + 8), left = nl_le64_get(bytes + 16);
    if (came > INT64_MAX / 2 || left > INT64_MAX / 2) /* invalid, and differences could overflow */
        return;
    s->reply[0] = (int64_t)came;
    s->reply[1] = (int64_t)left;
    size_t name = size - NL_TIME_ANSWER_MIN;
    snprintf(s->collector, sizeof s->collector, "%.*s", name < sizeof s->collector ? (int)name : 0,
             bytes + NL_TIME_ANSWER_MIN);
    s->replied = true;
    s->question_ns = 0;
}

/* Handles the frame at *offset, and sets *offset to its end. Returns false if the frame is incomplete or invalid. */
static bool socket_handle_frame(socket_destination *s, size_t *offset, bool *understood)
{
    enum { HEAD = 8 };
    const char *at = s->received.data + *offset;
    const size_t left = s->received.size - *offset, size = left >= HEAD ? nl_le32_get(at + 4) : 0;
    *understood = left < HEAD || size <= FRAME_MAX;
    if (left < HEAD || size > FRAME_MAX || left - HEAD < size)
        return false;
    if (memcmp(at, "NLA1", 4) == 0 && size == sizeof s->blocks_acknowledged)
        s->blocks_acknowledged = nl_le64_get(at + HEAD);
    else if (memcmp(at, NL_TIME_ANSWER_MAGIC, 4) == 0)
        socket_handle_time(s, at + HEAD, size);
    else if (memcmp(at, "NLC1", 4) == 0 && s->on_control != NULL && s->greeted)
        s->on_control(s->user, at + HEAD, size);
    s->greeted |= (s->replied && s->acknowledged) || (s->question > 0 && s->blocks_acknowledged >= s->question);
    *offset += HEAD + size;
    return true;
}

/* Handles bytes from the peer. Returns 0, EBADMSG if netlogd does not send such bytes, or ENOMEM. */
static int handle_received(socket_destination *s, const char *bytes, size_t size)
{
    bool understood = true;
    if (!nl_buffer_append(&s->received, bytes, size))
        return ENOMEM; /* the connection is closed, and unacknowledged blocks are sent again */
    size_t offset = 0;
    while (socket_handle_frame(s, &offset, &understood))
        continue;
    if (understood && offset > 0) {
        s->received.size -= offset;
        memmove(s->received.data, s->received.data + offset, s->received.size);
    }
    return understood && s->blocks_acknowledged <= s->blocks_sent ? 0 : EBADMSG;
}

/* Notes that text may be lost, if the errno of a read or write means that the connection was reset. */
static void socket_note_reset(socket_destination *s, int error)
{
    s->text_lost |= s->sent_text && (error == ECONNRESET || error == EPIPE);
}

/*
 * Reads the bytes that the peer sent. Returns 0, ECONNRESET if the peer has ended the connection, or the errno of
 * reading or of handle_received.
 */
static int receive(socket_destination *s)
{
    char bytes[4096];
    for (int i = 0; i < READS_AT_ONCE; i++) {
        ssize_t got = nl_channel_read(&s->channel, bytes, sizeof bytes);
        if (got < 0)
            socket_note_reset(s, errno);
        int error = got == 0 ? ECONNRESET : got > 0 ? handle_received(s, bytes, (size_t)got) : errno;
        if (error != 0 && error != EINTR)
            return error == EAGAIN ? 0 : error;
    }
    return 0;
}

/*
 * Sets the error for an errno from receiving or from waiting for the peer. If the peer is not netlogd, the message
 * reports this. Returns NL_FAILED.
 */
static nl_status fail_receiving(socket_destination *s, const char *what, int error)
{
    const nl_buffer *got = &s->received;
    const char *problem = got->size > 0 ? nl_peer_problem(got->data, got->size) : NULL;
    if (error == EBADMSG && problem == NULL)
        problem = got->size > 0 && *got->data == 'D' ? nl_peer_control : nl_peer_problem("?", 1);
    if (problem == NULL)
        return nl_dialer_cannot(s->dialer, what, &s->channel, error);
    nl_error_set(NL_ERROR_PROTOCOL, "%s", problem);
    return nl_dialer_prepend(s->dialer);
}

/* ---- sending ---- */

/*
 * Sends over the current connection. On failure, sets *sent to the size of the whole records that were sent, and may
 * disconnect. Returns NL_FAILED on failure.
 */
static nl_status send_all(socket_destination *s, const char *data, size_t size, int64_t deadline_ns, size_t *sent)
{
    size_t done = 0;
    while (done < size) {
        ssize_t put = nl_channel_write(&s->channel, data + done, size - done);
        if (put > 0) {
            done += (size_t)put;
            s->sent_text |= s->greeted && !s->acknowledged;
            continue;
        }
        int error = errno;
        if (error == EAGAIN)
            error = wait_until(s, nl_channel_wants(&s->channel, POLLOUT), deadline_ns);
        if (error == 0 || error == EINTR)
            continue;
        socket_note_reset(s, error);
        *sent = nl_destination_whole(&s->base, data, done);
        nl_dialer_cannot(s->dialer, "send", &s->channel, error);
        /* Part of a record was sent, so the next whole record needs a new connection. */
        if (!s->acknowledged && (error != ETIMEDOUT || *sent != done || nl_channel_is_midway(&s->channel)))
            disconnect(s);
        return NL_FAILED;
    }
    *sent = size;
    return NL_OK;
}

/*
 * Returns the total size of the first `count` blocks of data, in bytes. Sets *found to the number of these blocks.
 */
static size_t end_of_blocks(const char *data, size_t size, uint64_t count, uint64_t *found)
{
    size_t at = 0;
    nl_block_header header;
    for (*found = 0; *found < count && nl_block_parse_header(data + at, size - at, &header) == NL_OK; ++*found)
        at += nl_block_total_size(&header);
    return at;
}

/* Waits until everything that was sent is acknowledged. Returns NL_FAILED on failure. */
static nl_status wait_for_acknowledgement(socket_destination *s, int64_t deadline_ns)
{
    while (s->blocks_acknowledged < s->blocks_sent) {
        int error = wait_until(s, nl_channel_wants(&s->channel, POLLIN), deadline_ns);
        if (error == 0)
            error = receive(s);
        if (error != 0 && s->blocks_acknowledged < s->blocks_sent)
            return fail_receiving(s, "wait for an acknowledgement", error);
    }
    return NL_OK;
}

/*
 * Sends blocks and waits for acknowledgements. If acknowledgements are missing, disconnects, and *taken excludes the
 * unacknowledged blocks. Returns NL_FAILED on failure.
 */
static nl_status send_acknowledged(socket_destination *s, const char *data, size_t size, int64_t deadline_ns,
                                   size_t *taken)
{
    uint64_t before = s->blocks_sent, count, found;
    end_of_blocks(data, size, UINT64_MAX, &count);
    s->blocks_sent += count;
    nl_status status = send_all(s, data, size, deadline_ns, taken);
    if (status == NL_OK)
        status = wait_for_acknowledgement(s, deadline_ns);
    *taken = size;
    if (status == NL_OK)
        return NL_OK;
    receive(s); /* acknowledgements may have come before the failure */
    uint64_t acknowledged = s->blocks_acknowledged;
    *taken = acknowledged > before ? end_of_blocks(data, size, acknowledged - before, &found) : 0;
    disconnect(s);
    return status;
}

/* Sends the bytes from *written on, unless an interrupt comes first. Advances *written. Returns NL_FAILED on failure.
 */
static nl_status send_more(socket_destination *s, const char *data, size_t size, int64_t deadline_ns, size_t *written)
{
    nl_status status = NL_FAILED;
    size_t sent = 0;
    data += *written;
    size -= *written;
    if (!begin_writing(s))
        nl_error_set(NL_ERROR_UNREACHABLE, "the log was closed");
    else if (s->acknowledged)
        status = send_acknowledged(s, data, size, deadline_ns, &sent);
    else
        status = send_all(s, data, size, deadline_ns, &sent);
    *written += sent;
    end_writing(s);
    return status;
}

/* ---- connecting ---- */

/* Sends a time question. Returns NL_FAILED on failure. */
static nl_status send_question(socket_destination *s, int64_t sent_ns, int64_t deadline_ns)
{
    char question[NL_TIME_QUESTION_SIZE];
    size_t sent;
    s->question = ++s->blocks_sent;
    s->question_ns = sent_ns;
    s->replied = false;
    nl_time_question_put(question, sent_ns);
    return send_all(s, question, sizeof question, deadline_ns, &sent);
}

/*
 * Sends a time question to a new peer. Disconnects and returns NL_FAILED unless the peer acknowledges the question or,
 * if the format is nlb, replies to it. If later is true, waits at most OPEN_WAIT_MS, and returns NL_OK if no reply has
 * arrived; the first write then waits for the reply.
 */
static nl_status greet(socket_destination *s, int64_t deadline_ns, bool later)
{
    int64_t patience_ns = nl_deadline_ns(later ? OPEN_WAIT_MS : s->patience_ms);
    deadline_ns = patience_ns < deadline_ns ? patience_ns : deadline_ns;
    int error = s->question > 0 || send_question(s, nl_time_now_ns(), deadline_ns) == NL_OK ? 0 : ECONNRESET;
    if (error != 0)
        receive(s); /* the peer may have sent a reason before the failure */
    while (error == 0 && !s->greeted) {
        error = wait_until(s, nl_channel_wants(&s->channel, POLLIN), deadline_ns);
        if (error == 0)
            error = receive(s);
    }
    if (later && error == ETIMEDOUT)
        return NL_OK;
    s->question_ns = 0;
    s->has_no_time = !s->replied;
    if (s->greeted)
        return NL_OK;
    if (s->received.size > 0 || (error != ECONNRESET && error != ETIMEDOUT)) {
        fail_receiving(s, NULL, error);
    } else {
        const bool silent = error == ETIMEDOUT;
        nl_error_set(silent ? NL_ERROR_TIMEOUT : NL_ERROR_PROTOCOL, "%s", silent ? nl_peer_silent : nl_peer_closed);
        nl_dialer_prepend(s->dialer);
    }
    disconnect(s);
    return NL_FAILED;
}

static nl_status connect_now(socket_destination *s, int64_t deadline_ns, bool later)
{
    nl_status status = NL_FAILED;
    s->connecting = true;
    if (!is_interrupted(s))
        status = nl_dialer_connect(s->dialer, remaining_ms(deadline_ns), &s->channel);
    s->identity = nl_identity_of(s->channel.fd);
    s->connecting = false;
    if (is_interrupted(s)) {
        disconnect(s);
        return nl_error_set(NL_ERROR_UNREACHABLE, "the log was closed");
    }
    return status == NL_OK ? greet(s, deadline_ns, later) : status;
}

/* Forgets a connection whose descriptor the program has closed. */
static void check_descriptor(socket_destination *s)
{
    if (s->channel.fd < 0 || nl_identity_holds(&s->identity, s->channel.fd))
        return;
    s->channel.fd = -1;
    nl_channel_forget(&s->channel);
    disconnect(s);
}

/* Detects that the peer has closed the connection. */
static void check_connection(socket_destination *s)
{
    check_descriptor(s);
    if (s->channel.fd >= 0 && receive(s) != 0)
        disconnect(s);
}

static nl_status socket_write(nl_destination *destination, nl_level level, const char *data, size_t size,
                              size_t *written)
{
    (void)level;
    socket_destination *s = (socket_destination *)destination;
    int64_t deadline_ns = nl_deadline_ns(s->timeout_ms);
    check_connection(s);
    bool fresh = s->channel.fd < 0;
    if (fresh && connect_now(s, deadline_ns, false) != NL_OK)
        return NL_FAILED;
    if (!s->greeted && greet(s, deadline_ns, false) != NL_OK)
        return NL_FAILED;
    if (send_more(s, data, size, deadline_ns, written) == NL_OK)
        return NL_OK;
    /* If the connection broke, connect again and send the remaining records, if there is time. */
    if (fresh || s->channel.fd >= 0 || remaining_ms(deadline_ns) == 0 || connect_now(s, deadline_ns, false) != NL_OK)
        return NL_FAILED;
    return send_more(s, data, size, deadline_ns, written);
}

/* ---- time ---- */

/* Waits for the reply to the latest question. Returns false if no reply arrives. */
static bool await_time(socket_destination *s, int64_t deadline_ns)
{
    while (!s->replied) {
        if (s->blocks_acknowledged >= s->question) {
            s->has_no_time = true;
            return false;
        }
        if (wait_until(s, nl_channel_wants(&s->channel, POLLIN), deadline_ns) != 0)
            return false;
        if (receive(s) != 0 && !s->replied) {
            disconnect(s);
            return false;
        }
    }
    return true;
}

/*
 * Computes the offset and delay from four timestamps (RFC 5905), and from the elapsed time by this host's monotonic
 * clock.
 */
static void compute_exchange(const socket_destination *s, int64_t sent_ns, int64_t passed_ns, nl_exchange *e)
{
    int64_t there_ns = s->reply[0] - sent_ns, back_ns = s->reply[1] - (sent_ns + passed_ns);
    e->time_ns = sent_ns + passed_ns / 2;
    e->monotonic_ns = nl_monotonic_ns();
    e->offset_ns = there_ns / 2 + back_ns / 2;
    e->delay_ns = passed_ns - (s->reply[1] - s->reply[0]);
    if (e->delay_ns < 0) /* the collector's clock was set, or the reply is invalid */
        e->delay_ns = passed_ns;
    memcpy(e->collector, s->collector, sizeof e->collector);
}

static nl_status socket_exchange(nl_destination *destination, nl_exchange *exchange)
{
    socket_destination *s = (socket_destination *)destination;
    check_connection(s);
    if (!s->acknowledged || !s->greeted || s->channel.fd < 0 || s->has_no_time || s->blocks_acknowledged < s->question)
        return NL_OFF;
    int64_t deadline_ns = nl_deadline_ns(s->timeout_ms < EXCHANGE_MS ? s->timeout_ms : EXCHANGE_MS);
    int64_t sent_ns = nl_time_now_ns(), start_ns = nl_monotonic_ns();
    if (send_question(s, sent_ns, deadline_ns) != NL_OK) {
        disconnect(s); /* part of the question may have been sent */
        return NL_FAILED;
    }
    bool replied = await_time(s, deadline_ns);
    int64_t passed_ns = nl_monotonic_ns() - start_ns;
    s->question_ns = 0;
    if (!replied)
        return nl_error_set(NL_ERROR_PROTOCOL, "the collector did not reply to a request for its time");
    compute_exchange(s, sent_ns, passed_ns, exchange);
    return NL_OK;
}

static void socket_poll(nl_destination *destination)
{
    check_connection((socket_destination *)destination);
}

static void socket_after_fork(nl_destination *destination)
{
    socket_destination *s = (socket_destination *)destination;
    if (s->connecting) {
        if (s->channel.fd >= 0)
            close(s->channel.fd);
        s->channel = (nl_channel){.fd = -1}; /* a TLS session leaks: the parent's thread may have been changing it */
    }
    check_descriptor(s);
    s->received = (nl_buffer){0};   /* the parent's thread may have been changing it */
    nl_channel_forget(&s->channel); /* the parent's connection stays open */
    disconnect(s);
}

/*
 * After text was sent, waits until the peer closes the connection or a timeout passes. The kernel resets a socket that
 * is closed with unread bytes, and would then discard the bytes that the peer has not read yet.
 */
static void linger(socket_destination *s)
{
    int64_t deadline_ns = nl_deadline_ns(s->timeout_ms < LINGER_MS ? s->timeout_ms : LINGER_MS);
    nl_channel_end(&s->channel);
    while (receive(s) == 0 && wait_until(s, POLLIN, deadline_ns) != ETIMEDOUT)
        continue;
}

static nl_status socket_close(nl_destination *destination, bool keep)
{
    (void)keep;
    socket_destination *s = (socket_destination *)destination;
    nl_status status = NL_OK;
    s->interrupt = NULL; /* the interrupt was for a write */
    check_descriptor(s);
    if (s->channel.fd >= 0 && !s->acknowledged)
        linger(s);
    if (s->text_lost) {
        nl_error_set(NL_ERROR_PROTOCOL,
                     "the collector closed a connection before it had read all text, so some records "
                     "may be lost; with format=nlb, the collector acknowledges each record");
        status = nl_dialer_prepend(s->dialer);
    }
    disconnect(s);
    remove_from_list(s);
    nl_dialer_free(s->dialer);
    nl_buffer_free(&s->received);
    free(s);
    return status;
}

void nl_destinations_lock(void)
{
    pthread_mutex_lock(&list_mutex);
}

void nl_destinations_unlock(bool child)
{
    for (socket_destination *s = list; child && s != NULL; s = s->next)
        socket_after_fork(&s->base);
    pthread_mutex_unlock(&list_mutex);
}

static const nl_destination_kind socket_kind = {.write = socket_write,
                                                .poll = socket_poll,
                                                .exchange = socket_exchange,
                                                .after_fork = socket_after_fork,
                                                .close = socket_close};

nl_destination *nl_socket_destination_open(const nl_url *url, const nl_destination_options *options)
{
    socket_destination *s = nl_memory_check(calloc(1, sizeof *s));
    if (s == NULL)
        return NULL;
    s->base.kind = &socket_kind;
    s->channel.fd = -1;
    s->acknowledged = options->format == NL_FORMAT_NLB;
    s->on_control = options->on_control;
    s->user = options->user;
    s->interrupt = options->interrupt;
    s->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : NL_DESTINATION_TIMEOUT_MS;
    s->patience_ms = s->timeout_ms < NL_PEER_PATIENCE_MS ? s->timeout_ms : NL_PEER_PATIENCE_MS;
    s->dialer = nl_dialer_new(url, "netlogd");
    add_to_list(s);
    if (s->dialer != NULL &&
        (connect_now(s, nl_deadline_ns(s->timeout_ms), options->connect_later) == NL_OK || options->connect_later))
        return &s->base;
    socket_close(&s->base, false);
    return NULL;
}
