/*
 * A thread that uses a log's destination, so that the writer thread can move events from the rings to the spool or the
 * backup while the sender waits for the network. A log has a sender if it has a spool or a backup, and a second sender
 * if the backup is a collector.
 *
 * The writer thread and the sender exchange one job at a time. nl_sender_start gives the job, and the destination in
 * it, to the sender. While nl_sender_is_running returns true, only the sender's thread uses the job and the
 * destination. The job has its own copy of the records, because the writer thread may move the records to the spool
 * while the sender sends them.
 *
 * Resolving a host name cannot be interrupted. Therefore, nl_sender_stop and nl_sender_free do not wait for a thread
 * that does this: the thread then sends no more records, and frees the sender itself.
 *
 * Only the owner of the outbox (outbox.h) may call these functions.
 */
#ifndef NETLOGGER_LOG_SENDER_H
#define NETLOGGER_LOG_SENDER_H

#include "base/error.h"
#include "transport/destination.h"

typedef struct nl_sender nl_sender;

typedef enum nl_job_kind {
    NL_JOB_OPEN,     /* opens the destination */
    NL_JOB_WRITE,    /* opens the destination if necessary, and writes `bytes` */
    NL_JOB_EXCHANGE, /* exchanges timestamps with the collector */
} nl_job_kind;

typedef struct nl_job {
    nl_job_kind kind;
    nl_destination *destination; /* NULL: the job opens it */
    nl_level level;
    nl_buffer bytes;

    /* The result. */
    nl_status status;
    nl_error error;       /* the thread's error after the job; also set if opening succeeded, but connecting failed */
    size_t written;       /* number of bytes that the destination has accepted */
    nl_exchange exchange; /* result of NL_JOB_EXCHANGE */
} nl_job;

/*
 * Creates a sender, whose thread starts with the first job. The thread calls wake(user) when a job is done. Returns
 * NULL if memory runs out.
 */
nl_sender *nl_sender_new(void (*wake)(void *user), void *user);

/*
 * Changes the options of a destination that the sender will use. The collector's commands then wait for nl_sender_hear.
 * After nl_sender_stop, nl_sender_cancel or nl_sender_free, the destination neither connects nor writes.
 */
void nl_sender_adapt(nl_sender *sender, nl_destination_options *options);

/*
 * Returns the job, to fill it in or to read its result. Call it only if no job is running. The buffer `bytes` keeps its
 * memory between jobs.
 */
nl_job *nl_sender_job(nl_sender *sender);

/*
 * Starts the job. The function copies `url` and `options`, which the job needs to open the destination. If no thread
 * can be created, the calling thread does the job.
 */
void nl_sender_start(nl_sender *sender, const nl_url *url, const nl_destination_options *options);

/* Returns whether a job is running. */
bool nl_sender_is_running(nl_sender *sender);

/* Waits at most wait_ns until the job is done. */
void nl_sender_wait(nl_sender *sender, int64_t wait_ns);

/*
 * Interrupts a running job, so that it writes no more records. Returns the number of bytes that it has written. Waits
 * for the job only if it is writing; the job then ends soon. Otherwise, the job may still be running afterwards.
 */
size_t nl_sender_stop(nl_sender *sender);

/* Passes the commands that the collector has sent to on_control. */
void nl_sender_hear(nl_sender *sender, void (*on_control)(void *user, const char *commands, size_t size), void *user);

/* Call this function in the child after fork. The child has no sender thread, and forgets the parent's job. */
void nl_sender_after_fork(nl_sender *sender);

/*
 * Ends the sender's thread. Call it only if no job is running, and before you close the destination, which uses the
 * sender.
 */
void nl_sender_cancel(nl_sender *sender);

/*
 * Frees the sender, and closes the job's destination unless it is NULL. If a job is running, the thread does this
 * later. Freeing NULL has no effect.
 */
void nl_sender_free(nl_sender *sender);

#endif
