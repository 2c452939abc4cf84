#include "config.h"

#include "instance.h"

#include "base/error.h"
#include "rights.h"
#include "shared.h"
#include "program/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <tracefs.h>
#include <unistd.h>

#define NAME_FORMAT "nlkernel-%llu-%d-%llu" /* PID namespace, process ID and start time of the process */
#define NOTE_MARK "-shared-"                /* precedes the former settings of the shared buffers in the name */

static unsigned long long pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (unsigned long long)status.st_ino : 0;
}

/* Returns the start time of a process in clock ticks since the machine started, or 0 if there is no such process. */
static unsigned long long process_start(int process)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = '\0';
    char *at = strrchr(text, ')'); /* the process name may contain any character */
    unsigned long long start = 0;
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at != NULL && sscanf(at, " %llu", &start) == 1 ? start : 0;
}

/* Returns whether `name` is the name of an instance whose recorder belonged to this PID namespace, and has ended. Sets
 * *note to the former settings of the shared buffers in the name, or to NULL if the name contains no settings. */
static bool instance_is_stale(const char *name, const char **note)
{
    unsigned long long space, start;
    int process, end = 0;
    if (sscanf(name, NAME_FORMAT "%n", &space, &process, &start, &end) != 3)
        return false;
    bool noted = strncmp(name + end, NOTE_MARK, strlen(NOTE_MARK)) == 0;
    *note = noted ? name + end + strlen(NOTE_MARK) : NULL;
    return (noted || name[end] == '\0') && space == pid_namespace() && process_start(process) != start;
}

unsigned instance_clean_stale(const tracing *t)
{
    unsigned count = 0;
    char *instances = tracing_path(t, "instances");
    const char *note;
    DIR *directory = opendir(instances);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        if (!instance_is_stale(entry->d_name, &note) || unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR) != 0)
            continue;
        if (note != NULL)
            shared_restore(t, note);
        count++;
    }
    if (directory != NULL)
        closedir(directory);
    free(instances);
    return count;
}

char *instance_read(const instance *i, const char *file)
{
    char *path = program_format("%s/%s", i->dir, file), *text = tracing_read(path, NULL);
    free(path);
    return text;
}

bool instance_write(const instance *i, const char *file, const char *text)
{
    char *path = program_format("%s/%s", i->dir, file);
    bool ok = tracing_write(path, text);
    free(path);
    return ok;
}

bool instance_write_number(const instance *i, const char *file, long number)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", number);
    return instance_write(i, file, text);
}

uint64_t instance_overwritten(const char *dir, int cpu)
{
    static const char *const counts[] = {"\noverrun: ", "\ncommit overrun: ", "\ndropped events: "};
    char *path = program_format("%s/per_cpu/cpu%d/stats", dir, cpu), *text = tracing_read(path, NULL);
    uint64_t sum = 0;
    for (size_t i = 0; text != NULL && i < sizeof counts / sizeof *counts; i++) {
        const char *line = strstr(text, counts[i]);
        sum += line != NULL ? strtoull(line + strlen(counts[i]), NULL, 10) : 0;
    }
    free(text);
    free(path);
    return sum;
}

int instance_open(const instance *i, const char *file, int flags)
{
    char *path = program_format("%s/%s", i->dir, file);
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        rights_set_open_error(path);
    free(path);
    return fd;
}

bool instance_create(instance *i, const tracing *t, const char *note)
{
    *i = (instance){.free_buffer_fd = -1};
    char name[96 + SHARED_NOTE_SIZE];
    snprintf(name, sizeof name, NAME_FORMAT "%s%s", pid_namespace(), getpid(), process_start(getpid()),
             note != NULL ? NOTE_MARK : "", note != NULL ? note : "");
    i->handle = tracefs_instance_create(name);
    if (i->handle == NULL) {
        char *path = tracing_path(t, "instances/%s", name);
        rights_set_open_error(path);
        free(path);
        return false;
    }
    i->dir = tracing_path(t, "instances/%s", name);
    if (!instance_write(i, "tracing_on", "0")) {
        instance_destroy(i);
        return false;
    }
    instance_write(i, "options/disable_on_free", "1");
    i->free_buffer_fd = instance_open(i, "free_buffer", O_WRONLY);
    return true;
}

bool instance_destroy(instance *i)
{
    if (i->handle == NULL)
        return true;
    bool gone = false;
    instance_write(i, "tracing_on", "0");
    instance_write(i, "events/enable", "0");
    instance_write(i, "current_tracer", "nop");
    if (i->free_buffer_fd >= 0)
        close(i->free_buffer_fd);
    for (int tries = 0; !gone && tries < 100; tries++) {
        gone = tracefs_instance_destroy(i->handle) == 0;
        if (!gone && errno != EBUSY)
            break;
        if (!gone)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    if (!gone)
        nl_error_set_errno("remove %s", i->dir);
    tracefs_instance_free(i->handle);
    free(i->dir);
    *i = (instance){.free_buffer_fd = -1};
    return gone;
}
