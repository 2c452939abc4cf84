/*
 * Requests: a client sends NETLOGGER/1 and one line, and netlogd replies with records (doc/requests.md).
 *
 * request.c reads the line, calls the function of its verb (subscription.c, control.c) and sends the queue of the
 * reply. No function waits: bytes that a client does not read stay in its queue, whose size the verb must limit.
 * Requests are processed, and replies sent, in the background (background.h), except on the control socket.
 *
 * The module owns the list of requests and the size of their queues. The server's thread only.
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
    request *next, **link; /* in the list */
    nl_channel channel;
    client_entry entry; /* requests on the control socket are in no table */
    const listener *at; /* where it was accepted; NULL: the control socket */
    bool control;       /* the request came over the control socket */
    bool answered;      /* the line was read; further bytes are ignored */
    bool ending;        /* the request is closed when the reply has been sent */
    struct event *readable;
    struct event *writable;
    struct event *deadline;
    nl_buffer line;
    struct evbuffer *queue; /* the answer */
    background_task task;   /* reads the line, then sends the reply */
    nl_record *record;      /* of the reply, while it is composed */
    subscription *subscription;
    char peer[80];
};

/* ---- for connections and the server ---- */

#define REQUEST_MARK "NETLOGGER/1 "
enum { REQUEST_MARK_SIZE = sizeof REQUEST_MARK - 1 };

typedef enum request_guess { REQUEST_NO, REQUEST_PERHAPS, REQUEST_YES } request_guess;

/* Returns whether a connection that begins with these bytes is a request. Bytes after the mark are ignored. */
request_guess request_recognise(const char *data, size_t size);

/*
 * Makes a request, which then owns the channel. data are the bytes after the mark. peer is copied. The request takes
 * the place of the client entry. at is the listener that accepted the client. Both are NULL for the control socket.
 */
void request_new(nl_channel channel, const char *peer, client_entry *entry, const listener *at, const char *data,
                 size_t size);

/* Calls visit for each request. */
void requests_visit(void (*visit)(request *r, void *user), void *user);

/* Closes the requests whose clients may no longer be connected. */
void requests_settings_changed(void);

/* Returns the bytes in all queues. */
size_t requests_get_queued(void);

/* Sends as much of all queues as the kernel accepts. Returns the number of bytes left. For the end of the program. */
size_t requests_send(void);

/* Closes all requests. */
void requests_close(void);

/* ---- for verbs ---- */

/*
 * Returns a new record for a reply, with netlogd as its program, the present time, a level and an event; valid until
 * the next call.
 */
nl_record *request_record(request *r, nl_level level, const char *event);

/* Adds a field to a record, unless value is NULL. */
void request_add_text(nl_record *record, const char *name, const char *value);
void request_add_time(nl_record *record, const char *name, int64_t time_ns);

/* Appends the record to the queue, as ULM. */
void request_put(request *r, const nl_record *record);

/* Sends as much of the queue as the kernel accepts now, and the rest later. */
void request_send(request *r);

/* As request_send, in the background. */
void request_send_later(request *r);

/* Returns whether the kernel accepts no more bytes until the client has read some. */
bool request_is_held_up(const request *r);

/* Returns the bytes in the queue. */
size_t request_queued(const request *r);

/* Ends the request when everything is sent. */
void request_end(request *r);

/*
 * Copies the value of a field of the request's line to out; leaves out unchanged if the field is missing. Fails if the
 * value is too long.
 */
nl_status request_get_value(const nl_record *asked, const char *name, char *out, size_t size);

#endif
