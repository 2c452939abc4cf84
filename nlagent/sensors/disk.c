/*
 * What was read from and written to disks: DiskIo of all together, DiskDevice of each. The kernel's
 * Documentation/admin-guide/iostats.rst; of all together, partitions and devices that only stand for others (dm, md,
 * loop) are left out, so that nothing counts twice.
 */
#include "config.h"

#include "sensors/sensor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR = 512 }; /* bytes, whatever the device's own sectors are */

enum {
    READS,
    READS_MERGED,
    READ,
    READ_MS,
    WRITES,
    WRITES_MERGED,
    WRITTEN,
    WRITE_MS,
    IN_FLIGHT,
    BUSY_MS,
    QUEUE_MS,
    COLUMNS
};

typedef struct disk_state {
    nl_buffer text;
    counters counters;
} disk_state;

static bool is_whole_disk(const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "/sys/block/%s", name); /* partitions are not there */
    return access(path, F_OK) == 0;
}

static bool stands_for_others(const char *name)
{
    static const char *const names[] = {"loop", "ram", "dm-", "md", "zram"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static double mean(uint64_t sum, uint64_t count)
{
    return count == 0 ? 0 : (double)sum / (double)count;
}

static void log_device(sensor_look *look, const char *name, const uint64_t *rise, uint64_t in_flight)
{
    double ms = look->seconds * 1000;
    nl_record *record = look_begin(look, "DiskDevice");
    add_text(record, "DISK.NAME", name);
    add_rate(record, "DISK.READ", rise[READ] * SECTOR, look->seconds);
    add_rate(record, "DISK.WRITE", rise[WRITTEN] * SECTOR, look->seconds);
    add_rate(record, "DISK.READS", rise[READS], look->seconds);
    add_rate(record, "DISK.WRITES", rise[WRITES], look->seconds);
    add_rounded(record, "DISK.READ.MS", mean(rise[READ_MS], rise[READS]), 2);
    add_rounded(record, "DISK.WRITE.MS", mean(rise[WRITE_MS], rise[WRITES]), 2);
    add_rounded(record, "DISK.QUEUE", (double)rise[QUEUE_MS] / ms, 3);
    nl_record_add_uint(record, "DISK.IN.FLIGHT", in_flight);
    add_rounded(record, "DISK.BUSY", 100.0 * (double)rise[BUSY_MS] / ms, 1);
    look_end(look);
}

/* A device's line; adds to the sums of all. */
static void look_at_line(sensor_look *look, const char *line, uint64_t sums[COLUMNS])
{
    disk_state *s = look->state;
    uint64_t numbers[2], now[COLUMNS], rise[COLUMNS];
    char name[COUNTERS_KEY];
    if (proc_numbers(&line, numbers, 2) != 2 || sscanf(line, " %47s", name) != 1)
        return;
    line += strspn(line, " ") + strlen(name);
    if (proc_numbers(&line, now, COLUMNS) != COLUMNS || now[READS] + now[WRITES] == 0 || !is_whole_disk(name) ||
        !counters_rise(&s->counters, name, now, COLUMNS, rise) || look->seconds <= 0)
        return;
    log_device(look, name, rise, now[IN_FLIGHT]);
    for (int i = 0; i < COLUMNS && !stands_for_others(name); i++)
        sums[i] += rise[i];
}

static bool disk_look(sensor_look *look)
{
    disk_state *s = look->state;
    uint64_t sums[COLUMNS] = {0};
    if (!proc_read("/proc/diskstats", &s->text))
        return false;
    counters_begin(&s->counters);
    for (const char *line = s->text.data; line != NULL; line = proc_next_line(line))
        look_at_line(look, line, sums);
    if (look->seconds <= 0)
        return true;
    nl_record *record = look_begin(look, "DiskIo");
    add_rate(record, "DISK.READ", sums[READ] * SECTOR, look->seconds);
    add_rate(record, "DISK.WRITE", sums[WRITTEN] * SECTOR, look->seconds);
    add_rounded(record, "DISK.BUSY", (double)sums[BUSY_MS] / look->seconds / 10, 1);
    look_end(look);
    return true;
}

static const sensor_field fields[] = {
    {"DiskIo", "DISK.READ", "bytes/s", "read from all disks"},
    {"DiskIo", "DISK.WRITE", "bytes/s", "written to all disks"},
    {"DiskIo", "DISK.BUSY", "%", "of the time that something was to be done, summed over disks"},
    {"DiskDevice", "DISK.NAME", "", "of the device"},
    {"DiskDevice", "DISK.READ", "bytes/s", "read"},
    {"DiskDevice", "DISK.WRITE", "bytes/s", "written"},
    {"DiskDevice", "DISK.READS", "requests/s", "to read, done"},
    {"DiskDevice", "DISK.WRITES", "requests/s", "to write, done"},
    {"DiskDevice", "DISK.READ.MS", "ms", "a request to read took, on the average; 0 when there was none"},
    {"DiskDevice", "DISK.WRITE.MS", "ms", "a request to write took, on the average; 0 when there was none"},
    {"DiskDevice", "DISK.QUEUE", "requests", "that waited or were being done, on the average"},
    {"DiskDevice", "DISK.IN.FLIGHT", "requests", "that are being done, now"},
    {"DiskDevice", "DISK.BUSY", "%", "of the time that something was to be done"},
    {0},
};

const sensor_kind disk_sensor = {.name = "disk",
                                 .what = "disk I/O: DiskIo of all, DiskDevice of each with rate, latency and queue",
                                 .arguments = "",
                                 .is_default = true,
                                 .fields = fields,
                                 .look = disk_look,
                                 .state_size = sizeof(disk_state)};
