/*
 * Long-term limits for clients, which a client cannot reset by reconnecting. One limit is for new streams. The other
 * limit is for records whose text is much larger than the received bytes.
 *
 * The module owns a bucket for each owner of streams and for each address. A secret hash assigns owners and addresses
 * to a fixed number of buckets, so memory and time are bounded. Owners or addresses in the same bucket share its limit.
 * Only the server's thread may call this module.
 *
 * Limit of streams. netlogd remembers 65,536 streams. If it forgot a stream that is still in use, it would store
 * repeated blocks of that stream twice. Therefore, netlogd rejects new streams if all remembered streams were used
 * within the last ten minutes (reader/admission.h). An owner of streams is the holder of a certificate, an address
 * without a certificate, or an input from NATS. An owner may begin STREAMS_BURST streams in one burst, and STREAMS_RATE
 * streams per second after that. All owners together may begin ALL_STREAMS_BURST streams in one burst, and STREAMS_RATE
 * per second after that, but each owner may always begin STREAMS_FREE streams. Therefore, clients need more than ten
 * minutes, or hundreds of owners, to fill the table.
 *
 * Limit of text. The text of a block may be about 1,100 times as large as the block, so a client with a slow connection
 * could fill a disk. For ordinary blocks, this factor is about 25. For each address, a bucket counts the bytes that
 * netlogd writes for the address's clients (on average over all outputs). The content of the bucket decreases by
 * TEXT_RATIO bytes for each received byte, and by TEXT_RATE bytes per second. While a bucket contains more than
 * TEXT_BURST bytes, netlogd does not read from some clients of the address. These are the clients whose own records
 * expand to more than TEXT_RATIO times their received bytes. Their records wait, and no record is lost.
 */
#ifndef NETLOGD_CLIENT_LIMITS_H
#define NETLOGD_CLIENT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum { STREAMS_BURST = 8192, ALL_STREAMS_BURST = 24576, STREAMS_RATE = 50, STREAMS_FREE = 64 };
enum { TEXT_RATIO = 128, TEXT_RATE = 8 << 20, TEXT_BURST = 64 << 20 };

/* Returns the number, from 1, of an owner of streams. `name` is the client's address, in the form of
 * listener_address_text, or another name. */
unsigned stream_limit_owner(const char *name);

/* Returns whether the owner may begin another stream, and counts the stream. */
bool stream_limit_admit(unsigned owner, int64_t now_ns);

/*
 * Returns the number of bytes by which `text` bytes of text exceed the limit for `received` bytes. The result is
 * negative if the text is below the limit.
 */
int64_t text_limit_excess(uint64_t text, uint64_t received);

/* Adds an excess to the bucket of a client. `peer` is the client's address, in the form of listener_address_text. */
void text_limit_add(const char *peer, int64_t excess, int64_t now_ns);

/*
 * Returns the number of seconds for which netlogd must not read from a client at this address. The time is only for
 * clients whose records are too large as text.
 */
double text_limit_wait_s(const char *peer, int64_t now_ns);

#endif
