/*
 * Where the kernel's tracing is: tracefs.
 *
 * It is used where it is mounted. Where it is not, it is mounted for this process alone, out of everybody's sight (a
 * mount that is attached nowhere), so that nothing of it stays. One thread.
 */
#ifndef NLKERNEL_TRACING_H
#define NLKERNEL_TRACING_H

#include <netlogger.h>

typedef struct tracing {
    char *path;   /* of tracefs, without a slash at its end */
    int mount_fd; /* the mount that is ours alone; -1 when it is somebody's */
} tracing;

/*
 * Opens tracefs at path, NULL: wherever it is. False with the reason in nl_error_message(): this kernel has none, or
 * which right is missing and how to grant it.
 */
bool tracing_open(tracing *t, const char *path);
void tracing_close(tracing *t);

/* A path below tracefs, to be freed. */
char *tracing_path(const tracing *t, const char *format, ...) NL_PRINTF(2, 3);

/* All of a file, NUL-terminated behind its size bytes, to be freed; NULL with the reason in nl_error_message(). size
 * may be NULL. */
char *tracing_read(const char *path, size_t *size);

/* Writes text to a file by one write. False with the reason in nl_error_message(). */
bool tracing_write(const char *path, const char *text);

#endif
