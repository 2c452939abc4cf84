/*
 * Access to tracefs, the kernel's interface for tracing.
 *
 * If tracefs is not mounted, nlkernel creates a detached mount, which only this process can see and which disappears
 * with the process. Not thread-safe.
 */
#ifndef NLKERNEL_TRACING_H
#define NLKERNEL_TRACING_H

#include <netlogger.h>

typedef struct tracing {
    char *path;   /* path of tracefs, without a trailing slash */
    int mount_fd; /* descriptor of the detached mount; -1: tracefs was already mounted */
} tracing;

/* Opens tracefs at `path`. If `path` is NULL, finds or mounts tracefs. Returns false and sets the error on failure. If
 * a right is missing, the error contains its name. */
bool tracing_open(tracing *t, const char *path);
void tracing_close(tracing *t);

/* Formats a path relative to tracefs, and returns the absolute path. The caller frees the path. */
char *tracing_path(const tracing *t, const char *format, ...) NL_PRINTF(2, 3);

/* Returns the content of a file, followed by a NUL. The caller frees the content. If `size` is not NULL, sets *size to
 * the number of bytes before the NUL. Returns NULL and sets the error on failure. */
char *tracing_read(const char *path, size_t *size);

/* Writes text to a file with one system call. Returns false and sets the error on failure. */
bool tracing_write(const char *path, const char *text);

#endif
