#include "config.h"

#include "rights.h"

#include "base/error.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
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

const char *rights_our_path(void)
{
    static char path[512];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    return size > 0 ? path : "nlkernel";
}

/* Makes the permitted capabilities effective, or none of them, in this thread. */
static void set_effective(bool all)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    if (getuid() == 0 || syscall(SYS_capget, &header, sets) != 0)
        return;
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        sets[i].effective = all ? sets[i].permitted : 0;
    syscall(SYS_capset, &header, sets);
}

void rights_lower(void)
{
    set_effective(false);
}

void rights_raise(void)
{
    set_effective(true);
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
        nl_error_set(NL_ERROR_PERMISSION,
                     "%s: refused by the kernel's lockdown (/sys/kernel/security/lockdown), which lets nobody record",
                     path);
    else if ((error == EACCES || error == EPERM) && !rights_has_capability(CAP_DAC_OVERRIDE))
        nl_error_set(NL_ERROR_PERMISSION,
                     "%s: %s: user %u has neither root's rights nor CAP_DAC_OVERRIDE. Run nlkernel as root (sudo), or "
                     "grant it: sudo setcap cap_dac_override+ep %s",
                     path, strerror(error), (unsigned)geteuid(), rights_our_path());
    else {
        errno = error;
        nl_error_set_errno("%s", path);
    }
}

void rights_explain_no_mount(void)
{
    int error = errno;
    if (error == ENODEV)
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "this kernel has no tracefs (it was built without CONFIG_TRACING): nothing can be recorded here");
    else if (error == ENOSYS)
        nl_error_set(NL_ERROR_UNSUPPORTED, "tracefs is not mounted: sudo mount -t tracefs tracefs /sys/kernel/tracing");
    else if (error == EPERM && !rights_has_capability(CAP_SYS_ADMIN))
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "tracefs is not mounted, and mounting it wants CAP_SYS_ADMIN, which user %u has not here. Run "
                     "nlkernel as root (sudo), or mount it and grant the rest: sudo mount -t tracefs tracefs "
                     "/sys/kernel/tracing; sudo setcap cap_dac_override+ep %s",
                     (unsigned)geteuid(), rights_our_path());
    else {
        errno = error;
        nl_error_set_errno("mount tracefs");
    }
}
