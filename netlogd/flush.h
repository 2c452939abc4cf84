/*
 * When the outputs are flushed, and clients acknowledged; and the pause of all clients while an output cannot be
 * written.
 *
 * Records are written when no client has bytes to read, or when they have waited too long. After the outputs have
 * settled them (output/output.h), the blocks that brought them are acknowledged. While an output cannot be written, no
 * client is read, so that memory does not grow. This module owns that state and its timers.
 */
#ifndef NETLOGD_FLUSH_H
#define NETLOGD_FLUSH_H

#include <stdbool.h>

void flush_start(void);
void flush_free(void);

/* Notes that records were put into the outputs, or that blocks wait for an acknowledgement. Flushes now if it is time,
 * otherwise later. at_once: the client did not wait for its turn (turns.h), so a turn of another client comes after the
 * flush. */
void flush_request(bool at_once);

/* Flushes now. Returns false while an output cannot be written. */
bool flush_now(void);

/* Settles what outputs with a timed fsync= have written, and acknowledges it. */
void flush_settle(void);

/* Acknowledges all blocks; the caller has settled all outputs. */
void flush_acknowledge(void);

/* Called before each turn of a client that waited: flushes for clients that did not wait, if that does not take too
 * large a part of the time. */
void flush_before_turn(void);

/* Whether no client is read because an output cannot be written. */
bool flush_is_paused(void);

#endif
