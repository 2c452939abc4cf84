/*
 * The output of a log. Encoded records wait in a batch in shared memory until the destination has accepted them. While
 * the destination is unreachable, the records go to the spool or to the backup, if the log has one.
 *
 * One thread at a time uses an outbox: the thread in nl_open, then the log's writer thread, and then the thread in
 * nl_close, after the writer thread has ended. In a recovery (recover.c), only the recovering thread uses the outbox.
 * There are three exceptions:
 * - Any thread may call a function whose comment permits this.
 * - Any thread that has locked log->mutex may call nl_outbox_make_batch.
 * - At exit, the library calls nl_outbox_is_spooled after it has flushed the log.
 */
#ifndef NETLOGGER_LOG_OUTBOX_H
#define NETLOGGER_LOG_OUTBOX_H

#include "log/ring.h"
#include "log/sender.h"
#include "transport/log_options.h"
#include "transport/destination.h"
#include "transport/spool.h"

/*
 * The pauses between attempts. The first pause is short, and each pause is twice as long as the previous one, up to a
 * maximum.
 */
typedef struct nl_pace {
    int64_t retry_ns; /* earliest time of the next attempt, on the monotonic clock */
    int64_t pause_ns; /* pause after the latest failed attempt; 0 if the latest attempt did not fail */
} nl_pace;

/* Bytes to write at once: records of the spool, records of the batch, or a report of losses. */
typedef struct nl_part {
    const char *data;
    size_t size;
    size_t in_spool; /* the first in_spool bytes are in the spool, and the following bytes are in the batch */
    bool is_report;  /* the bytes report `lost` records that the spool dropped */
    uint64_t lost;
    nl_spool_front front; /* the position of the bytes in the spool */
} nl_part;

/* The current activity of the sender. */
typedef enum nl_sending {
    NL_SENDING_NOTHING,
    NL_SENDING_GREETING, /* the sender opens the destination */
    NL_SENDING_RECORDS,
    NL_SENDING_EXCHANGE,
} nl_sending;

/* The flush of a log with a sender. */
typedef struct nl_outbox_flush {
    int64_t end_ns; /* after this time, the log makes no more attempts; 0: no flush */
    size_t left;    /* number of bytes of the batch that the flush still waits for */
    bool counted;   /* `left` has been set for this flush */
    bool failed;    /* an attempt has failed since the flush began */
} nl_outbox_flush;

/* The second destination, which gets the batch while the first destination is unreachable. */
typedef struct nl_outbox_backup {
    nl_url *url;                 /* NULL: the log has no backup */
    nl_destination *destination; /* NULL: not in use */
    nl_pace pace;                /* pace of attempts to reach the backup */
    nl_sender *sender;           /* uses `destination`; NULL unless the backup is a collector */
    bool is_sending;             /* the sender has a job whose result has not been applied yet */
    nl_part part;                /* the part of the batch that the sender is sending */
    bool interrupted;            /* the sender's job was interrupted, and its result was applied */
    bool failed;                 /* the sender's latest job failed, and nl_outbox_send has not returned this yet */
    nl_error error;              /* the reason, if `failed` is true */
    bool has_lost;               /* closing the backup has failed, because text may be lost */
    nl_error loss;               /* the reason, if `has_lost` is true */
    bool instead_of_slow;        /* the job began because the destination was slow, not because it had failed */
} nl_outbox_backup;

typedef struct nl_outbox {
    nl_mapping mapping;
    nl_shared_log *shared; /* NULL: no memory yet */
    char *batch;
    size_t reserved; /* number of bytes of the batch for which memory is allocated */
    nl_url *url;
    nl_destination_options how;
    nl_destination *destination; /* NULL: not opened yet */
    const nl_log_options *options;
    nl_spool *spool;   /* NULL if it is not open, or the log has no spool */
    nl_buffer spooled; /* the records of the spool that are being delivered */
    nl_buffer losses;  /* the report of losses that is being delivered */
    nl_sender *sender; /* NULL: the thread that uses the outbox also uses the destination */
    nl_sending sending;
    int64_t sending_since_ns;
    nl_part part;              /* the part that the sender is sending, if `sending` is NL_SENDING_RECORDS */
    bool exchanged;            /* the sender has finished an exchange */
    nl_status exchange_status; /* its result */
    nl_outbox_flush flush;
    nl_outbox_backup backup;
    nl_pace pace;        /* pace of attempts to reach the destination */
    bool away;           /* the log's latest attempt to reach the destination failed */
    uint64_t waiting;    /* number of records in the batch; atomic, because other threads read it */
    uint64_t to_spool;   /* number of records written to the spool */
    uint64_t from_spool; /* number of records delivered from the spool */
    bool reports;        /* failures are reported with nl_report, once per error code */
    unsigned reported;   /* bit N is set if error code N was reported */
    bool hurry;          /* a flush has begun, so the log makes one attempt now, even with a spool or backup */
    bool stopped;        /* the sender sends no more records */
    bool interrupted;    /* the sender's job was interrupted, and its result was applied */
    bool checked_rows;   /* damaged rows of the spool were reported */
} nl_outbox;

/*
 * Creates the batch in the process's shared memory. `number` is the number of the log. A child of fork() calls this
 * function again. Returns NL_OK, or NL_FAILED with the reason.
 */
nl_status nl_outbox_make_batch(nl_outbox *outbox, unsigned number);

/* Opens the log's spool, if it has one. Returns NL_OK, or NL_FAILED with the reason. */
nl_status nl_outbox_open_spool(nl_outbox *outbox);

/*
 * Moves encoded records from the rings to the batch, which must have space. `bytes` contains `records` records. Sets
 * the position of each ring to the ring's members `at` and `sequence`.
 */
void nl_outbox_commit(nl_outbox *outbox, nl_ring *rings, const nl_buffer *bytes, uint64_t records);

/* Allocates memory for size more bytes in the batch. Returns false if the batch has no space or memory runs out. */
bool nl_outbox_has_space(nl_outbox *outbox, size_t size);

/*
 * Creates a sender, and a second sender if the backup is a collector. Call this function before the destination is
 * opened. A sender calls wake(user) when it has finished a job. Returns NL_OK or NL_FAILED.
 */
nl_status nl_outbox_make_sender(nl_outbox *outbox, void (*wake)(void *user), void *user);

/* If the log has a sender, adapts the options of a destination that the caller opens for nl_outbox_change. */
void nl_outbox_adapt(nl_outbox *outbox, nl_destination_options *options);

/*
 * Opens the destination for the first time. With a sender, waits at most 1 s; the sender then continues. Returns NL_OK
 * even if the destination cannot be reached now. Returns NL_FAILED if the destination can never work and the log has no
 * backup.
 */
nl_status nl_outbox_open_destination(nl_outbox *outbox);

/*
 * Interrupts the senders, which then send no more records. Removes the records that they have sent from the batch and
 * the spool, so that nlrecover does not send them again. Call this function after the last flush, if records are left.
 */
void nl_outbox_stop_sending(nl_outbox *outbox);

/* Applies the results of the senders' jobs if the jobs are done. Executes commands that the collector has sent. */
void nl_outbox_settle(nl_outbox *outbox);

/* Returns whether a sender has a job whose result has not been applied yet. */
bool nl_outbox_is_sending(const nl_outbox *outbox);

/* Returns whether the sender will probably be done soon, so that events may wait in the rings. */
bool nl_outbox_expects_reply(const nl_outbox *outbox);

/* Receives messages from the collector, unless the sender uses the destination. */
void nl_outbox_poll(nl_outbox *outbox);

/*
 * Exchanges timestamps with the collector, like nl_destination_exchange. With a sender, returns NL_AGAIN while the
 * exchange continues; call the function again. If `wait` is true, first waits until the exchange has ended.
 */
nl_status nl_outbox_exchange(nl_outbox *outbox, nl_exchange *exchange, bool wait);

/* Begins a cycle of the writer thread, with a flush if `flush` is true. */
void nl_outbox_begin_flush(nl_outbox *outbox, bool flush);

/*
 * Returns whether the flush must wait for the sender. Call this function after nl_outbox_send when all events that the
 * flush needs are in the batch. `stuck` means that the batch cannot accept these events until the sender makes space;
 * the caller may then call the function earlier. A flush ends when everything is delivered, when an attempt has failed,
 * or after the timeout of the destination. In the last two cases, the records are in the spool, unless the spool is
 * full.
 */
bool nl_outbox_is_flushing(nl_outbox *outbox, bool stuck);

/*
 * Sends the spool's records and then the batch to the destination. If the destination is unreachable, writes the batch
 * to the backup or the spool. Returns NL_OK if the batch is empty afterwards, NL_AGAIN if it is too early for another
 * attempt, or NL_FAILED with the reason. If at_once is true, makes an attempt now. If the log has a spool or a backup,
 * an attempt at the destination itself also requires outbox->hurry. With a sender, does not wait, and returns NL_OK
 * also while the sender sends the records; the batch then accepts more records.
 */
nl_status nl_outbox_send(nl_outbox *outbox, nl_level level, bool at_once);

/*
 * Syncs the spool to disk as the fsync= option requires: now if flush is set, otherwise when a sync is due. Returns
 * NL_OK, or NL_FAILED with the reason.
 */
nl_status nl_outbox_sync(nl_outbox *outbox, bool flush);

/* Notes a failure of the destination, which the thread's error describes, and schedules the next attempt. */
void nl_outbox_note_failure(nl_outbox *outbox);

/* Returns whether the spool is open and has records. */
bool nl_outbox_is_spooled(const nl_outbox *outbox);

/* Returns the number of records of this process that are in the spool. */
uint64_t nl_outbox_count_spooled(const nl_outbox *outbox);

/* Returns the number of records in the batch. Any thread may call this function. */
uint64_t nl_outbox_waiting(const nl_outbox *outbox);

/* Returns whether the batch is empty. Any thread may call this function. */
bool nl_outbox_is_empty(const nl_outbox *outbox);

/*
 * Closes the destination and replaces it with an open destination. The outbox takes ownership of url and destination;
 * the caller frees the old URL.
 */
void nl_outbox_change(nl_outbox *outbox, nl_url *url, nl_destination *destination, const nl_writer_options *writer);

/* Call this function in the child after fork. Drops the state that belongs to the parent. */
void nl_outbox_after_fork(nl_outbox *outbox);

/* Closes the destination. Returns NL_OK, or NL_FAILED with the reason. */
nl_status nl_outbox_close_destination(nl_outbox *outbox);

/* Closes and frees everything that the outbox owns. */
void nl_outbox_close(nl_outbox *outbox);

#endif
