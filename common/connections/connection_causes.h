/*
 * Determines what limits each TCP connection: divides the time of each sending socket among causes, from the
 * TcpConnection records of nlsensor's connections sensor.
 *
 * Two consecutive records of a socket bound an interval. The kernel's own clocks (tcp_info: busy, receiver limited,
 * buffer limited) divide the interval; each clock counts only one limit at a time. In the rest of the busy time,
 * congestion control was the limit. The module divides this time among slow start, recovery after loss, and the rate of
 * the path. The module applies the rules of T-RAT (Zhang, Breslau, Paxson, Shenker: "On the characteristics and origins
 * of Internet flow rates", SIGCOMM 2002). However, it uses the kernel's state instead of T-RAT's guesses from packets.
 * The shares of a connection add up to 1.
 *
 * A connection has one result, for the direction with more data. The module joins the records of its two sockets by
 * their addresses, or, behind network address translation (NAT), by their first sequence numbers. The receiver's
 * records decide whether the receiving program, its host or its buffer limited the window. The module compares only the
 * totals of the two ends, so the hosts' clocks may differ. Records of the receiver alone show only its own limits; the
 * rest of the time is unknown. If a connection ended before the sensor measured it twice, only its handshake is known
 * (TcpClose).
 *
 * Measurements of a connection's path (connection_paths.h) show the rate that the path carries, its MTU, and the
 * direction in which it loses and delays packets.
 *
 * Callers: nlstat and nldiag. Memory: about 2 kB per socket, and at most CONNECTIONS_MAX sockets; the module counts the
 * records of further sockets. Not thread-safe.
 */
#ifndef NETLOGGER_CONNECTIONS_CONNECTION_CAUSES_H
#define NETLOGGER_CONNECTIONS_CONNECTION_CAUSES_H

#include "connections/connection_paths.h"

#include <glib.h>
#include <netlogger.h>

enum { CONNECTIONS_MAX = 1 << 18 };

typedef enum connection_cause {
    CAUSE_HANDSHAKE,   /* the handshake of TCP, which is exact if a TcpClose record has its duration, and of TLS, which
                          is known only from records of nlkernel trace */
    CAUSE_SENDER_IDLE, /* the sending program wrote no data, or not enough data to fill the window */
    CAUSE_SENDER_HOST, /* like CAUSE_SENDER_IDLE, but the program waited for a processor or a disk of its host */
    CAUSE_SEND_BUFFER, /* the send buffer was full of data in flight */
    CAUSE_RECEIVER_PROGRAM, /* the receiving program did not read fast enough */
    CAUSE_RECEIVER_HOST, /* like CAUSE_RECEIVER_PROGRAM, but the program waited for a processor or a disk of its host */
    CAUSE_RECEIVE_BUFFER, /* the receive buffer is smaller than the path needs */
    CAUSE_SLOW_START,     /* the congestion window or the peer's window was still growing */
    CAUSE_LOSS,           /* the congestion window was small because of loss */
    CAUSE_PATH,           /* the path could not carry more data */
    CAUSE_PATH_QUEUE,     /* the same as CAUSE_PATH, and data waited in a queue on the path */
    CAUSE_POLICED,        /* the path dropped data above a rate, without a queue */
    CAUSE_REVERSE,        /* the acknowledgements waited in a queue on the way back */
    CAUSE_UNKNOWN,        /* a counter decreased, or records that show the cause are missing */
    CAUSE_COUNT
} connection_cause;

/* The distance of the peer. The module never adds up results for different distances. */
typedef enum connection_distance { DISTANCE_LOCAL, DISTANCE_LAN, DISTANCE_WAN, DISTANCE_UNKNOWN } connection_distance;

/* The ends whose records the result uses. */
typedef enum connection_ends { ENDS_SENDER, ENDS_RECEIVER, ENDS_BOTH } connection_ends;

/* The records from which a result comes: TcpConnection records, or the records that classic_transfers.h describes. */
typedef enum connection_origin {
    ORIGIN_SOCKET,
    ORIGIN_TRANSFER, /* one record for the whole transfer */
    ORIGIN_SPANS     /* starts and ends of reads and writes */
} connection_origin;

/*
 * The part of a connection in one slice of time, from index * slice_ns to (index + 1) * slice_ns, in nanoseconds since
 * 1970. slice_ns is a property of the table.
 */
typedef struct connection_slice {
    int64_t index;
    double bytes, retransmitted, cause_ns[CAUSE_COUNT];
} connection_slice;

/*
 * The result for one connection, from the sender's point of view: local is the sender's address. Times are in
 * nanoseconds, sizes in bytes, and rates in bytes per second. An unknown host or program has the name "".
 */
typedef struct connection_result {
    const char *host, *local, *program, *peer_host, *peer, *peer_program;
    connection_ends ends;
    connection_origin origin;
    double streams;  /* number of parallel connections of a transfer; 0 for sockets */
    double returned; /* number of bytes in the other direction */
    GArray *slices;  /* connection_slice, in order of time; NULL without slices */
    uint64_t intervals;
    double wall_ns, cause_ns[CAUSE_COUNT]; /* cause_ns adds up to wall_ns */
    double estimated_ns[CAUSE_COUNT];      /* part of cause_ns that follows from rules, not from the kernel's clocks */
    double bytes;                          /* number of bytes that were acknowledged during wall_ns */
    double total;              /* number of bytes of the whole connection, from TcpClose; `bytes` if it is unknown */
    double rate, path_rate;    /* path_rate: the highest delivery rate, or 0 */
    double carried;            /* the highest path_rate of all connections from this host to the peer */
    double rtt_ns, rtt_min_ns; /* mean and minimum round-trip time; 0 if unknown */
    double window;             /* largest receive window of the peer, in bytes */
    double send_buffer;        /* largest size of the send buffer, in bytes */
    double peer_buffer;        /* receive buffer of the peer; 0 if its records are missing */
    double mss, segments, retransmitted; /* segment size in bytes; numbers of sent and of retransmitted segments */
    int64_t begin_ns, end_ns;            /* times of the first and the last record of the socket */
    double handshake_ns;                 /* duration of the handshake from TcpClose; 0 if unknown */
    double tls_ns;                       /* duration of the TLS handshake; 0 if unknown */
    bool brief;                          /* the connection ended before the sensor measured it twice */
    uint64_t sharing;   /* number of other connections that carried data between the same addresses at the same time */
    double shared_rate; /* total rate of this connection and the connections that `sharing` counts */
    uint64_t elsewhere; /* number of connections between other addresses that share a bottleneck with this connection */
    double elsewhere_rate; /* total rate of these connections */
    connection_path path;
    bool stalled; /* the records end while the sender waits after a timeout */
    connection_distance distance;
    connection_cause first; /* the cause with the largest share */
} connection_result;

typedef struct connection_table connection_table;

/*
 * Creates a table that divides the time into slices of slice_ns; 0 means no slices. Whenever all connections together
 * have more than slices_max slices, the table doubles the length of the slices; 0 means no maximum.
 */
connection_table *connection_table_new(int64_t slice_ns, size_t slices_max);
void connection_table_free(connection_table *t); /* NULL is allowed */

/*
 * Adds a record: TcpConnection or TcpClose with TCP.LOCAL and TCP.PEER, a record of the path sensor, or a record with
 * LOCAL, PEER and TLS.HANDSHAKE (nlkernel trace). Ignores other
 * records. Records of one host must be in order of time.
 */
void connection_table_add(connection_table *t, const nl_record *record);

/*
 * Returns the results as connection_result *, in the order of the first records. The caller frees the array; the
 * results belong to the table. Call this function once, after the last record.
 */
GPtrArray *connection_table_finish(connection_table *t);

/* Returns the present length of the slices in nanoseconds. */
int64_t connection_table_slice_ns(const connection_table *t);

/* Return the number of sockets in the table, and the number of records that the table ignored because it was full. */
size_t connection_table_count(const connection_table *t);
uint64_t connection_table_ignored(const connection_table *t);

/* Returns the name of a cause, such as "receive buffer". */
const char *connection_cause_name(connection_cause cause);

/* Returns "local", "LAN", "WAN" or, without a round-trip time, "unknown". */
const char *connection_distance_name(connection_distance distance);

/* Returns "sender", "receiver" or "both". */
const char *connection_ends_name(connection_ends ends);

/*
 * Returns the confidence in the share of a cause. It is "high" for a handshake whose exact duration is known. It is
 * "low" for CAUSE_UNKNOWN, if there are fewer than 10 intervals, and if the sender's records are missing. In all other
 * cases, it is "high" if at least 90 % of the share was measured, and otherwise "medium". The kernel's clocks measure
 * the causes before CAUSE_SLOW_START. A limit of the window counts as measured only if the log contains the
 * receiver's records, which show whether the receiving program or its buffer is the cause.
 */
const char *connection_confidence(const connection_result *r, connection_cause cause);

/*
 * Returns the factor by which the connection becomes faster if the window that limits it doubles and the path carries
 * the additional data. Returns 1 if no window limits it.
 */
double connection_gain_of_doubling(const connection_result *r);

/*
 * Returns the factor by which the connection becomes faster with a window that is large enough. Assumes that the path
 * carries as much as it has carried for another connection or for the path sensor. Returns 1 if no window limits it, if
 * its round-trip time is unknown, or if neither a connection nor the path sensor was at least 1.2 times as fast.
 */
double connection_gain_of_path(const connection_result *r);

/*
 * Computes how much faster the same transfer would be over a connection that is already open. Sets *minimum to the
 * factor at the rate that the path has carried, and *maximum to the factor over an unlimited path. Returns false unless
 * start-up limits the connection.
 */
bool connection_gain_of_reuse(const connection_result *r, double *minimum, double *maximum);

/* Returns a text with the evidence and the advice for the main cause. The caller frees the text with g_free. */
char *connection_advice(const connection_result *r);

/*
 * Returns a text with the measurements of the connection's path and the bounds of their errors. Returns NULL if the log
 * has no measurements of the path. The caller frees the text with g_free.
 */
char *connection_path_text(const connection_result *r);

/*
 * Finds the time in which a part of a connection's data was on its way: from the time at which the sender had sent
 * `offset` bytes until the time at which offset + size bytes were acknowledged, or received if the log lacks the
 * sender's records. Interpolates between records. Returns false if the records do not show both times.
 */
bool connection_find_time(const connection_result *r, double offset, double size, int64_t *begin_ns, int64_t *end_ns);

bool connection_is_loopback(const char *address);

/* Sets `key` to a text for a socket with these addresses. Each host has its own loopback addresses. */
void connection_set_ends_key(GString *key, const char *host, const char *local, const char *peer);

#endif
