/*
 * A client that asks instead of logging: it begins with NETLOGGER/1, one line says what it wants, and it is answered in
 * records (doc/requests.md).
 *
 * request.c recognises, reads and dispatches such a line and sends what is put into the queue of the answer; what the
 * verbs do is in subscription.c and control.c. Nothing here waits: what a client does not read stays in its queue,
 * whose size is for those who fill it to bound. Lines are answered, and answers sent, in the background (background.h),
 * except those of the control socket.
 */
#ifndef NETLOGD_REQUEST_H
#define NETLOGD_REQUEST_H

#include "background.h"
#include "server.h"
#include "transport/channel.h"

#include <event2/buffer.h>

typedef struct request request;
typedef struct subscription subscription;

struct request {
    request *next, **link; /* in the server's list */
    server *server;
    nl_channel channel;
    client_entry entry; /* in no table: over the control socket */
    const listener *at; /* where it was accepted; NULL: the control socket */
    bool control;       /* it came over the control socket */
    bool answered;      /* the line was read; nothing that comes after it counts */
    bool ending;        /* it is closed once the answer is sent */
    struct event *readable;
    struct event *writable;
    struct event *deadline;
    nl_buffer line;
    struct evbuffer *queue; /* the answer */
    background_task task;   /* reads the line, then sends the answer */
    nl_record *record;      /* of the answer, being made */
    subscription *subscription;
    char peer[80];
};

/* ---- for connections ---- */

#define REQUEST_MARK "NETLOGGER/1 "
enum { REQUEST_MARK_SIZE = sizeof REQUEST_MARK - 1 };

typedef enum request_guess { REQUEST_NO, REQUEST_PERHAPS, REQUEST_YES } request_guess;

/* Whether a connection that begins with these bytes is a request. Bytes behind the mark are not looked at. */
request_guess request_recognise(const char *data, size_t size);

/*
 * Takes the channel over; data is what came behind the mark. peer is copied. The request takes the place of the client
 * entry and came in at a listener; NULL, both: it came over the control socket.
 */
void request_new(server *srv, nl_channel channel, const char *peer, client_entry *entry, const listener *at,
                 const char *data, size_t size);

/* Closes a client that may not stay after a reload (accepting_may_stay). */
void request_settings_changed(request *r);

/* Closes and frees. */
void request_close(request *r);

/* ---- for verbs ---- */

/* A new record of an answer, valid until the next one: of now, of netlogd, of that level and event. */
nl_record *request_record(request *r, nl_level level, const char *event);

/* Adds a field to a record of an answer. value may be NULL: then it adds none. */
void request_add_text(nl_record *record, const char *name, const char *value);
void request_add_time(nl_record *record, const char *name, int64_t time_ns);

/* Puts it into the queue, as ULM. */
void request_put(request *r, const nl_record *record);

/* Sends what the kernel takes now of the queue, and the rest when it takes more. */
void request_send(request *r);

/* Has that done in the background. */
void request_send_later(request *r);

/* Whether the kernel takes no more of the queue until the client has read some. */
bool request_is_held_up(const request *r);

/* The bytes that wait to be sent. */
size_t request_queued(const request *r);

/* The last record of an answer that failed; the request ends. */
void request_fail(request *r, const char *reason);

/* Ends it once all is sent. */
void request_end(request *r);

/* The value of a field of the request's line as text in out; false when there is none. Too long a one fails r. */
bool request_value(request *r, const nl_record *asked, const char *name, char *out, size_t size);

#endif
