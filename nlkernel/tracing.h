/*
 * tracefs, the kernel's interface for tracing.
 *
 * If tracefs is not mounted, nlkernel creates a detached mount that only this process can see and that disappears with
 * it. One thread.
 */
#ifndef NLKERNEL_TRACING_H
#define NLKERNEL_TRACING_H

#include <netlogger.h>

typedef struct tracing {
    char *path;   /* without a trailing slash */
    int mount_fd; /* of the detached mount; -1: tracefs is mounted */
} tracing;

/*
 * Opens tracefs at path, or, with NULL, finds or mounts it. Returns false and sets the error, which names the missing
 * right, on failure.
 */
bool tracing_open(tracing *t, const char *path);
void tracing_close(tracing *t);

/* Returns a path below tracefs. The caller frees it. */
char *tracing_path(const tracing *t, const char *format, ...) NL_PRINTF(2, 3);

/* Returns the content of a file with a NUL at its end. The caller frees it. size may be NULL. Returns NULL and sets the
 * error on failure. */
char *tracing_read(const char *path, size_t *size);

/* Writes text to a file with one system call. Returns false and sets the error on failure. */
bool tracing_write(const char *path, const char *text);

#endif
