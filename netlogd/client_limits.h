/*
 * Long-term limits for clients, which a client cannot reset by reconnecting. They limit new streams, and text that is
 * much larger than the bytes received.
 *
 * The module owns a bucket for each owner of streams and for each address. A secret hash assigns owners and addresses
 * to buckets, which bounds memory and time. All owners or addresses in one bucket share its limit. The server's thread
 * only.
 *
 * Streams. netlogd remembers 65,536 streams. If it forgot a stream that is still in use, it would store repeated blocks
 * of that stream twice. It therefore rejects a new stream and does not forget a stream that was in use within the last
 * ten minutes (reader/admission.h). An owner of streams is the holder of a certificate, or an address without one, or
 * an input from NATS. An owner may begin STREAMS_BURST streams at once, and STREAMS_RATE per second after that. All
 * owners together may begin ALL_STREAMS_BURST at once and STREAMS_RATE per second after that, but each owner may always
 * begin STREAMS_FREE. Filling the table therefore takes more than ten minutes, or hundreds of owners.
 *
 * Text. A block may expand about 1,100 times, so a client with a slow line could fill a disk. Text usually has about 25
 * times the bytes of ordinary blocks. The bucket of an address holds the bytes that netlogd writes for its clients (the
 * average of all outputs), less TEXT_RATIO times the bytes that they sent, less TEXT_RATE per second. While the bucket
 * holds more than TEXT_BURST, netlogd does not read from those of the address's clients whose own records expand that
 * much. Their records wait; none are lost.
 */
#ifndef NETLOGD_CLIENT_LIMITS_H
#define NETLOGD_CLIENT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum { STREAMS_BURST = 8192, ALL_STREAMS_BURST = 24576, STREAMS_RATE = 50, STREAMS_FREE = 64 };
enum { TEXT_RATIO = 128, TEXT_RATE = 8 << 20, TEXT_BURST = 64 << 20 };

/* Returns the number, from 1, of the owner of a client's streams. name is its address, as listener_address_text writes
 * it, or another name. */
unsigned stream_limit_owner(const char *name);

/* Returns whether the owner may begin another stream, and counts the stream. */
bool stream_limit_admit(unsigned owner, int64_t now_ns);

/*
 * Returns the number of bytes by which text exceeds the limit for `received` bytes. The result is negative if text is
 * below the limit.
 */
int64_t text_limit_excess(uint64_t text, uint64_t received);

/* Adds an excess to the bucket of a client. peer is its address, as listener_address_text writes it. */
void text_limit_add(const char *peer, int64_t excess, int64_t now_ns);

/* Returns the number of seconds that a client at this address must wait if its records expand too much. */
double text_limit_wait_s(const char *peer, int64_t now_ns);

#endif
