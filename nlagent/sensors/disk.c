/*
 * Reports disk I/O: DiskIo for all disks together, and DiskDevice for each disk. The sums exclude partitions and
 * devices that map to other devices (dm, md, loop), because these would count requests twice. See the kernel's
 * Documentation/admin-guide/iostats.rst.
 */
#include "config.h"

#include "sensors/sensor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR = 512 }; /* in bytes, the same for all devices */

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
    snprintf(path, sizeof path, "/sys/block/%s", name); /* skip partitions, which have no directory in /sys/block */
    return access(path, F_OK) == 0;
}

static bool maps_to_others(const char *name)
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

static void log_device(measurement *m, const char *name, const uint64_t *rise, uint64_t in_flight)
{
    double ms = m->seconds * 1000;
    nl_record *record = record_begin(m, "DiskDevice");
    add_text(record, "DISK.NAME", name);
    add_rate(record, "DISK.READ", rise[READ] * SECTOR, m->seconds);
    add_rate(record, "DISK.WRITE", rise[WRITTEN] * SECTOR, m->seconds);
    add_rate(record, "DISK.READS", rise[READS], m->seconds);
    add_rate(record, "DISK.WRITES", rise[WRITES], m->seconds);
    add_rounded(record, "DISK.READ.MS", mean(rise[READ_MS], rise[READS]), 2);
    add_rounded(record, "DISK.WRITE.MS", mean(rise[WRITE_MS], rise[WRITES]), 2);
    add_rounded(record, "DISK.QUEUE", (double)rise[QUEUE_MS] / ms, 3);
    nl_record_add_uint(record, "DISK.IN.FLIGHT", in_flight);
    add_rounded(record, "DISK.BUSY", 100.0 * (double)rise[BUSY_MS] / ms, 1);
    record_end(m);
}

/* Logs the I/O of a whole disk from its line. Adds the increases of its counters to the sums, unless the disk maps to
 * other devices. */
static void measure_line(measurement *m, const char *line, uint64_t sums[COLUMNS])
{
    disk_state *s = m->state;
    uint64_t numbers[2], now[COLUMNS], rise[COLUMNS];
    char name[COUNTERS_KEY_SIZE];
    if (proc_numbers(&line, numbers, 2) != 2 || sscanf(line, " %47s", name) != 1)
        return;
    line += strspn(line, " ") + strlen(name);
    if (proc_numbers(&line, now, COLUMNS) != COLUMNS || now[READS] + now[WRITES] == 0 || !is_whole_disk(name) ||
        !counters_rise(&s->counters, name, now, COLUMNS, rise) || m->seconds <= 0)
        return;
    log_device(m, name, rise, now[IN_FLIGHT]);
    for (int i = 0; i < COLUMNS && !maps_to_others(name); i++)
        sums[i] += rise[i];
}

static bool disk_measure(measurement *m)
{
    disk_state *s = m->state;
    uint64_t sums[COLUMNS] = {0};
    if (!proc_read("/proc/diskstats", &s->text))
        return false;
    counters_begin(&s->counters);
    for (const char *line = s->text.data; line != NULL; line = proc_next_line(line))
        measure_line(m, line, sums);
    if (m->seconds <= 0)
        return true;
    nl_record *record = record_begin(m, "DiskIo");
    add_rate(record, "DISK.READ", sums[READ] * SECTOR, m->seconds);
    add_rate(record, "DISK.WRITE", sums[WRITTEN] * SECTOR, m->seconds);
    add_rounded(record, "DISK.BUSY", (double)sums[BUSY_MS] / m->seconds / 10, 1);
    record_end(m);
    return true;
}

static const sensor_field fields[] = {
    {"DiskIo", "DISK.READ", "bytes/s", "data read from all disks"},
    {"DiskIo", "DISK.WRITE", "bytes/s", "data written to all disks"},
    {"DiskIo", "DISK.BUSY", "%", "share of the time with pending requests, summed over disks"},
    {"DiskDevice", "DISK.NAME", "", "name of the device"},
    {"DiskDevice", "DISK.READ", "bytes/s", "data read"},
    {"DiskDevice", "DISK.WRITE", "bytes/s", "data written"},
    {"DiskDevice", "DISK.READS", "requests/s", "completed reads"},
    {"DiskDevice", "DISK.WRITES", "requests/s", "completed writes"},
    {"DiskDevice", "DISK.READ.MS", "ms", "mean duration of a read; 0 if there were no reads"},
    {"DiskDevice", "DISK.WRITE.MS", "ms", "mean duration of a write; 0 if there were no writes"},
    {"DiskDevice", "DISK.QUEUE", "requests", "mean number of pending requests"},
    {"DiskDevice", "DISK.IN.FLIGHT", "requests", "requests in progress now"},
    {"DiskDevice", "DISK.BUSY", "%", "share of the time with pending requests"},
    {0},
};

const sensor_kind disk_sensor = {.name = "disk",
                                 .what = "disk I/O: DiskIo with the totals of all disks, and DiskDevice with rates, "
                                         "latencies and queue length of each disk",
                                 .arguments = "",
                                 .is_default = true,
                                 .fields = fields,
                                 .measure = disk_measure,
                                 .state_size = sizeof(disk_state)};
