/*
 * The way out of a log: encoded records wait in a batch, in shared memory, until the destination has taken them; while
 * it is away they go to the spool or to the backup, if the log has one. By the log's writer thread only.
 */
#ifndef NETLOGGER_LOG_OUTBOX_H
#define NETLOGGER_LOG_OUTBOX_H

#include "log/ring.h"
#include "transport/log_options.h"
#include "transport/destination.h"
#include "transport/spool.h"

typedef struct nl_outbox {
    nl_mapping mapping;
    nl_shared_log *shared; /* NULL: no memory yet */
    char *batch;
    size_t reserved; /* bytes of the batch that have memory */
    nl_url *url;
    nl_destination_options how;
    nl_destination *destination; /* NULL: could not be opened yet */
    const nl_log_options *options;
    nl_spool *spool;   /* NULL: not opened, or there is none */
    nl_buffer spooled; /* what of it is being delivered */
    nl_url *backup_url;
    nl_destination *backup; /* while it is in use */
    int64_t retry_ns;       /* on the monotonic clock: the destination is not tried before */
    int64_t pause_ns;       /* between the latest two tries; doubles */
    bool away;              /* the latest try failed */
    uint64_t to_spool;      /* records that went there */
    uint64_t from_spool;    /* records that were delivered out of it */
    bool reports;           /* failures go to nl_report, once per error code */
    unsigned reported;      /* these codes, as bits */
    bool hurry;             /* a flush begins: one try is made whatever the time, also when something stands in */
} nl_outbox;

/* Makes the batch in the process's shared memory, anew after a fork. NL_FAILED when there is no memory. */
nl_status nl_outbox_make_batch(nl_outbox *outbox, unsigned number);

/* Opens the spool, if the log is to have one. NL_OK or NL_FAILED with the reason. */
nl_status nl_outbox_open_spool(nl_outbox *outbox);

/* Takes over records bytes[0..size) encoded from the rings, which it tells that they are rid of them. They fit. */
void nl_outbox_commit(nl_outbox *outbox, nl_ring *rings, const nl_buffer *bytes, uint64_t records);

/* Whether there is room for so many bytes more; memory is found for them. */
bool nl_outbox_has_room(nl_outbox *outbox, size_t size);

/*
 * Writes the batch to the destination, or to what stands in for it. NL_OK when nothing is left. NL_AGAIN when it is not
 * time to try again yet; NL_FAILED with the reason. at_once tries whatever the time, unless
 * something stands in for a destination that is away: then hurry must be set too.
 */
nl_status nl_outbox_send(nl_outbox *outbox, nl_level level, bool at_once);

/*
 * Makes what is in the spool safe against a crash of the machine, where the option fsync asks for that: when flush is
 * set, or when it is time. NL_OK or NL_FAILED with the reason.
 */
nl_status nl_outbox_sync(nl_outbox *outbox, bool flush);

/* Notes that the destination could not be opened or written, for the reason in the thread's error: it is tried again
 * later. */
void nl_outbox_note_failure(nl_outbox *outbox);

/* Whether records wait in the spool. */
bool nl_outbox_is_spooled(const nl_outbox *outbox);

/* The records that wait. */
uint64_t nl_outbox_waiting(const nl_outbox *outbox);

/* Whether none do. By any thread, while the writer thread works. */
bool nl_outbox_is_empty(const nl_outbox *outbox);

/*
 * Goes on with another destination, which is open already; the one before is closed, but its URL is the caller's to
 * free.
 */
void nl_outbox_change(nl_outbox *outbox, nl_url *url, nl_destination *destination, const nl_writer_options *writer);

/* In the child after fork: what the parent has is the parent's. */
void nl_outbox_after_fork(nl_outbox *outbox);

/* Closes the destination. Returns NL_FAILED with the reason if that fails. */
nl_status nl_outbox_close_destination(nl_outbox *outbox);

/* Closes all that is open and frees what the outbox owns. */
void nl_outbox_close(nl_outbox *outbox);

#endif
