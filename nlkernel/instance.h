/*
 * A tracing instance of our own: ring buffers, clock, events and filters that nobody else's tracing sees.
 *
 * Its name says whose it is (namespace of processes, process, when that was started), so that whoever comes later can
 * tell what a recorder that was killed has left, and take it away. The kernel itself stops such an instance and frees
 * its memory at once, because a descriptor of its file free_buffer is closed with the process. One thread.
 */
#ifndef NLKERNEL_INSTANCE_H
#define NLKERNEL_INSTANCE_H

#include "tracing.h"

typedef struct instance {
    struct tracefs_instance *handle;
    char *dir;          /* its folder, without a slash at its end */
    int free_buffer_fd; /* held open as long as we record */
    int lock_fd;        /* of shared buffers: that it is us who hold them */
} instance;

/* Takes away what recorders have left that are no more. Returns how many there were. */
unsigned instance_clean_stale(const tracing *t);

/*
 * Makes ours, which does not record yet. note: what the shared buffers are set to, which are about to be taken; NULL:
 * they are not. False with the reason in nl_error_message().
 */
bool instance_create(instance *i, const tracing *t, const char *note);

/* Stops it and takes it away; its files are closed. False with the reason when the kernel keeps it. */
bool instance_destroy(instance *i);

/* Reads or writes one of its files; tracing_read and tracing_write. */
char *instance_read(const instance *i, const char *file);
bool instance_write(const instance *i, const char *file, const char *text);

/* The same where a kernel without that file will do as well. */
void instance_write_if_there(const instance *i, const char *file, const char *text);

/* Opens one of its files. -1 with the reason. */
int instance_open(const instance *i, const char *file, int flags);

#endif
