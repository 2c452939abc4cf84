#include "config.h"

#include "service/tracefs_mount.h"

#include <errno.h>
#include <linux/magic.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <unistd.h>

bool tracefs_mount_is(const char *path)
{
    struct statfs status;
    return statfs(path, &status) == 0 && status.f_type == TRACEFS_MAGIC;
}

const char *tracefs_mount_find(void)
{
    static const char *const usual[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (tracefs_mount_is(usual[i]))
            return usual[i];
    return NULL;
}

int tracefs_mount_detached(void)
{
    int mounted = -1;
    int fs = fsopen("tracefs", FSOPEN_CLOEXEC);
    if (fs >= 0 && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        mounted = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    int error = errno;
    if (fs >= 0)
        close(fs);
    errno = error;
    return mounted;
}
