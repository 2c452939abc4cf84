#include "config.h"

#include "request.h"

#include "accepting.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/text.h"
#include "control.h"
#include "counts.h"
#include "request_line.h"
#include "server.h"
#include "subscription.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    LINE_SIZE_MAX = 8 << 10,
    READ_SIZE = 4 << 10,
    ANSWER_SECONDS = 60, /* maximum time for the client to read the rest of a reply that is complete */
    SENT_AT_ONCE = 128 << 10,
};

static request *requests;
static size_t all_queued; /* size of all queues together in bytes */

request_guess request_recognise(const char *data, size_t size)
{
    size_t known = size < REQUEST_MARK_SIZE ? size : REQUEST_MARK_SIZE;
    if (memcmp(data, REQUEST_MARK, known) != 0)
        return REQUEST_NO;
    return known == REQUEST_MARK_SIZE ? REQUEST_YES : REQUEST_PERHAPS;
}

/* ---- replies ---- */

nl_record *request_record(request *r, nl_level level, const char *event)
{
    const char *host = server_host();
    nl_record_clear(r->record);
    nl_record_set_time(r->record, nl_time_now_ns() / 1000 * 1000);
    nl_record_set_host(r->record, host, strlen(host));
    nl_record_set_prog(r->record, "netlogd", strlen("netlogd"));
    nl_record_set_level(r->record, level);
    nl_record_set_event(r->record, event, strlen(event));
    return r->record;
}

void request_add_text(nl_record *record, const char *name, const char *value)
{
    if (value != NULL)
        nl_record_add_text(record, name, value);
}

void request_add_time(nl_record *record, const char *name, int64_t time_ns)
{
    char text[NL_TIME_TEXT_SIZE];
    nl_record_add_string(record, name, text, nl_time_format_ulm(time_ns, text));
}

void request_put(request *r, const nl_record *record)
{
    nl_buffer line = {0};
    nl_record_encode(record, NL_FORMAT_ULM, &line);
    evbuffer_add(r->queue, line.data, line.size);
    nl_buffer_free(&line);
}

size_t request_queued(const request *r)
{
    return evbuffer_get_length(r->queue);
}

/* Ends the reply with the current error. */
static void fail(request *r)
{
    char reason[NL_ERROR_MESSAGE_SIZE];
    snprintf(reason, sizeof reason, "%s", nl_error_message());
    nl_record *record = request_record(r, NL_ERROR, "Netlogd.Error");
    request_add_text(record, "REASON", reason);
    request_put(r, record);
    counts_add(COUNT_REQUESTS_FAILED, 1);
    nl_write(server_log(), NL_WARNING, "Netlogd.RequestFailed", "PEER=%s REASON=%s", r->peer, reason);
    request_end(r);
}

void request_end(request *r)
{
    r->ending = true;
    event_add(r->deadline, &(struct timeval){.tv_sec = ANSWER_SECONDS});
    request_send(r);
}

/* Writes some of the queued bytes to a client. Only this function writes. Returns false if writing fails. */
static bool send_some(request *r)
{
    size_t sent = 0;
    while (request_queued(r) > 0 && sent < SENT_AT_ONCE) {
        struct evbuffer_iovec piece;
        evbuffer_peek(r->queue, -1, NULL, &piece, 1);
        ssize_t put = nl_channel_write(&r->channel, piece.iov_base, piece.iov_len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno == EAGAIN;
        evbuffer_drain(r->queue, (size_t)put);
        client_table_heard(accepting_get_clients(), &r->entry, nl_monotonic_ns());
        sent += (size_t)put;
        if ((size_t)put < piece.iov_len)
            break;
    }
    return true;
}

/* Waits for data from the client. If the channel has already buffered bytes, netlogd reads them after other events. */
static void listen_for_data(request *r)
{
    event_add(r->readable, NULL);
    if (nl_channel_has_more(&r->channel))
        event_active(r->readable, EV_READ, 0);
}

void request_send(request *r)
{
    bool good = send_some(r), left = request_queued(r) > 0;
    if (good && left) {
        event_add(r->writable, NULL);
        return;
    }
    if (!good) {
        /* The caller still uses the request, so netlogd closes the request later, when it reads the channel. */
        evbuffer_drain(r->queue, request_queued(r));
        shutdown(r->channel.fd, SHUT_RDWR);
    } else if (r->ending) {
        nl_channel_end(&r->channel);
    }
    listen_for_data(r);
}

void request_send_later(request *r)
{
    background_add(&r->task);
}

bool request_is_held_up(const request *r)
{
    return event_pending(r->writable, EV_WRITE, NULL) != 0;
}

static void on_writable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    request_send_later(user);
}

/* ---- the request line ---- */

nl_status request_get_value(const nl_record *asked, const char *name, char *out, size_t size)
{
    nl_field field;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (!nl_record_find(asked, name, &field))
        return NL_OK;
    nl_string text = nl_field_text(&field, scratch);
    if (text.size >= size || memchr(text.data, '\0', text.size) != NULL)
        return nl_error_set(NL_ERROR_INVALID, "%s is too long, or contains a NUL byte", name);
    memcpy(out, text.data, text.size);
    out[text.size] = '\0';
    return NL_OK;
}

static const request_verb verbs[] = {
    {"subscribe", " WHERE FORMAT SINCE ", false, subscription_start},
    {"status", "", true, control_status},
    {"clients", "", true, control_clients},
    {"streams", "", true, control_streams},
    {"subscribers", "", true, control_subscribers},
    {"clocks", "", true, control_clocks},
    {"drops", "", true, control_drops},
    {"settings", "", true, control_settings},
    {"reload", "", true, control_reload},
    {"tell", " COMMAND PROG ", true, control_tell},
};

enum { VERB_COUNT = sizeof verbs / sizeof verbs[0] };

static void answer_line(request *r, const char *line, size_t size)
{
    nl_buffer storage = {0};
    nl_record *asked = nl_record_new();
    counts_add(COUNT_REQUESTS, 1);
    client_table_heard(accepting_get_clients(), &r->entry, nl_monotonic_ns());
    event_del(r->deadline);
    const request_verb *verb = request_line_read(line, size, verbs, VERB_COUNT, r->control, &storage, asked);
    if (verb == NULL || verb->answer(r, asked) != NL_OK)
        fail(r);
    nl_record_free(asked);
    nl_buffer_free(&storage);
}

/* Executes the request if its whole line has arrived. */
static void answer_whole_line(request *r)
{
    const char *newline = r->line.size > 0 ? memchr(r->line.data, '\n', r->line.size) : NULL;
    size_t size = newline != NULL ? (size_t)(newline - r->line.data) : r->line.size;
    size_t mark = r->control ? REQUEST_MARK_SIZE : 0;
    r->answered = newline != NULL || size > LINE_SIZE_MAX;
    if (!r->answered) {
        listen_for_data(r);
        return;
    }
    if (size > LINE_SIZE_MAX) {
        nl_error_set(NL_ERROR_INVALID, "the line is longer than %d bytes", LINE_SIZE_MAX);
        fail(r);
    } else if (r->control && request_recognise(r->line.data, size) != REQUEST_YES) {
        nl_error_set(NL_ERROR_INVALID, "invalid request; a request begins with " REQUEST_MARK "VERB");
        fail(r);
    } else {
        answer_line(r, r->line.data + mark, size - mark);
    }
    nl_buffer_free(&r->line);
}

/*
 * Adds bytes that arrived before the reply. netlogd does not read the channel again until it has examined these bytes.
 */
static void add_to_line(request *r, const char *data, size_t size)
{
    nl_buffer_append(&r->line, data, size);
    event_del(r->readable);
    if (r->control)
        answer_whole_line(r);
    else
        background_add(&r->task);
}

static void run_task(void *user)
{
    request *r = user;
    if (!r->answered) {
        answer_whole_line(r);
        return;
    }
    request_send(r);
    if (r->subscription != NULL)
        subscription_drained(r->subscription);
}

/* ---- requests ---- */

static void request_close(request *r)
{
    subscription_free(r->subscription);
    background_remove(&r->task);
    *r->link = r->next;
    if (r->next != NULL)
        r->next->link = r->link;
    client_table_remove(accepting_get_clients(), &r->entry);
    event_free(r->readable);
    event_free(r->writable);
    event_free(r->deadline);
    evbuffer_drain(r->queue, request_queued(r)); /* on_queue counts the removed bytes */
    evbuffer_free(r->queue);
    nl_buffer_free(&r->line);
    nl_record_free(r->record);
    nl_channel_close(&r->channel);
    free(r);
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    request *r = user;
    char bytes[READ_SIZE];
    ssize_t got = nl_channel_read(&r->channel, bytes, sizeof bytes);
    if (got > 0 && !r->answered)
        add_to_line(r, bytes, (size_t)got);
    else if (got == 0 && r->ending && request_queued(r) > 0)
        event_del(r->readable); /* the client will send no more, but may still read */
    else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        request_close(r);
    else if (nl_channel_has_more(&r->channel))
        event_active(r->readable, EV_READ, 0);
}

static void on_deadline(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    request *r = user;
    nl_write(server_log(), NL_WARNING, "Netlogd.RequestLate", "PEER=%s NOTE=%s", r->peer,
             r->answered ? "closed: the client does not read the reply" : "closed: the request line is incomplete");
    request_close(r);
}

static void on_queue(struct evbuffer *queue, const struct evbuffer_cb_info *change, void *user)
{
    (void)queue, (void)user;
    all_queued += change->n_added - change->n_deleted;
}

static void close_entry(client_entry *entry)
{
    request_close((request *)((char *)entry - offsetof(request, entry)));
}

void request_new(nl_channel channel, const char *peer, client_entry *entry, const listener *at, const char *data,
                 size_t size)
{
    request *r = nl_memory_check(calloc(1, sizeof *r));
    r->channel = channel;
    r->control = entry == NULL;
    r->at = at;
    snprintf(r->peer, sizeof r->peer, "%s", peer);
    r->record = nl_record_new();
    r->queue = nl_memory_check(evbuffer_new());
    evbuffer_add_cb(r->queue, on_queue, NULL);
    r->readable = server_new_event(channel.fd, EV_READ | EV_PERSIST, on_readable, r);
    r->writable = server_new_event(channel.fd, EV_WRITE, on_writable, r);
    r->deadline = server_new_event(-1, 0, on_deadline, r);
    r->task = (background_task){.run = run_task, .user = r};
    r->next = requests;
    r->link = &requests;
    if (r->next != NULL)
        r->next->link = &r->next;
    requests = r;
    r->entry.fd = channel.fd;
    r->entry.close = close_entry;
    if (entry != NULL)
        client_table_replace(entry, &r->entry);
    if (server_settings()->handshake_s > 0) /* limit for receiving the whole line */
        event_add(r->deadline, &(struct timeval){.tv_sec = server_settings()->handshake_s});
    add_to_line(r, data, size);
}

void requests_visit(void (*visit)(request *r, void *user), void *user)
{
    for (request *r = requests, *next; r != NULL; r = next) {
        next = r->next;
        visit(r, user);
    }
}

static void check_settings(request *r, void *user)
{
    (void)user;
    if (r->at != NULL && !accepting_may_stay(r->at, &r->channel, r->peer))
        request_close(r);
}

void requests_settings_changed(void)
{
    requests_visit(check_settings, NULL);
}

size_t requests_get_queued(void)
{
    return all_queued;
}

static void send_queue(request *r, void *user)
{
    (void)user;
    if (request_queued(r) > 0)
        request_send(r);
    if (r->subscription != NULL)
        subscription_drained(r->subscription);
}

size_t requests_send(void)
{
    requests_visit(send_queue, NULL);
    return all_queued;
}

void requests_close(void)
{
    while (requests != NULL)
        request_close(requests);
}
