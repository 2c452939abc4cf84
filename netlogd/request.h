/*
 * Requests: a client sends NETLOGGER/1 and one line, and netlogd replies with records (doc/requests.md).
 *
 * request.c reads the line, calls the function of its verb (subscription.c, control.c), and sends the reply from a
 * queue. No function waits for a client. Bytes that a client does not read stay in its queue; the verb must limit the
 * size of the queue. netlogd processes requests and sends replies in the background (background.h), except on the
 * control socket.
 *
 * The module owns the list of requests and the total size of their queues. Only the server's thread may call it.
 */
#ifndef NETLOGD_REQUEST_H
#define NETLOGD_REQUEST_H

#include "background.h"
#include "service/client_table.h"
#include "service/listener.h"
#include "transport/channel.h"

#include <event2/buffer.h>

typedef struct request request;
typedef struct subscription subscription;

struct request {
    request *next, **link; /* links in the list of requests */
    nl_channel channel;
    client_entry entry; /* requests on the control socket are in no table */
    const listener *at; /* the listener that accepted the client; NULL: the control socket */
    bool control;       /* the request came over the control socket */
    bool answered;      /* the request line was read; netlogd ignores later bytes */
    bool ending;        /* netlogd closes the request when it has sent the reply */
    struct event *readable;
    struct event *writable;
    struct event *deadline;
    nl_buffer line;
    struct evbuffer *queue; /* the part of the reply that has not been sent yet */
    background_task task;   /* task that reads the line and then sends the reply */
    nl_record *record;      /* the record of the reply that is being composed */
    subscription *subscription;
    char peer[80];
};

/* ---- for connections and the server ---- */

#define REQUEST_MARK "NETLOGGER/1 "
enum { REQUEST_MARK_SIZE = sizeof REQUEST_MARK - 1 };

typedef enum request_guess { REQUEST_NO, REQUEST_PERHAPS, REQUEST_YES } request_guess;

/* Returns whether a connection that begins with these bytes is a request. Ignores the bytes after REQUEST_MARK. */
request_guess request_recognise(const char *data, size_t size);

/*
 * Creates a request, which takes ownership of the channel. `data` contains the bytes after REQUEST_MARK. Copies `peer`.
 * The request replaces `entry` in the table of clients. `at` is the listener that accepted the client. For the control
 * socket, entry and at are NULL.
 */
void request_new(nl_channel channel, const char *peer, client_entry *entry, const listener *at, const char *data,
                 size_t size);

/* Calls `visit` for each request. */
void requests_visit(void (*visit)(request *r, void *user), void *user);

/* Closes the requests of clients that may no longer connect. */
void requests_settings_changed(void);

/* Returns the number of bytes in all queues. */
size_t requests_get_queued(void);

/*
 * Sends as much of all queues as the kernel accepts. Returns the number of bytes that are still queued. Called at the
 * end of the program.
 */
size_t requests_send(void);

void requests_close(void);

/* ---- for verbs ---- */

/*
 * Returns a new record for a reply, with netlogd as its program, the current time, a level and an event. The record is
 * valid until the next call.
 */
nl_record *request_record(request *r, nl_level level, const char *event);

/* Adds a field to a record, unless `value` is NULL. */
void request_add_text(nl_record *record, const char *name, const char *value);
void request_add_time(nl_record *record, const char *name, int64_t time_ns);

/* Appends a record to the queue as ULM. */
void request_put(request *r, const nl_record *record);

/* Sends as much of the queue as the kernel accepts now, at most about 128 KiB, and the rest later. */
void request_send(request *r);

/* Like request_send, but sends in the background. */
void request_send_later(request *r);

/* Returns whether the kernel accepts no more bytes until the client has read some bytes. */
bool request_is_held_up(const request *r);

/* Returns the number of bytes in the queue. */
size_t request_queued(const request *r);

/* Sends the rest of the reply, and then closes the request. Closes the request after 60 seconds in any case. */
void request_end(request *r);

/*
 * Copies the value of a field of the request line to `out`. If the field is missing, `out` stays unchanged. If the
 * value does not fit into `size` bytes or contains a NUL byte, sets the error and returns NL_FAILED.
 */
nl_status request_get_value(const nl_record *asked, const char *name, char *out, size_t size);

#endif
