/*
 * How much text clients may have netlogd write for few bytes. A block may expand about 1,100 times, so that a client
 * with a slow line could fill a disk. Text has some 25 times the bytes of ordinary blocks, and 600 times those of
 * compressed blocks of one event that is repeated in a loop: such a client is slowed to some 90,000 records a second
 * after the first 600,000.
 *
 * Each address (peer_address.h) has a bucket of text: what netlogd writes for its clients, in each output on average,
 * less TEXT_RATIO times the bytes that they sent, less TEXT_RATE a second. While there is more than TEXT_BURST in the
 * bucket, netlogd does not read those of its clients that expand that much themselves. Nothing is lost: their records
 * wait. Reconnecting does not help. A client whose records expand less never waits, whatever others at its address
 * send.
 *
 * Addresses are put into TEXT_BUCKETS buckets by a secret hash, which bounds memory and time. The server's thread
 * alone.
 */
#ifndef NETLOGD_TEXT_LIMIT_H
#define NETLOGD_TEXT_LIMIT_H

#include <stdint.h>

enum { TEXT_RATIO = 128, TEXT_RATE = 8 << 20, TEXT_BURST = 64 << 20 };

typedef struct text_limit text_limit;

/* Lack of memory ends the program. */
text_limit *text_limit_new(void);
void text_limit_free(text_limit *l);

/* How far text, in bytes, is beyond what so many bytes received allow; below 0: it is not. */
int64_t text_limit_excess(uint64_t text, uint64_t received);

/* Adds an excess to the bucket of a client from peer (as listener_address_text has it). */
void text_limit_add(text_limit *l, const char *peer, int64_t excess, int64_t now_ns);

/* For how many seconds clients from peer that expand too much are to wait. */
double text_limit_wait_s(text_limit *l, const char *peer, int64_t now_ns);

#endif
