/*
 * netlogd's counts. For conditions that clients can cause arbitrarily often, the module also writes rate-limited
 * events.
 *
 * The module owns the counts since netlogd started, the rate of records, and the occurrences that have not been
 * reported yet. Only the server's thread may call it.
 */
#ifndef NETLOGD_COUNTS_H
#define NETLOGD_COUNTS_H

#include <netlogger.h>

typedef enum count {
    COUNT_RECORDS,
    COUNT_BYTES,
    COUNT_MALFORMED,       /* pieces of malformed input */
    COUNT_CONNECTIONS,     /* connections accepted so far */
    COUNT_WORK,            /* units of work (reader/decoder_work.h) that clients have caused */
    COUNT_REQUESTS,        /* requests whose line was received */
    COUNT_REQUESTS_FAILED, /* requests that netlogd rejected */
    COUNT_UNREAD,          /* datagrams that the kernel dropped because netlogd did not read them in time */
    COUNT_CUT_OFF,         /* connections closed because clients used too much memory */
    /* counts_report accepts only the following counts. */
    COUNT_REFUSED, /* rejected connections, TLS handshakes that failed, and datagrams of networks that are not allowed
                    */
    COUNT_STREAMS_REFUSED, /* blocks rejected because too many streams began */
    COUNT_GAPS_REFUSED,    /* blocks rejected because their streams have too many gaps */
    COUNT_EXPANDING,       /* number of times that a client had to wait because its records are too large as text */
    COUNT_DISPLACED,       /* silent connections closed to admit new clients */
    COUNT_OVER_RATE,       /* datagrams dropped because of max-rate or their amount of work */
    COUNT_FOREIGN,         /* connections that used another protocol, such as HTTP */
    COUNT_COUNT,
} count;

void counts_start(void);

void counts_add(count which, uint64_t number);
uint64_t counts_get(count which);

/*
 * Adds 1 to a count, which must be COUNT_REFUSED or a later count. Writes an event about the condition to netlogd's
 * log, immediately the first time, and later at most once per second. The event contains the number of occurrences
 * since the last event. Copies `peer` and `reason`.
 */
void counts_report(count which, const char *peer, const char *reason);

/* Writes the pending events, and computes the rate at now_ns (nl_monotonic_ns). Called every second. */
void counts_tick(int64_t now_ns);

/* Returns the number of records received in the latest second. */
double counts_get_rate(void);

#endif
