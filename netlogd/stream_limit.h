/*
 * How many new streams clients may begin. The collector remembers 65,536 streams and forgets those that were silent for
 * longest. A client that begins very many streams would have it forget those of others, whose blocks would then be
 * stored again when they are sent again.
 *
 * An address may begin STREAMS_BURST streams at once and STREAMS_RATE a second after that, however often it reconnects.
 * All clients together may begin ALL_STREAMS_BURST at once and STREAMS_RATE a second after that, except that each
 * address may always begin STREAMS_FREE more. So a stream that was used is remembered for at least 10 minutes, unless
 * hundreds of addresses attack. Addresses are put into BUCKETS by a secret hash; those in one bucket share its limit,
 * which bounds memory and time. The server's thread alone.
 */
#ifndef NETLOGD_STREAM_LIMIT_H
#define NETLOGD_STREAM_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stream_limit stream_limit;

enum { STREAMS_BURST = 8192, ALL_STREAMS_BURST = 24576, STREAMS_RATE = 50, STREAMS_FREE = 64 };

/* Lack of memory ends the program. */
stream_limit *stream_limit_new(void);
void stream_limit_free(stream_limit *l);

/* Whether a client from peer (as listener_address_text has it) may begin another stream, which is then counted. */
bool stream_limit_admit(stream_limit *l, const char *peer, int64_t now_ns);

#endif
