/* Finds the kernel's tracefs. Any thread may call these functions. */
#ifndef NETLOGGER_SERVICE_TRACEFS_MOUNT_H
#define NETLOGGER_SERVICE_TRACEFS_MOUNT_H

#include <stdbool.h>

/* Returns whether `path` is on a tracefs. */
bool tracefs_mount_is(const char *path);

/* Returns the usual mount point on which tracefs is mounted, or NULL. The text is static. */
const char *tracefs_mount_find(void);

/*
 * Mounts tracefs without attaching it to a directory, so that the system's mount points do not change. Returns a
 * descriptor, which the caller closes, or -1 with errno set. Requires CAP_SYS_ADMIN.
 */
int tracefs_mount_detached(void);

#endif
