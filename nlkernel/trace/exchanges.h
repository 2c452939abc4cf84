/*
 * Builds spans from the socket calls of processes.
 *
 * The module keeps the current request at each end of a connection that belongs to a traced process. Bytes that go to
 * the server after a reply begin the next request. The protocol (protocol.h) finds the end of a reply. If the protocol
 * cannot find the end, the reply ends at the next request, at the end of the connection or at a pause. The module joins
 * a call with the request at the other end of the connection by two keys with TCP sequence numbers, never by time. The
 * first key consists of the sequence numbers of both directions. Both ends compute the same first key, unless the
 * client sends requests before it has read all replies. The second key consists of the addresses and the request's
 * sequence number. Both ends compute the same second key, unless a router translates addresses. The module hands out a
 * finished span after EXCHANGES_HOLD_NS, when earlier events from other CPUs have arrived.
 *
 * On Unix sockets, bpf/trace.bpf.c counts the bytes. The addresses are the cookies of the two sockets.
 *
 * An HTTP/2 connection has several requests at the same time, and frames.h assigns its bytes to streams. Each stream
 * has a request. The keys contain the sequence numbers of the request's first frame and of the connection's first byte
 * in the other direction. If frames are missing, all requests of the connection end, because their replies may be
 * missing.
 *
 * On a TLS connection, the encrypted bytes determine the positions, the times and the ends of requests. If probes in a
 * TLS library report the plain data, this data determines the request's name and the end of the reply. The request's
 * position is that of the first call in which the library has sent or received bytes of the request, so that handshakes
 * do not count.
 *
 * If a thread waits in the kernel while it handles one request, the wait is a span within the request, or within the
 * call whose reply the thread waits for.
 *
 * DNS messages in datagrams have no connection. The module joins their ends by the ports, the ID and the question.
 *
 * The memory grows with four numbers:
 * - the ends of connections, at most EXCHANGES_ENDS_MAX
 * - the unfinished HTTP/2 requests, at most EXCHANGES_STREAMS_MAX
 * - the running processes that have sent or received data
 * - the finished spans of the last EXCHANGES_HOLD_NS
 *
 * Not thread-safe.
 */
#ifndef NLKERNEL_TRACE_EXCHANGES_H
#define NLKERNEL_TRACE_EXCHANGES_H

#include "bpf/trace.h"
#include "trace/description.h"
#include "trace/span.h"

#define EXCHANGES_HOLD_NS ((int64_t)500 * 1000000)

enum { EXCHANGES_ENDS_MAX = 100000, EXCHANGES_STREAMS_MAX = 100000 };

typedef struct exchanges exchanges;

typedef struct exchange_counts {
    uint64_t spans;                    /* number of spans that the module has handed out */
    uint64_t requests;                 /* number of these spans without a parent */
    uint64_t causes[SPAN_CAUSE_COUNT]; /* number of spans with each span_cause */
    uint64_t unanswered;               /* number of spans without a reply */
    uint64_t refused; /* number of events of connections beyond EXCHANGES_ENDS_MAX, and of streams beyond the limits */
    uint64_t unnamed; /* number of HTTP/2 spans with unknown headers */
    uint64_t gaps;    /* number of times that bytes were missing between two events of a connection */
} exchange_counts;

/* Receives a finished span, which is valid only during the call. */
typedef void exchanges_take_span(void *user, span *s);

/* Returns an empty set of exchanges, which passes finished spans to `take` with `user`. `described` contains further
 * protocols, or is NULL. `described` must outlive the exchanges and their spans. */
exchanges *exchanges_new(exchanges_take_span *take, void *user, const descriptions *described);
void exchanges_free(exchanges *x); /* NULL is allowed */

/* Handles the next event. */
void exchanges_put(exchanges *x, const struct trace_event *event);

/* Hands out the spans that were finished at least EXCHANGES_HOLD_NS before now_ns, and forgets idle connections,
 * threads and calls. now_ns is a time of the kernel's monotonic clock. */
void exchanges_advance(exchanges *x, int64_t now_ns);

/* Hands out all spans, including those without a reply. Call this function after the last event. */
void exchanges_finish(exchanges *x, int64_t now_ns);

/*
 * Returns whether causes.h needs the waits and wake-ups of threads: a process that receives requests has sent calls, or
 * the module has not seen enough requests yet.
 */
bool exchanges_need_waits(const exchanges *x);

const exchange_counts *exchanges_counts(const exchanges *x);

#endif
