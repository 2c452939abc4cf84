/*
 * A model of a network path in one direction.
 *
 * A packet first waits for the link, which has a rate and a buffer. If the buffer is full, the packet is dropped.
 * Otherwise, the packet is either lost at random, or arrives after the delay and some jitter. Packets stay in order,
 * except that randomly chosen packets arrive without delay, as with netem. The random numbers depend only on a seed, so
 * the same packets at the same times give the same result.
 *
 * The caller passes the time in nanoseconds, which must not decrease. Not thread-safe.
 */
#ifndef DPSS_PATH_H
#define DPSS_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PATH_LATE_NS = 5000000 };

typedef struct path_settings {
    double rate;         /* bits/s; 0: unlimited */
    int64_t delay_ns;    /* delay of every packet */
    int64_t jitter_ns;   /* maximum deviation from the delay, uniformly distributed */
    double loss;         /* share of packets that are lost, 0 to 1 */
    double overtaking;   /* share of packets that arrive without delay, 0 to 1 */
    size_t buffer_bytes; /* 0: unlimited */
    bool policed;        /* the link has no queue: it drops packets that exceed its rate by more than buffer_bytes */
    uint64_t seed;
} path_settings;

typedef struct path_counts {
    uint64_t packets, bytes;   /* packets and bytes received */
    uint64_t lost, overflowed; /* packets lost at random, or dropped by the buffer */
    uint64_t overtook;         /* packets that arrived without delay */
    uint64_t arrived;          /* packets that path_take returned */
    uint64_t late;             /* packets that path_take returned more than PATH_LATE_NS after their arrival */
} path_counts;

typedef struct path_packet {
    int64_t due_ns; /* time of arrival */
    uint64_t serial;
    size_t size;
    unsigned char bytes[];
} path_packet;

typedef struct path path;

/* Returns an empty path, or NULL if memory runs out. */
path *path_new(const path_settings *settings);
void path_free(path *p);

/* Copies a packet into the path. If memory runs out, returns false and counts the packet as overflowed. */
bool path_put(path *p, const void *bytes, size_t size, int64_t now_ns);

/* Returns the time at which the next packet arrives, or INT64_MAX if the path is empty. */
int64_t path_next_ns(const path *p);

/* Returns the next packet that has arrived at or before now_ns, or NULL. The caller frees the packet. */
path_packet *path_take(path *p, int64_t now_ns);

path_counts path_count(const path *p);

#endif
