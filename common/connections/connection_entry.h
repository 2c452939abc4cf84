/*
 * The sockets of a connection table, for the files of this directory: connection_causes.c adds the records, and
 * connection_results.c joins the two ends of each connection.
 */
#ifndef NETLOGGER_CONNECTIONS_CONNECTION_ENTRY_H
#define NETLOGGER_CONNECTIONS_CONNECTION_ENTRY_H

#include "connections/connection_causes.h"

#include <stddef.h>

/* The values of one record. */
typedef struct connection_sample {
    int64_t time_ns;
    double busy_us, receiver_us, buffer_us;              /* counters */
    double acked, sent, received, retransmitted, resent; /* resent: in bytes */
    double rtt_us, rtt_min_us, receive_rtt_us, cwnd, ssthresh, unacked, unsent, mss, window, rate, rate_limited,
        queue_in;
    double buffer_in, buffer_out, queue_out;
    double memory_out;                                  /* used part of buffer_out; 0 if unknown */
    double delay_us;                                    /* TCP.DELAY.IN; -1 if unknown */
    double waited_us;                                   /* time in which the owner waited for a processor */
    int64_t sequence_out, sequence_in;                  /* TCP.SEQUENCE.*; -1 if unknown */
    bool recovers, times_out, connects, waits_for_disk; /* times_out: recovers after a timeout */
    bool closed;                                        /* the program has closed the socket */
    bool keeps_rate;                                    /* BBR: losses do not reduce the rate */
} connection_sample;

/* The totals of a socket at a time. */
typedef struct connection_progress {
    int64_t time_ns;
    double sent, acked, received; /* numbers of bytes; `sent` excludes retransmissions */
    double rtt_us;
} connection_progress;

/* A TLS handshake of a connection: the time of its record, and its duration. */
typedef struct connection_tls {
    int64_t time_ns;
    double duration_ns;
} connection_tls;

typedef struct connection_entry {
    connection_result sent, received; /* the data of both directions, as this socket sees it */
    char *key;
    struct connection_entry *older;          /* the previous entry with the same addresses */
    struct connection_entry *older_sequence; /* the previous entry with the same sequence_in */
    int64_t sequence_out, sequence_in;       /* numbers in the first record after the handshake; -1 if unknown */
    bool closed;                             /* the table has the TcpClose record */
    bool joined;                             /* the results contain this connection */
    connection_sample first, last;           /* `first` is the first record after the handshake */
    connection_cause last_cause;             /* the main cause of the time before `last` */
    int64_t first_ns;
    double cwnd_first, cwnd_max; /* congestion windows in the first record and since then */
    int64_t grown_ns;            /* time when the congestion window last grew considerably */
    int64_t window_full_ns;      /* time of the last record that shows a full window of the peer; 0: no such record */
    double path_rate;            /* highest rate of an interval, bytes/s */
    double mean_rate;            /* moving mean of the rates of intervals */
    double carried_rate;         /* highest mean_rate */
    double rtt_high_us;          /* highest round-trip time since the last loss while data filled the path */
    bool queue_lost;             /* the last loss was caused by a full queue */
    double tick_us;              /* time that the kernel's clocks, which count in ticks, have not counted yet */
    /*
     * Statistics of the losses after the first loss: their number, and the number of losses after a full queue. The
     * slow start threshold depends on the window at a loss; threshold_mean is its mean, and threshold_squares is the
     * sum of its squared deviations (Welford). gap_mean and gap_squares are the same for the bytes between two losses.
     */
    bool had_loss;
    bool buffer_grows; /* the kernel adjusts the send buffer */
    double losses, threshold_mean, threshold_squares, full_losses, gap_mean, gap_squares;
    double loss_acked; /* bytes acknowledged at the last loss */
    /*
     * Statistics of the retransmissions in the intervals after the first loss: the numbers of intervals and of sent
     * segments, and the mean and the sum of squared deviations of the retransmissions in an interval.
     */
    double resent_intervals, resent_segments, resent_mean, resent_squares;
    /*
     * Delays of received segments relative to the first: their number, minimum and sum. The clocks of both hosts add an
     * unknown constant.
     */
    double delay_first_us, delay_min_us, delay_sum_us, delays;
    GArray *progress; /* connection_progress, for at most PROGRESS_MAX records */
    double rtt_sum_us, rtt_samples, receive_rtt_sum_us, receive_rtt_samples;
    double start_ns; /* receiver-limited time before the peer last enlarged its window during the start */
    /* part of CAUSE_PATH_QUEUE in which the peer's window was also full; it is a limit if the peer had unread data */
    double closed_window_ns;
    double limited_us[2]; /* receiver-limited time with an open and with a closed window */
    /*
     * Numbers of intervals with received or unread data, with a full receive buffer, and with a full receive buffer
     * while the program waited for its host.
     */
    double receptions, unread, unread_busy;
} connection_entry;

struct connection_table {
    GHashTable *entries; /* key -> connection_entry */
    GPtrArray *order;    /* the entries in the order of their first records */
    GHashTable *by_ends; /* "local peer" -> the last entry with these addresses */
    GHashTable *tls;     /* "local peer" -> GArray of connection_tls, in the order of the records */
    size_t tls_count;
    GHashTable *by_sequence; /* sequence_in -> the last entry with this number; the keys belong to the entries */
    connection_paths *paths;
    GStringChunk *names;
    GString *key;
    int64_t slice_ns; /* 0: no slices */
    size_t slice_count,
        slices_max;        /* number of slices of all entries, and its maximum; slices_max is 0 without a maximum */
    size_t progress_count; /* number of elements of `progress` in all entries */
    uint64_t ignored;
};

/* Appends the totals of a record to e->progress. Does nothing if the table already has PROGRESS_TOTAL_MAX totals. */
void connection_add_progress(connection_table *t, connection_entry *e, const connection_sample *now);

/*
 * Returns the fraction (0 to 1) of the additional round-trip time that arises on the way back, or -1 if it is unknown.
 * Uses the timestamps in the segments or, without them, the times at which both ends have counted the same byte. The
 * function compares only changes of the delays, so the unknown difference between the clocks cancels out. rtt_extra_ns
 * is the mean additional round-trip time that the sender has measured. If the delays do not agree with it, the result
 * is unknown.
 */
double connection_reverse_part(const connection_entry *sender, const connection_entry *receiver, double rtt_extra_ns);

/* Sets `sharing` and `shared_rate` of all results. Needs O(n log n) time. */
void connection_find_sharing(const GPtrArray *results);

/* Sets `elsewhere` and `elsewhere_rate` of all results. */
void connection_find_bottlenecks(const GPtrArray *results);

/* Returns the sending socket of a result. Requires that r->ends is not ENDS_RECEIVER. */
static inline const connection_entry *connection_entry_of(const connection_result *r)
{
    return (const connection_entry *)(const void *)((const char *)r - offsetof(connection_entry, sent));
}

/* Returns the addresses of both ends without ports, which the caller frees. */
char *connection_pair_name(const connection_result *r);

/*
 * Moves a share of the time of a cause to another cause, in the total and in each slice. The moved time counts as
 * estimated.
 */
void connection_move(connection_result *r, connection_cause from, connection_cause to, double share);

#endif
