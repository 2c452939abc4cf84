/*
 * The recorder's own tracing instance: ring buffers, clock, events and filters that do not affect other tracing.
 *
 * The instance's name identifies the recorder (PID namespace, process ID, start time of the process), so that the next
 * nlkernel can remove the instance of a recorder that was killed. When a recorder is killed, the kernel stops its
 * instance and frees the buffers at once, because the kernel then closes the recorder's descriptor of the free_buffer
 * file. One thread.
 */
#ifndef NLKERNEL_INSTANCE_H
#define NLKERNEL_INSTANCE_H

#include "tracing.h"

typedef struct instance {
    struct tracefs_instance *handle;
    char *dir;          /* its directory, without a trailing slash */
    int free_buffer_fd; /* open during the recording */
    int lock_fd;        /* for shared buffers: holds the lock */
} instance;

/* Removes the instances of recorders that were killed. Returns their number. */
unsigned instance_clean_stale(const tracing *t);

/*
 * Creates the instance, with recording off. note: the settings of the shared buffers, which the recorder is about to
 * change; NULL: it does not use them. Returns false and sets the error on failure.
 */
bool instance_create(instance *i, const tracing *t, const char *note);

/* Stops recording and removes the instance, whose files must be closed. Returns false and sets the error on failure. */
bool instance_destroy(instance *i);

/*
 * Read and write files of the instance, as tracing_read and tracing_write. Callers ignore the result for files that
 * older kernels lack and that nlkernel does not need.
 */
char *instance_read(const instance *i, const char *file);
bool instance_write(const instance *i, const char *file, const char *text);
bool instance_write_number(const instance *i, const char *file, long number);

/* Opens a file of the instance. Returns -1 and sets the error on failure. */
int instance_open(const instance *i, const char *file, int flags);

/* Returns the number of events that a CPU's buffer has lost, in the instance with a directory; 0 if the kernel does not
 * report it.
 */
uint64_t instance_overwritten(const char *dir, int cpu);

#endif
