/*
 * Decides which probes and transfers a reflector accepts. Limits the rates, and numbers the replies of each session. A
 * session consists of the probes from one address and port. The module has no clock and no socket. Not thread-safe.
 */
#ifndef NLAGENT_REFLECTOR_LIMITS_H
#define NLAGENT_REFLECTOR_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    REFLECTOR_SESSIONS_MAX = 256,
    REFLECTOR_SESSION_RATE = 200, /* maximum number of probes in a session per second, and in a burst */
    REFLECTOR_RATE = 5000,        /* maximum number of probes in all sessions per second, and in a burst */
    REFLECTOR_TRANSFERS_MAX = 16, /* transfers in REFLECTOR_TRANSFER_NS, of which at most one from an address */
};

/* A session ends after this time without a probe. */
#define REFLECTOR_SESSION_NS (INT64_C(60) * 1000000000)

/* Minimum time between the starts of two transfers from an address. The path sensor waits at least 30 s. */
#define REFLECTOR_TRANSFER_NS (INT64_C(20) * 1000000000)

/* A token bucket: a number of permitted packets that grows with time up to a maximum. */
typedef struct reflector_bucket {
    double packets;
    int64_t filled_ns;
} reflector_bucket;

typedef struct reflector_session {
    unsigned char address[16]; /* IPv4 addresses as IPv6 addresses */
    uint16_t port;
    bool used;
    uint32_t replies;
    int64_t heard_ns;
    reflector_bucket bucket;
} reflector_session;

typedef struct reflector_transfer {
    unsigned char address[16];
    int64_t begin_ns;
    bool used;
} reflector_transfer;

/* Initially all zero. */
typedef struct reflector_limits {
    reflector_session sessions[REFLECTOR_SESSIONS_MAX];
    reflector_transfer transfers[REFLECTOR_TRANSFERS_MAX];
    reflector_bucket bucket;
} reflector_limits;

/* Returns whether the reflector may reply to a probe from this address, and sets *number to the number of the reply.
 * Times are on the monotonic clock. */
bool reflector_limits_probe(reflector_limits *l, const struct sockaddr *from, int64_t now_ns, uint32_t *number);

/* Returns whether a transfer from this address may begin. */
bool reflector_limits_transfer(reflector_limits *l, const struct sockaddr *from, int64_t now_ns);

#endif
