/*
 * How many new streams clients may begin. The collector remembers 65,536 streams. It refuses new streams rather than
 * forget one that was in use within the last ten minutes (reader/admission.h), whose blocks would be stored again when
 * they are sent again. A client that begins very many streams would therefore keep others from beginning any.
 *
 * An owner is the holder of a certificate, or an address if the client has shown none, or an input from NATS. An owner
 * may begin STREAMS_BURST streams at once and STREAMS_RATE a second after that, however often it reconnects.
 * All clients together may begin ALL_STREAMS_BURST at once and STREAMS_RATE a second after that, except that each
 * owner may always begin STREAMS_FREE more. So it takes more than 10 minutes, or hundreds of owners, until new streams
 * are refused because too many are in use. Owners are put into buckets by a secret hash; those in one bucket share its
 * limit, which bounds memory and time. The server's thread alone.
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

/* The owner, from 1, of the streams of a client: peer is its address as listener_address_text has it, or another name.
 */
unsigned stream_limit_owner(const char *peer);

/* Whether the owner may begin another stream, which is then counted. */
bool stream_limit_admit(stream_limit *l, unsigned owner, int64_t now_ns);

#endif
