/*
 * Delivers an output's records from its spool to their destination, in a separate thread. The output writes the files
 * of the spool (file.h). The thread reads the settled part of these files, passes it to the kind (kind.h), and removes
 * delivered files. It does not read later bytes, because the output may still truncate them.
 *
 * The file SPOOL/delivered contains the position. The file is locked, so that no two processes use a spool. After a
 * kill, bytes that were delivered after the last stored position are delivered again.
 *
 * Only the server's thread may call the functions. Only deliveries_end waits.
 */
#ifndef NETLOGD_OUTPUT_DELIVERY_H
#define NETLOGD_OUTPUT_DELIVERY_H

#include "options.h"

#include "base/error.h"

typedef struct delivery delivery;

typedef struct delivery_state {
    uint64_t waiting;   /* number of undelivered bytes in the spool */
    uint64_t delivered; /* number of bytes delivered since netlogd was started */
    uint64_t failures;  /* number of failed deliveries since netlogd was started */
    uint64_t rejected;  /* number of records that the destination did not accept since netlogd was started */
    uint64_t missing;   /* number of spool files that were removed since netlogd was started, before delivery */
    nl_error problem;   /* the current failure */
} delivery_state;

/*
 * Creates the spool's directory and locks it. If a closed delivery still uses the spool, continues that delivery.
 * Copies `options`. On failure, sets the error and returns NULL.
 */
delivery *delivery_open(const output_options *options);

/*
 * Starts the thread, which delivers everything before `end`. log, which may be NULL, receives an event when delivery
 * fails and when it succeeds again. netlogd exits if the thread cannot be started.
 */
void delivery_start(delivery *d, output_place end, nl_log *log);

/* Adds `size` to the number of waiting bytes. */
void delivery_wrote(delivery *d, size_t size);

/*
 * Returns whether `size` more bytes may wait without exceeding `maximum`. If no bytes are waiting, any number of bytes
 * may wait.
 */
bool delivery_has_space(delivery *d, size_t size, uint64_t maximum);

/* Tells the thread that everything before `end` is settled. */
void delivery_settled(delivery *d, output_place end);

void delivery_describe(delivery *d, delivery_state *state);

/* Sets new options for the same target and spool. They apply after the current delivery. */
void delivery_change(delivery *d, const output_options *options);

/*
 * Closes the delivery without waiting. The thread ends when it has delivered everything, when delivery fails, or after
 * patience_ms. The rest stays in the spool. If the spool is opened again before the thread ends, the thread continues.
 * `d` may be NULL.
 */
void delivery_close(delivery *d, int64_t patience_ms);

/* Waits for the threads of all closed deliveries. */
void deliveries_end(void);

#endif
