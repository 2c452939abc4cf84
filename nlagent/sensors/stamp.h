/*
 * The packets that measure network paths: the unauthenticated packets of STAMP (RFC 8762), which TWAMP Light (RFC 5357,
 * appendix I) shares. A sender sends probes, and a reflector returns a reply to each probe. Times are nanoseconds since
 * 1970. The module has no state. Thread-safe.
 */
#ifndef NLAGENT_STAMP_H
#define NLAGENT_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STAMP_SIZE = 44,    /* size of a reply, and minimum size of a probe; a probe may have padding after it */
    STAMP_PORT = 14834, /* default UDP port of reflectors; also the TCP port for transfers */
    STAMP_TTL = 255     /* both sides send packets with this TTL, so that the receiver can count the routers */
};

/* The error of a clock that is not synchronized. */
#define STAMP_ERROR_UNKNOWN (-1)

typedef struct stamp_probe {
    uint32_t sequence;
    uint16_t session; /* a number that the sender chooses and the reflector repeats in the reply (RFC 8972) */
    int64_t sent_ns;
    int64_t error_ns; /* maximum error of the sender's clock, or STAMP_ERROR_UNKNOWN */
} stamp_probe;

typedef struct stamp_reply {
    stamp_probe probe; /* without error_ns, which the module does not decode */
    uint32_t sequence; /* number of the reply in the reflector's session, or a copy of the probe's number */
    int64_t received_ns, replied_ns; /* times of the reflector's clock */
    int64_t error_ns;                /* maximum error of the reflector's clock, or STAMP_ERROR_UNKNOWN */
    unsigned ttl;                    /* TTL with which the probe arrived at the reflector */
} stamp_reply;

void stamp_write_probe(const stamp_probe *probe, unsigned char packet[STAMP_SIZE]);

/*
 * Reads a probe. Returns false if the packet is too short, or if the packet is not a probe. The function recognizes a
 * reply, which has a time of reception in place of the probe's zeros, so that two reflectors cannot send packets to
 * each other in a loop.
 */
bool stamp_read_probe(const void *packet, size_t size, stamp_probe *probe);

/* Writes the reply to a valid probe. The reply repeats a part of the probe's bytes, so the function ignores
 * reply->probe. */
void stamp_write_reply(const void *probe, const stamp_reply *reply, unsigned char packet[STAMP_SIZE]);

/* Reads a reply. Returns false if the packet is too short, or if its times are not NTP timestamps. */
bool stamp_read_reply(const void *packet, size_t size, stamp_reply *reply);

/* Returns the maximum error of this host's clock according to the kernel, or STAMP_ERROR_UNKNOWN. */
int64_t stamp_clock_error_ns(void);

#endif
