/*
 * The recorder's separate tracing instance: ring buffers, clock, events and filters that do not affect other tracing.
 *
 * The instance's name identifies the recorder by PID namespace, process ID and start time of the process, so the next
 * nlkernel can remove the instance of a recorder that was killed. When a recorder is killed, the kernel closes the
 * recorder's descriptor of the free_buffer file, which stops the instance and frees its buffers. Not thread-safe.
 */
#ifndef NLKERNEL_INSTANCE_H
#define NLKERNEL_INSTANCE_H

#include "tracing.h"

typedef struct instance {
    struct tracefs_instance *handle;
    char *dir;          /* directory of the instance, without a trailing slash */
    int free_buffer_fd; /* open during the recording */
    int lock_fd;        /* descriptor that holds the lock, if the instance is for the shared buffers */
} instance;

/* Removes the instances of recorders that were killed, and restores the settings of the shared buffers that these
 * recorders changed. Returns the number of removed instances. */
unsigned instance_clean_stale(const tracing *t);

/*
 * Creates the instance with recording switched off. `note` contains the settings of the shared buffers that the
 * recorder will change, or is NULL if the recorder does not use the shared buffers. Returns false and sets the error on
 * failure.
 */
bool instance_create(instance *i, const tracing *t, const char *note);

/* Stops recording and removes the instance. The caller must have closed the instance's files. Returns false and sets
 * the error on failure. */
bool instance_destroy(instance *i);

/* Read and write files of the instance, like tracing_read and tracing_write (tracing.h). For files that nlkernel does
 * not need and that older kernels lack, callers may ignore the result. */
char *instance_read(const instance *i, const char *file);
bool instance_write(const instance *i, const char *file, const char *text);
bool instance_write_number(const instance *i, const char *file, long number);

/* Opens a file of the instance. Returns -1 and sets the error on failure. */
int instance_open(const instance *i, const char *file, int flags);

/* Returns the number of events that a CPU's buffer has lost. `dir` is the instance's directory. Returns 0 if the
 * kernel does not report the number. */
uint64_t instance_overwritten(const char *dir, int cpu);

#endif
