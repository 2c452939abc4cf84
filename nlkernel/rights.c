#include "config.h"

#include "rights.h"

#include "base/error.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

const char *rights_program_path(void)
{
    static char path[512];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    return size > 0 ? path : "nlkernel";
}

/* If `all` is true, makes all permitted capabilities effective; otherwise, makes no capability effective. */
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

void rights_set_open_error(const char *path)
{
    int error = errno;
    if (error == EPERM && is_locked_down())
        nl_error_set(NL_ERROR_PERMISSION,
                     "%s: the kernel is locked down (/sys/kernel/security/lockdown) and does not allow recording",
                     path);
    else if ((error == EACCES || error == EPERM) && !rights_has_capability(CAP_DAC_OVERRIDE))
        nl_error_set(NL_ERROR_PERMISSION,
                     "%s: %s: user %u lacks CAP_DAC_OVERRIDE; run nlkernel as root, or grant it: sudo setcap "
                     "cap_dac_override+ep %s",
                     path, strerror(error), (unsigned)geteuid(), rights_program_path());
    else {
        errno = error;
        nl_error_set_errno("%s", path);
    }
}

void rights_set_mount_error(void)
{
    int error = errno;
    if (error == ENODEV)
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "cannot record: this kernel has no tracefs (it was built without CONFIG_TRACING)");
    else if (error == ENOSYS)
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "tracefs is not mounted; run sudo mount -t tracefs tracefs /sys/kernel/tracing");
    else if (error == EPERM && !rights_has_capability(CAP_SYS_ADMIN))
        nl_error_set(
            NL_ERROR_UNSUPPORTED,
            "tracefs is not mounted, and user %u lacks CAP_SYS_ADMIN to mount it; run nlkernel as root, or "
            "mount tracefs and grant nlkernel access to it: sudo mount -t tracefs tracefs /sys/kernel/tracing; sudo "
            "setcap cap_dac_override+ep %s",
            (unsigned)geteuid(), rights_program_path());
    else {
        errno = error;
        nl_error_set_errno("mount tracefs");
    }
}

bool rights_fail_bpf(int error)
{
    bool has_bpf = rights_has_capability(CAP_BPF) || rights_has_capability(CAP_SYS_ADMIN);
    bool has_perfmon = rights_has_capability(CAP_PERFMON) || rights_has_capability(CAP_SYS_ADMIN);
    if ((error == EPERM || error == EACCES) && !(has_bpf && has_perfmon))
        return nl_error_false(
            NL_ERROR_PERMISSION,
            "eBPF: this process lacks%s%s%s; run nlkernel as root, or grant the capabilities: sudo setcap "
            "cap_bpf,cap_perfmon,cap_dac_override+ep %s",
            has_bpf ? "" : " CAP_BPF", has_bpf || has_perfmon ? "" : " and", has_perfmon ? "" : " CAP_PERFMON",
            rights_program_path());
    errno = error;
    return nl_error_set_errno("eBPF: this kernel rejects the program") == NL_OK;
}

/* The initial PID namespace has the inode number PROC_PID_INIT_INO (include/linux/proc_ns.h). */
bool rights_see_all_processes(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == 0xEFFFFFFC;
}
