/* Page faults, and pages that are read, written, looked for and taken. proc_vmstat(5). */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include <string.h>

enum { PGIN, PGOUT, ALLOCATED, FAULTS, MAJOR, STOLEN, SCANNED, SCANNED_DIRECT, OOM, LINES };

typedef struct vm_state {
    nl_buffer text;
    uint64_t values[LINES];
} vm_state;

static bool vm_look(sensor_look *look)
{
    static const char *const lines[LINES] = {"pgpgin ",        "pgpgout ",       "pgalloc_normal ",
                                             "pgfault ",       "pgmajfault ",    "pgsteal_kswapd ",
                                             "pgscan_kswapd ", "pgscan_direct ", "oom_kill "};
    vm_state *s = look->state;
    uint64_t now[LINES], rise[LINES];
    if (!proc_read("/proc/vmstat", &s->text))
        return false;
    if (proc_find_all(s->text.data, lines, LINES, now) == 0)
        return nl_error_false(NL_ERROR_SYSTEM, "/proc/vmstat: no known line");
    for (int i = 0; i < LINES; i++)
        rise[i] = proc_rise(s->values[i], now[i]);
    memcpy(s->values, now, sizeof now);
    if (look->seconds <= 0)
        return true;
    nl_record *record = look_begin(look, "VmActivity");
    add_rate(record, "VM.FAULTS", rise[FAULTS], look->seconds);
    add_rate(record, "VM.FAULTS.MAJOR", rise[MAJOR], look->seconds);
    add_rate(record, "VM.PAGED.IN", rise[PGIN] * 1024, look->seconds);
    add_rate(record, "VM.PAGED.OUT", rise[PGOUT] * 1024, look->seconds);
    add_rate(record, "VM.ALLOCATED", rise[ALLOCATED], look->seconds);
    add_rate(record, "VM.SCANNED", rise[SCANNED], look->seconds);
    add_rate(record, "VM.SCANNED.DIRECT", rise[SCANNED_DIRECT], look->seconds);
    add_rate(record, "VM.STOLEN", rise[STOLEN], look->seconds);
    nl_record_add_uint(record, "VM.OOM.KILLS", rise[OOM]);
    look_end(look);
    return true;
}

static const sensor_field fields[] = {
    {"VmActivity", "VM.FAULTS", "faults/s", "of pages, minor and major"},
    {"VmActivity", "VM.FAULTS.MAJOR", "faults/s", "of pages that had to be read from a disk"},
    {"VmActivity", "VM.PAGED.IN", "bytes/s", "read from block devices"},
    {"VmActivity", "VM.PAGED.OUT", "bytes/s", "written to block devices"},
    {"VmActivity", "VM.ALLOCATED", "pages/s", "given out, of the normal zone"},
    {"VmActivity", "VM.SCANNED", "pages/s", "looked at by kswapd, for memory is short"},
    {"VmActivity", "VM.SCANNED.DIRECT", "pages/s", "looked at by processes that need memory now"},
    {"VmActivity", "VM.STOLEN", "pages/s", "taken back by kswapd"},
    {"VmActivity", "VM.OOM.KILLS", "processes", "killed since the record before, for want of memory"},
    {0},
};

const sensor_kind vm_sensor = {.name = "vm",
                               .what = "page faults and paging",
                               .arguments = "",
                               .is_default = true,
                               .fields = fields,
                               .look = vm_look,
                               .state_size = sizeof(vm_state)};
