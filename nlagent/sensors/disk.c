/*
 * What was read from and written to disks, all together. The kernel's Documentation/admin-guide/iostats.rst; partitions
 * and devices that only stand for others (dm, md, loop) are left out, so that nothing counts twice.
 */
#include "config.h"

#include "sensors/sensor.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR = 512 }; /* bytes, whatever the device's own sectors are */

typedef struct disk_state {
    nl_buffer text;
    uint64_t read, written, busy_ms;
} disk_state;

static bool is_whole_disk(const char *name)
{
    static const char *const stand_ins[] = {"loop", "ram", "dm-", "md", "zram"};
    for (size_t i = 0; i < sizeof stand_ins / sizeof stand_ins[0]; i++)
        if (strncmp(name, stand_ins[i], strlen(stand_ins[i])) == 0)
            return false;
    char path[160];
    snprintf(path, sizeof path, "/sys/block/%s", name); /* partitions are not there */
    return access(path, F_OK) == 0;
}

static sample_result sample(void *state, double seconds, nl_record *record, const char **extra)
{
    (void)extra;
    disk_state *s = state;
    if (!proc_read("/proc/diskstats", &s->text))
        return SAMPLE_FAILED;
    uint64_t read = 0, written = 0, busy_ms = 0;
    for (const char *line = s->text.data; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        char name[64];
        uint64_t sectors_read, sectors_written, ms;
        line += *line == '\n';
        if (sscanf(line, "%*u %*u %63s %*u %*u %lu %*u %*u %*u %lu %*u %*u %lu", name, &sectors_read, &sectors_written,
                   &ms) == 4 &&
            is_whole_disk(name)) {
            read += sectors_read;
            written += sectors_written;
            busy_ms += ms;
        }
    }
    uint64_t more_read = proc_rise(s->read, read), more_written = proc_rise(s->written, written);
    uint64_t more_busy_ms = proc_rise(s->busy_ms, busy_ms);
    s->read = read;
    s->written = written;
    s->busy_ms = busy_ms;
    if (seconds <= 0)
        return SAMPLE_NOTHING;
    nl_record_add_double(record, "DISK.READ", round((double)more_read * SECTOR / seconds));
    nl_record_add_double(record, "DISK.WRITE", round((double)more_written * SECTOR / seconds));
    nl_record_add_double(record, "DISK.BUSY", round((double)more_busy_ms / seconds) / 10);
    return SAMPLE_DONE;
}

const sensor_kind disk_sensor = {
    "disk", "DiskIo", "DISK.READ DISK.WRITE: bytes a second; DISK.BUSY: percent of the time, summed over disks", sample,
    sizeof(disk_state)};
