/*
 * What takes an output's records from its spool to where they are to go, in a thread of its own: the spool's files are
 * the output's (file.h); this reads what is settled in them, hands it to the kind (kind.h), and removes files that were
 * delivered. Nothing that may yet be taken back, because it was not acknowledged to clients, is ever delivered.
 *
 * Where it is, is kept in SPOOL/delivered, which is locked, so that no two processes use a spool at once. What was
 * delivered when netlogd was killed, and not yet noted there, is delivered again.
 *
 * Called by the server's thread, which never waits here but in deliveries_end.
 */
#ifndef NETLOGD_OUTPUT_DELIVERY_H
#define NETLOGD_OUTPUT_DELIVERY_H

#include "options.h"

typedef struct delivery delivery;

typedef struct delivery_state {
    uint64_t waiting;   /* bytes in the spool that are not delivered */
    uint64_t delivered; /* bytes, since netlogd was started */
    uint64_t failures;  /* times that delivering failed, since then */
    char reason[256];   /* it is not delivered now; empty: all is well */
} delivery_state;

/* Makes the spool's folder and locks it. NULL with the reason in nl_error_message(). Of the options it keeps a copy. */
delivery *delivery_open(const output_options *options);

/*
 * Starts the thread. All before end, where the output goes on, is to be delivered. log, in which it says when
 * delivering fails and when it succeeds again, may be NULL.
 */
void delivery_start(delivery *d, output_place end, nl_log *log);

/* More was written, and is to wait. */
void delivery_wrote(delivery *d, size_t size);

/* Whether size bytes more may wait where so many may at most: when nothing waits, any number. */
bool delivery_has_room(delivery *d, size_t size, uint64_t most);

/* All before end is settled. */
void delivery_settled(delivery *d, output_place end);

void delivery_describe(delivery *d, delivery_state *state);

/* options say now how: of the same target and spool. What is on its way is delivered as before. */
void delivery_change(delivery *d, const output_options *options);

/*
 * Lets it go; nobody waits for it: the thread ends by itself when all is delivered, or cannot be, or so many
 * milliseconds have passed. What was not delivered then stays in the spool. If the spool is opened again before, it
 * just goes on. NULL is allowed.
 */
void delivery_close(delivery *d, int64_t patience_ms);

/* Waits for the threads of all that were closed. */
void deliveries_end(void);

#endif
