/*
 * Measures the rate of a TCP connection to a reflector, which discards the data. The transfer is bounded in bytes and
 * time. Call this function only if path_probes_answered returns true.
 */
#ifndef NLAGENT_PATH_TRANSFER_H
#define NLAGENT_PATH_TRANSFER_H

#include "sensors/path_probes.h"

typedef struct path_transfer {
    uint64_t bytes;         /* number of bytes that the peer has acknowledged */
    int64_t duration_ns;    /* from the connection's establishment to the last acknowledgement, or to the time limit */
    uint64_t retransmitted; /* number of retransmitted segments */
    char problem[PATH_PROBLEM_SIZE]; /* "" if the transfer succeeded */
} path_transfer;

/* Sends at most bytes_max bytes for at most duration_ns. */
path_transfer path_transfer_measure(path_probes *p, uint64_t bytes_max, int64_t duration_ns);

#endif
