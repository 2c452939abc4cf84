/*
 * Reports the free space on the file systems of this host's devices. Excludes network file systems, because a query of
 * a network file system may never return. See proc_pid_mountinfo(5) and statvfs(3).
 */
#include "config.h"

#include "sensors/sensor.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

enum { MOUNTS_MAX = 64, DEVICE_SIZE = 24 };

typedef struct filesystem_state {
    nl_buffer text;
    char devices[MOUNTS_MAX][DEVICE_SIZE]; /* devices of this measurement */
    size_t count;
    const char *only; /* mount point to measure; NULL: all mount points */
} filesystem_state;

static bool filesystem_open(void *state, const sensor_spec *spec)
{
    static char only[SPEC_SIZE_MAX];
    filesystem_state *s = state;
    const char *mount = spec_argument(spec, "mount");
    if (mount != NULL) {
        snprintf(only, sizeof only, "%s", mount);
        s->only = only;
    }
    return true;
}

/* Decodes octal escapes in place, such as \040 for a blank. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++)
        if (from[0] == '\\' && isdigit((unsigned char)from[1]) && isdigit((unsigned char)from[2]) &&
            isdigit((unsigned char)from[3])) {
            *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 3;
        } else {
            *to++ = *from;
        }
    *to = '\0';
}

/* Returns whether a device occurs for the first time in this measurement. Also returns false if there are MOUNTS_MAX
 * devices. */
static bool is_new(filesystem_state *s, const char *device)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->devices[i], device) == 0)
            return false;
    if (s->count == MOUNTS_MAX)
        return false;
    snprintf(s->devices[s->count++], DEVICE_SIZE, "%s", device);
    return true;
}

static void log_space(measurement *m, const char *mount, const char *type, const char *source)
{
    struct statvfs space;
    if (statvfs(mount, &space) != 0 || space.f_blocks == 0)
        return;
    uint64_t unit = space.f_frsize;
    nl_record *record = record_begin(m, "FilesystemSpace");
    add_text(record, "FS.MOUNT", mount);
    add_text(record, "FS.TYPE", type);
    add_text(record, "FS.DEVICE", source);
    nl_record_add_uint(record, "FS.TOTAL", space.f_blocks * unit);
    nl_record_add_uint(record, "FS.FREE", space.f_bfree * unit);
    nl_record_add_uint(record, "FS.AVAILABLE", space.f_bavail * unit);
    nl_record_add_uint(record, "FS.FILES", space.f_files);
    nl_record_add_uint(record, "FS.FILES.FREE", space.f_ffree);
    record_end(m);
}

static void measure_line(measurement *m, const char *line)
{
    filesystem_state *s = m->state;
    char device[DEVICE_SIZE], mount[512], type[40], source[256];
    const char *second = strstr(line, " - ");
    if (second == NULL || sscanf(line, "%*s %*s %23s %*s %511s", device, mount) != 2 ||
        sscanf(second, " - %39s %255s", type, source) != 2)
        return;
    unescape(mount);
    bool wanted = s->only != NULL ? strcmp(s->only, mount) == 0 : strncmp(source, "/dev/", 5) == 0;
    if (wanted && is_new(s, device))
        log_space(m, mount, type, source);
}

static bool filesystem_measure(measurement *m)
{
    filesystem_state *s = m->state;
    if (!proc_read("/proc/self/mountinfo", &s->text))
        return false;
    s->count = 0;
    for (const char *line = s->text.data; line != NULL && *line != '\0'; line = proc_next_line(line))
        measure_line(m, line);
    return true;
}

static const sensor_field fields[] = {
    {"FilesystemSpace", "FS.MOUNT", "", "mount point"},
    {"FilesystemSpace", "FS.TYPE", "", "type of the file system, such as ext4 or xfs"},
    {"FilesystemSpace", "FS.DEVICE", "", "device"},
    {"FilesystemSpace", "FS.TOTAL", "bytes", "total space"},
    {"FilesystemSpace", "FS.FREE", "bytes", "space that root can use"},
    {"FilesystemSpace", "FS.AVAILABLE", "bytes", "space that all users can use"},
    {"FilesystemSpace", "FS.FILES", "files", "maximum number of files; 0 means no limit"},
    {"FilesystemSpace", "FS.FILES.FREE", "files", "number of files that can be created"},
    {0},
};

const sensor_kind filesystem_sensor = {
    .name = "filesystem",
    .what = "the space on all file systems of this host's devices, or on one file system",
    .arguments = " mount ",
    .arguments_help = "mount=DIRECTORY (log only this file system, of any type)",
    .is_default = true,
    .fields = fields,
    .open = filesystem_open,
    .measure = filesystem_measure,
    .state_size = sizeof(filesystem_state)};
