#include "config.h"

#include "rights.h"

#include "base/error.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool rights_has_capability(int capability)
{
    char line[256];
    unsigned long long effective = 0;
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL)
        return geteuid() == 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "CapEff: %llx", &effective) == 1)
            break;
    fclose(file);
    return effective >> capability & 1;
}

/* Whether the kernel was told to keep itself from being looked at, even by root. */
static bool is_locked_down(void)
{
    char line[128] = "";
    FILE *file = fopen("/sys/kernel/security/lockdown", "re");
    if (file == NULL)
        return false;
    char *got = fgets(line, sizeof line, file);
    fclose(file);
    return got != NULL && strstr(line, "[none]") == NULL;
}

void rights_explain_denied(const char *path)
{
    int error = errno;
    if (error == EPERM && is_locked_down())
        nl_error_set("%s: refused by the kernel's lockdown (/sys/kernel/security/lockdown), which lets nobody record",
                     path);
    else if ((error == EACCES || error == EPERM) && !rights_has_capability(CAP_DAC_OVERRIDE))
        nl_error_set("%s: %s: user %u has neither root's rights nor CAP_DAC_OVERRIDE. Run nlkernel as root (sudo), or "
                     "let a group in: sudo mount -o remount,gid=GROUP,mode=0770 /sys/kernel/tracing",
                     path, strerror(error), (unsigned)geteuid());
    else {
        errno = error;
        nl_error_set_errno("%s", path);
    }
}

void rights_explain_no_mount(void)
{
    int error = errno;
    if (error == ENODEV)
        nl_error_set("this kernel has no tracefs (it was built without CONFIG_TRACING): nothing can be recorded here");
    else if (error == ENOSYS)
        nl_error_set("tracefs is not mounted: sudo mount -t tracefs tracefs /sys/kernel/tracing");
    else if (error == EPERM && !rights_has_capability(CAP_SYS_ADMIN))
        nl_error_set("tracefs is not mounted, and mounting it wants CAP_SYS_ADMIN, which user %u has not here. Run "
                     "nlkernel as root (sudo), or mount it for a group: sudo mount -t tracefs -o gid=GROUP,mode=0770 "
                     "tracefs /sys/kernel/tracing",
                     (unsigned)geteuid());
    else {
        errno = error;
        nl_error_set_errno("mount tracefs");
    }
}
