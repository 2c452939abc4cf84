/*
 * Decides when to flush the outputs and to acknowledge blocks, and pauses all clients while an output cannot be
 * written.
 *
 * netlogd flushes the outputs when no client has sent bytes, or when records have waited too long. After the outputs
 * have settled records (output/output.h), netlogd acknowledges the blocks that contained them. While an output cannot
 * be written, netlogd does not read from clients, so that memory does not grow. This module owns the state of the pause
 * and the timers.
 */
#ifndef NETLOGD_FLUSH_H
#define NETLOGD_FLUSH_H

#include <stdbool.h>

void flush_start(void);
void flush_free(void);

/*
 * Requests a flush. Call it after putting records into the outputs, or when blocks wait for an acknowledgement. Flushes
 * now if a flush is due, otherwise later. `at_once` is true if the client did not wait for its turn (turns.h);
 * flush_before_turn then flushes the client's records.
 */
void flush_request(bool at_once);

/* Flushes now. Returns false while an output cannot be written. */
bool flush_now(void);

/* Settles all outputs and acknowledges all blocks. Does nothing while an output cannot be written. */
void flush_settle(void);

/* Acknowledges all blocks. The caller has settled all outputs. */
void flush_acknowledge(void);

/*
 * Flushes the records of clients that did not wait for a turn, unless flushes already use too large a share of the
 * time. Also flushes records that have waited too long. Called before the turn of each client that has waited.
 */
void flush_before_turn(void);

/* Returns whether netlogd does not read from clients because an output cannot be written. */
bool flush_is_paused(void);

#endif
