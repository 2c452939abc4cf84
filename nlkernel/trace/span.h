/*
 * The spans that nlkernel trace finds. A span is a request in a server or a call in a client. A request lasts from
 * reading the request's first bytes to sending the reply; a call lasts from sending the request to reading the reply.
 *
 * A span has a parent only if the parent is certain. The thread or connection of a call proves its parent (causes.h).
 * The parent of a request in a server is the call at the other end of the connection. Spans hold references to their
 * parents, so that all spans of a trace get the same trace ID, whatever the order of writing. The module reuses the
 * memory of released spans. Not thread-safe.
 */
#ifndef NLKERNEL_TRACE_SPAN_H
#define NLKERNEL_TRACE_SPAN_H

#include "trace/protocol.h"

#include <netlogger.h>

/* The reason why a span has its parent. */
typedef enum span_cause {
    SPAN_CAUSE_NONE,       /* no parent was found */
    SPAN_CAUSE_MESSAGE,    /* the parent is the call at the other end of the connection */
    SPAN_CAUSE_THREAD,     /* the thread had only this request */
    SPAN_CAUSE_HANDLER,    /* the thread is an event loop that handled data of this request */
    SPAN_CAUSE_CONNECTION, /* the connection was opened for this request */
    SPAN_CAUSE_CONTEXT,    /* the call has the trace ID of this request in its traceparent header */
    SPAN_CAUSE_REPLY,      /* the thread received no request, and sent the reply to this request */
    SPAN_CAUSE_WAKEUP, /* the process had no other request; a thread was woken for the request, and has signalled after
                          its calls */
    SPAN_CAUSE_AMBIGUOUS, /* several requests may be the parent, so the span has no parent */
    SPAN_CAUSE_COUNT,
} span_cause;

/* An end of a connection. */
typedef struct span_address {
    uint8_t bytes[16]; /* IPv6, or IPv4 mapped to IPv6; Unix socket: a number that identifies the socket */
    uint16_t port;
    bool is_unix;
} span_address;

struct trace_thread;

typedef struct span span;
struct span {
    unsigned references;
    bool is_server, replied, finished, written;
    const char *wait;         /* the kind of wait; a wait has no protocol and no addresses. NULL: not a wait */
    bool is_secret;           /* the span began with encrypted bytes of a connection whose plain requests are known */
    bool is_plain;            /* a TLS library has encrypted or decrypted the request, which names the span */
    bool has_unknown;         /* HTTP/2: the method, the path or a status is unknown */
    const protocol *protocol; /* NULL: unknown */
    protocol_request request;
    protocol_reply reply;
    int64_t begin_ns, end_ns; /* on the kernel's monotonic clock */
    int64_t tls_ns;           /* duration of the connection's TLS handshake, in the first span after it; 0: unknown */
    uint64_t keys[2];         /* the two keys by which exchanges.c joins the ends of the request; see exchanges.h */
    uint32_t pid, tid;
    char program[16];
    const char *host; /* host of the process, from g_intern_string; NULL: this host */
    span_address local, peer;
    span *parent; /* a reference, or NULL */
    span_cause cause;
    uint32_t candidates; /* SPAN_CAUSE_AMBIGUOUS: number of possible parents */
    char trace_id[33];   /* "" until it is known */
    int64_t hold_ns;     /* time at which the span was finished or, if it was undecided, last held back */

    /* State of exchanges.c. */
    span *previous_message, *next_message;
    int64_t waits_since_ns; /* time since which the span may be in `waiting`; 0: the span is not in `waiting` */
    bool awaited;           /* the span is a call, and its parent waits for the reply */
    int64_t ready_ns;       /* for a call: time at which its thread could read the last data of the reply; 0: unknown */
    bool undecided;         /* the span is a call whose parent the module may find later */
    bool is_multiplexed;    /* the connection carries several requests at the same time */

    /* State of causes.c, for a request in a server. */
    uint32_t waiting;            /* number of calls of the request whose replies have not arrived */
    uint32_t connecting;         /* number of unused connections that the process has opened for the request */
    uint32_t calls;              /* number of calls of the request */
    struct trace_thread *thread; /* the thread that works on the request, or NULL */
    uint32_t idles, polls;       /* trace_event.idles and polls when the thread last read data for the request */
    uint64_t order;              /* trace_thread.order when the thread last read data for the request */
    bool counts_waits;           /* trace_event.counts_waits at that time */
    bool handed_over;            /* the thread woke another thread while it handled the request */
};

span *span_new(void);
span *span_hold(span *s);   /* Adds a reference. Returns s */
void span_release(span *s); /* Removes a reference; NULL is allowed */

/* Makes `parent` the parent of a span for the reason `cause`, unless the span has a parent, is an ancestor of `parent`,
 * or belongs to another trace. */
void span_set_parent(span *s, span *parent, span_cause cause);

/* Sets the ID of a span's trace, unless the trace already has an ID. `trace_id` comes from a traceparent header that
 * the span's program has sent, so the program's own records belong to the same trace. */
void span_set_trace(span *s, const char *trace_id);

/* Returns whether the trace of a span depends on an undecided call. */
bool span_is_undecided(const span *s);

/* Fills in the record of a finished span. `end_ns` is the time of the span's end in nanoseconds since 1970. `host` is
 * the name of this host. Sets the trace ID of the span and of its ancestors. */
void span_make_record(span *s, int64_t end_ns, const char *host, nl_record *record);

#endif
