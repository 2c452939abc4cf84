/* What memory there is and what it is used for. proc_meminfo(5). */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

enum { LINES = 11 };

typedef struct memory_state {
    nl_buffer text;
} memory_state;

/* In the order of the file. */
static const char *const lines[LINES] = {"MemTotal:",  "MemFree:",   "MemAvailable:", "Buffers:", "Cached:", "Dirty:",
                                         "Writeback:", "AnonPages:", "Mapped:",       "Shmem:",   "Slab:"};

static const sensor_field fields[] = {
    {"MemoryFree", "MEM.TOTAL", "bytes", "that the kernel manages"},
    {"MemoryFree", "MEM.FREE", "bytes", "of no use at all"},
    {"MemoryFree", "MEM.AVAILABLE", "bytes", "that could be had without swapping"},
    {"MemoryFree", "MEM.BUFFERS", "bytes", "of block devices"},
    {"MemoryFree", "MEM.CACHED", "bytes", "of files"},
    {"MemoryFree", "MEM.DIRTY", "bytes", "that wait to be written"},
    {"MemoryFree", "MEM.WRITEBACK", "bytes", "that are being written"},
    {"MemoryFree", "MEM.ANONYMOUS", "bytes", "of processes, of no file"},
    {"MemoryFree", "MEM.MAPPED", "bytes", "of files, mapped by processes"},
    {"MemoryFree", "MEM.SHARED", "bytes", "shared memory and tmpfs"},
    {"MemoryFree", "MEM.SLAB", "bytes", "of the kernel's own objects"},
    {0},
};

static bool memory_look(sensor_look *look)
{
    memory_state *s = look->state;
    uint64_t kilobytes[LINES];
    if (!proc_read("/proc/meminfo", &s->text))
        return false;
    if (proc_find_all(s->text.data, lines, LINES, kilobytes) == 0)
        return nl_error_false(NL_ERROR_SYSTEM, "/proc/meminfo: no known line");
    nl_record *record = look_begin(look, "MemoryFree");
    for (int i = 0; i < LINES; i++)
        nl_record_add_uint(record, fields[i].name, kilobytes[i] * 1024);
    look_end(look);
    return true;
}

const sensor_kind memory_sensor = {.name = "memory",
                                   .what = "what memory there is and what it is used for",
                                   .arguments = "",
                                   .is_default = true,
                                   .fields = fields,
                                   .look = memory_look,
                                   .state_size = sizeof(memory_state)};
