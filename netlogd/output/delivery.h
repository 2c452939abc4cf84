/*
 * Delivery of an output's records from its spool to their destination, by a thread of its own. The output writes the
 * files of the spool (file.h). The thread reads the settled part of them, gives it to the kind (kind.h), and removes
 * delivered files. Bytes that are not acknowledged to clients may still be cut off, so they are never delivered.
 *
 * SPOOL/delivered holds the position, and is locked, so that no two processes use a spool. Bytes that were delivered
 * when netlogd was killed, and not yet noted there, are delivered again.
 *
 * The functions are for the server's thread, which waits only in deliveries_end.
 */
#ifndef NETLOGD_OUTPUT_DELIVERY_H
#define NETLOGD_OUTPUT_DELIVERY_H

#include "options.h"

typedef struct delivery delivery;

typedef struct delivery_state {
    uint64_t waiting;   /* bytes in the spool that are not delivered */
    uint64_t delivered; /* bytes, since netlogd was started */
    uint64_t failures;  /* failed deliveries, since then */
    char reason[256];   /* of the present failure; empty: none */
} delivery_state;

/* Makes the spool's directory and locks it. Copies the options. NULL after setting the error. */
delivery *delivery_open(const output_options *options);

/* Starts the thread, which delivers everything before end. log may be NULL; it gets an event when delivery fails and
 * when it succeeds again. */
void delivery_start(delivery *d, output_place end, nl_log *log);

/* Notes that size more bytes wait. */
void delivery_wrote(delivery *d, size_t size);

/* Whether size more bytes may wait, of at most so many. If none waits, any number may. */
bool delivery_has_space(delivery *d, size_t size, uint64_t maximum);

/* Notes that everything before end is settled. */
void delivery_settled(delivery *d, output_place end);

void delivery_describe(delivery *d, delivery_state *state);

/* Sets other options for the same target and spool. They apply after the present delivery. */
void delivery_change(delivery *d, const output_options *options);

/*
 * Closes the delivery without waiting. The thread ends by itself when everything is delivered, when delivery fails, or
 * after so many milliseconds. The rest stays in the spool. If the spool is opened again before that, the thread
 * continues. NULL is allowed.
 */
void delivery_close(delivery *d, int64_t patience_ms);

/* Waits for the threads of all closed deliveries. */
void deliveries_end(void);

#endif
