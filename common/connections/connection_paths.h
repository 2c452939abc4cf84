/*
 * The measurements of nlsensor's path sensor (PathDelay, PathMtu, PathTransfer), and what they show about the path of a
 * connection.
 *
 * Only the sending host's measurements show the rate and the MTU of the path that the data takes. The delays and losses
 * of both directions also come from the receiving host, if the sending host has no sensor. The module compares
 * delays only with other delays in the same direction, so the difference between the hosts' clocks cancels out.
 *
 * Caller: connection_results.c. Memory: at most about 20 MB; if the log has more measurements, the module adds up
 * consecutive measurements. Not thread-safe.
 */
#ifndef NETLOGGER_CONNECTIONS_CONNECTION_PATHS_H
#define NETLOGGER_CONNECTIONS_CONNECTION_PATHS_H

#include <netlogger.h>

/*
 * A path, seen from the sender of the data: "out" is the way of the data, and "back" the way of the acknowledgements.
 * Unknown numbers are 0, unless stated otherwise.
 */
typedef struct connection_path {
    bool measured;                  /* false: the log has no measurements of the path */
    bool during;                    /* there are measurements from the time of the connection */
    double probes_out, probes_back; /* number of probes that the sender sent, and of replies that the receiver sent */
    double lost_out, lost_back;     /* number of these probes and replies that were lost */
    double rtt_min_ns;              /* minimum of the whole log */
    double delay_out_ns, delay_back_ns; /* means */
    double delay_error_ns;              /* maximum error of each mean; INFINITY if a clock is not synchronized */
    double queue_out_ns, queue_back_ns; /* difference between the mean delay and the minimum of the whole log */
    double routers_out, routers_back;   /* -1 if unknown */
    double rate;                        /* highest rate of a transfer to the receiver, bytes per second */
    double mtu;                         /* largest packet that reaches the receiver, bytes, when last measured */
    bool mtu_reported;                  /* a router reports packets that are too large */
} connection_path;

typedef struct connection_paths connection_paths;

connection_paths *connection_paths_new(void);
void connection_paths_free(connection_paths *p);

/* Adds a record of the path sensor. Returns false for other records. */
bool connection_paths_add(connection_paths *p, const nl_record *record);

/*
 * Returns the path from `local` on `host` to `peer` on `peer_host`, which have the form ADDRESS:PORT. `host` and
 * `peer_host` are "" if they are unknown. Computes the losses and mean delays from the measurements between begin_ns
 * and end_ns. Without such measurements, it uses the whole log. The sensor counts a loss up to 2 s later, so the log
 * should continue for 2 s after end_ns.
 */
connection_path connection_paths_find(const connection_paths *p, const char *host, const char *local,
                                      const char *peer_host, const char *peer, int64_t begin_ns, int64_t end_ns);

/*
 * Returns the fraction (0 to 1) of the additional delay of probes that arises on the way back. Returns -1 if the sum of
 * the increases in both directions is less than `increase_min_ns` or was not measured.
 */
double connection_path_reverse_part(const connection_path *path, double increase_min_ns);

/* The bounds of a share of lost probes, 0 to 1, with a confidence of 95 %. */
typedef struct connection_loss {
    double share, minimum, maximum;
} connection_loss;

/* Return the shares of probes that were lost on the way out, and of replies that were lost on the way back. */
connection_loss connection_path_loss_out(const connection_path *path);
connection_loss connection_path_loss_back(const connection_path *path);

#endif
