#include "config.h"

#include "request.h"

#include "accepting.h"
#include "base/monotonic.h"
#include "control.h"
#include "program/program.h"
#include "request_line.h"
#include "subscription.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LINE_MAX = 8 << 10,
    READ_SIZE = 4 << 10,
    ANSWER_SECONDS = 60, /* in which an answer that ends is to be read */
    SENT_AT_ONCE = 128 << 10,
};

request_guess request_recognise(const char *data, size_t size)
{
    size_t known = size < REQUEST_MARK_SIZE ? size : REQUEST_MARK_SIZE;
    if (memcmp(data, REQUEST_MARK, known) != 0)
        return REQUEST_NO;
    return known == REQUEST_MARK_SIZE ? REQUEST_YES : REQUEST_PERHAPS;
}

/* ---- answers ---- */

nl_record *request_record(request *r, nl_level level, const char *event)
{
    const char *host = r->server->host;
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
        nl_record_add_string(record, name, value, strlen(value));
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

void request_fail(request *r, const char *reason)
{
    nl_record *record = request_record(r, NL_ERROR, "Netlogd.Error");
    request_add_text(record, "REASON", reason);
    request_put(r, record);
    r->server->counts.requests_failed++;
    nl_write(r->server->log, NL_WARNING, "Netlogd.RequestFailed", "PEER=%s REASON=%s", r->peer, reason);
    request_end(r);
}

void request_end(request *r)
{
    r->ending = true;
    event_add(r->deadline, &(struct timeval){.tv_sec = ANSWER_SECONDS});
    request_send(r);
}

/* The only place that writes to a client. False when it is gone. */
static bool send_some(request *r)
{
    size_t sent = 0;
    while (evbuffer_get_length(r->queue) > 0 && sent < SENT_AT_ONCE) {
        struct evbuffer_iovec piece;
        evbuffer_peek(r->queue, -1, NULL, &piece, 1);
        ssize_t put = nl_channel_write(&r->channel, piece.iov_base, piece.iov_len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno == EAGAIN;
        evbuffer_drain(r->queue, (size_t)put);
        client_table_heard(r->server->clients, &r->entry, nl_monotonic_ns());
        sent += (size_t)put;
        if ((size_t)put < piece.iov_len)
            break;
    }
    return true;
}

/* What is within the channel is read when the others had their turn. */
static void listen_for_data(request *r)
{
    event_add(r->readable, NULL);
    if (nl_channel_has_more(&r->channel))
        event_active(r->readable, EV_READ, 0);
}

/* It is closed when that is read, as nothing waits any more: whoever called still uses it. */
static void give_up(request *r)
{
    evbuffer_drain(r->queue, evbuffer_get_length(r->queue));
    shutdown(r->channel.fd, SHUT_RDWR);
}

void request_send(request *r)
{
    bool good = send_some(r);
    bool left = evbuffer_get_length(r->queue) > 0;
    if (good && left)
        event_add(r->writable, NULL);
    else if (!good)
        give_up(r);
    else if (r->ending)
        nl_channel_end(&r->channel);
    if (!left || !good)
        listen_for_data(r); /* if it had said all it had to say: see on_readable */
}

void request_send_later(request *r)
{
    background_add(r->server->background, &r->task);
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

/* ---- the line ---- */

bool request_value(request *r, const nl_record *asked, const char *name, char *out, size_t size)
{
    nl_field field;
    char scratch[NL_FIELD_TEXT_SIZE], reason[80];
    if (!nl_record_find(asked, name, &field))
        return false;
    nl_string text = nl_field_text(&field, scratch);
    if (text.size < size && memchr(text.data, '\0', text.size) == NULL) {
        memcpy(out, text.data, text.size);
        out[text.size] = '\0';
        return true;
    }
    snprintf(reason, sizeof reason, "%s is too long, or holds a NUL", name);
    request_fail(r, reason);
    return false;
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
    char reason[REQUEST_REASON_SIZE];
    nl_buffer storage = {0};
    nl_record *asked = nl_record_new();
    r->answered = true;
    r->server->counts.requests++;
    client_table_heard(r->server->clients, &r->entry, nl_monotonic_ns());
    event_del(r->deadline);
    const request_verb *verb = request_line_read(line, size, verbs, VERB_COUNT, r->control, &storage, asked, reason);
    if (verb != NULL)
        verb->answer(r, asked);
    else
        request_fail(r, reason);
    nl_record_free(asked);
    nl_buffer_free(&storage);
}

/* Answers the line when all of it has come. What comes behind it is passed over. */
static void answer_whole_line(request *r)
{
    const char *newline = r->line.size > 0 ? memchr(r->line.data, '\n', r->line.size) : NULL;
    size_t size = newline != NULL ? (size_t)(newline - r->line.data) : r->line.size;
    if (size > LINE_MAX) {
        r->answered = true;
        request_fail(r, "the line is too long");
    } else if (newline != NULL && r->control && request_recognise(r->line.data, size) != REQUEST_YES) {
        r->answered = true;
        request_fail(r, "no request: " REQUEST_MARK "VERB is wanted");
    } else if (newline != NULL) {
        size_t mark = r->control ? REQUEST_MARK_SIZE : 0;
        answer_line(r, r->line.data + mark, size - mark);
    } else {
        listen_for_data(r);
    }
    if (r->answered)
        nl_buffer_free(&r->line);
}

/* Takes what came before the answer. It is not read on until that was looked at. */
static void request_take(request *r, const char *data, size_t size)
{
    nl_buffer_append(&r->line, data, size);
    event_del(r->readable);
    if (r->control)
        answer_whole_line(r);
    else
        background_add(r->server->background, &r->task);
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

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    request *r = user;
    char bytes[READ_SIZE];
    ssize_t got = nl_channel_read(&r->channel, bytes, sizeof bytes);
    if (got > 0 && !r->answered)
        request_take(r, bytes, (size_t)got);
    else if (got == 0 && r->ending && request_queued(r) > 0)
        event_del(r->readable); /* it has said all that it has to say, and may still read */
    else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        request_close(r);
    else if (nl_channel_has_more(&r->channel))
        event_active(r->readable, EV_READ, 0);
}

static void on_deadline(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    request *r = user;
    nl_write(r->server->log, NL_WARNING, "Netlogd.RequestLate", "PEER=%s NOTE=%s", r->peer,
             r->answered ? "closed: the answer is not read" : "closed: the line does not end");
    request_close(r);
}

/* Keeps count of what waits in all queues. */
static void on_queue(struct evbuffer *queue, const struct evbuffer_cb_info *change, void *user)
{
    (void)queue;
    server *srv = user;
    srv->queued += change->n_added - change->n_deleted;
}

/* ---- from first to last ---- */

static void close_entry(client_entry *entry)
{
    request_close((request *)((char *)entry - offsetof(request, entry)));
}

void request_new(server *srv, nl_channel channel, const char *peer, client_entry *entry, const listener *at,
                 const char *data, size_t size)
{
    request *r = calloc(1, sizeof *r);
    if (r == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    r->server = srv;
    r->channel = channel;
    r->control = entry == NULL;
    r->at = at;
    snprintf(r->peer, sizeof r->peer, "%s", peer);
    r->record = nl_record_new();
    r->queue = evbuffer_new();
    if (r->queue != NULL)
        evbuffer_add_cb(r->queue, on_queue, srv);
    r->readable = event_new(srv->base, channel.fd, EV_READ | EV_PERSIST, on_readable, r);
    r->writable = event_new(srv->base, channel.fd, EV_WRITE, on_writable, r);
    r->task = (background_task){.run = run_task, .user = r};
    r->deadline = event_new(srv->base, -1, 0, on_deadline, r);
    if (r->queue == NULL || r->readable == NULL || r->writable == NULL || r->deadline == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    r->next = srv->requests;
    r->link = &srv->requests;
    if (r->next != NULL)
        r->next->link = &r->next;
    srv->requests = r;
    r->entry.fd = channel.fd;
    r->entry.close = close_entry;
    if (entry != NULL)
        client_table_replace(srv->clients, entry, &r->entry);
    if (srv->settings->handshake_s > 0) /* in which the line is to come */
        event_add(r->deadline, &(struct timeval){.tv_sec = srv->settings->handshake_s});
    request_take(r, data, size);
}

void request_settings_changed(request *r)
{
    if (r->at != NULL && !accepting_may_stay(r->server, r->at, &r->channel, r->peer))
        request_close(r);
}

void request_close(request *r)
{
    subscription_free(r->subscription);
    background_remove(r->server->background, &r->task);
    *r->link = r->next;
    if (r->next != NULL)
        r->next->link = r->link;
    client_table_remove(r->server->clients, &r->entry);
    event_free(r->readable);
    event_free(r->writable);
    event_free(r->deadline);
    evbuffer_drain(r->queue, request_queued(r)); /* which is counted */
    evbuffer_free(r->queue);
    nl_buffer_free(&r->line);
    nl_record_free(r->record);
    nl_channel_close(&r->channel);
    free(r);
}
