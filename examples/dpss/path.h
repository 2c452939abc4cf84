/*
 * A modelled network path, in one direction: packets go in, and come out when they would at the other end.
 *
 * A packet first waits for the link, which carries so many bits a second; where more bytes wait for it than its buffer
 * holds, the packet is dropped. Then it is lost, by chance, or under way for the delay and some jitter. Packets stay in
 * order, unless one is chosen to overtake: that one is there at once, as with Linux's netem. Chance is a generator with
 * a seed: the same packets at the same times have the same fate.
 *
 * It knows no clock: whoever calls says what time it is, in nanoseconds that never go back. One thread at a time.
 */
#ifndef DPSS_PATH_H
#define DPSS_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct path_settings {
    double rate;         /* bits/s; 0: as fast as they come */
    int64_t delay_ns;    /* of every packet */
    int64_t jitter_ns;   /* added to that or taken off, up to so much, evenly */
    double loss;         /* 0 to 1, of packets */
    double overtaking;   /* 0 to 1, of packets */
    size_t buffer_bytes; /* 0: without a limit */
    uint64_t seed;
} path_settings;

typedef struct path_counts {
    uint64_t packets, bytes;    /* that went in */
    uint64_t lost, overflowed;  /* packets: by chance, at the buffer */
    uint64_t overtook, arrived; /* packets */
} path_counts;

typedef struct path_packet {
    int64_t due_ns; /* when it comes out */
    uint64_t serial;
    size_t size;
    unsigned char bytes[];
} path_packet;

typedef struct path path;

/* NULL when there is no memory. */
path *path_new(const path_settings *settings);
void path_free(path *p);

/* Copies a packet in. False, and counted as overflowed, where there is no memory. */
bool path_put(path *p, const void *bytes, size_t size, int64_t now_ns);

/* When the next packet comes out; INT64_MAX while there is none. */
int64_t path_next_ns(const path *p);

/* The next packet that is due by now, which is the caller's to free; NULL when there is none. */
path_packet *path_take(path *p, int64_t now_ns);

path_counts path_count(const path *p);

#endif
