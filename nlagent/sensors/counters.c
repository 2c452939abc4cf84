/*
 * Implements the sensors memory, swap, vm and tcp. Each field is a number in a file of /proc, or the increase of such a
 * number. proc_meminfo(5), proc_vmstat(5) and RFC 4022 (/proc/net/snmp) describe the numbers. /proc/net/netstat
 * contains counters that only Linux has.
 */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include <string.h>
#include <unistd.h>

enum { MEMINFO, VMSTAT, SNMP, NETSTAT, FILE_COUNT };

static const struct {
    const char *path;
    const char *table; /* the numbers are columns of this table; NULL: each number has a separate line */
} files[FILE_COUNT] = {
    {"/proc/meminfo", NULL},
    {"/proc/vmstat", NULL},
    {"/proc/self/net/snmp", "Tcp:"},
    {"/proc/self/net/netstat", "TcpExt:"},
};

/*
 * The value of a field: the counter itself (AMOUNT), its increase since the last measurement (RISE), or its increase
 * per second (RATE).
 */
typedef enum counter_value { AMOUNT, RISE, RATE } counter_value;

enum { FIELDS_MAX = 16, PAGES = 0 /* PAGES as the scale: the file counts pages of memory */ };

/* The source of the sensor's field with the same index. */
typedef struct counter {
    counter_value value;
    int file;
    const char *key;   /* key of the line or column */
    unsigned scale;    /* factor from the unit of the file to the unit of the field */
    const char *minus; /* key of a number to subtract, or NULL */
} counter;

typedef struct counters_state {
    nl_buffer texts[FILE_COUNT];
    uint64_t before[FIELDS_MAX];
} counters_state;

/* Sets *value to the counter or, for RISE and RATE, to its increase since *before. Sets *before to the counter. Returns
 * false if the field has no value. */
static bool counter_measure(const measurement *m, const counter *c, uint64_t *before, uint64_t *value)
{
    const counters_state *s = m->state;
    const char *text = s->texts[c->file].data, *table = files[c->file].table;
    uint64_t now, subtracted = 0;
    if (table == NULL ? !proc_find(text, c->key, &now) : !proc_find_column(text, table, c->key, &now))
        return false;
    if (c->minus != NULL && !proc_find(text, c->minus, &subtracted))
        return false;
    *value = c->value == AMOUNT ? now - subtracted : proc_rise(*before, now);
    *value *= c->scale == PAGES ? (uint64_t)sysconf(_SC_PAGESIZE) : c->scale;
    *before = now;
    return c->value == AMOUNT || m->seconds > 0;
}

static void counter_add(nl_record *record, const counter *c, const char *name, uint64_t value, double seconds)
{
    if (c->value == RATE)
        add_rate(record, name, value, seconds);
    else
        nl_record_add_uint(record, name, value);
}

/*
 * Logs the fields of the first event as one record. For other events, logs each field that is not 0 as a separate
 * record. If the first field is an increase, the first measurement logs nothing. Returns false and sets the error if
 * this host lacks the numbers.
 */
static bool measure_counters(measurement *m, const sensor_field *fields, const counter *counters)
{
    counters_state *s = m->state;
    uint64_t values[FIELDS_MAX];
    bool has_value[FIELDS_MAX];
    size_t i;
    for (i = 0; i < FILE_COUNT; i++)
        s->texts[i].size = 0;
    for (i = 0; fields[i].event != NULL; i++) {
        int file = counters[i].file;
        bool good = s->texts[file].size > 0 || proc_read(files[file].path, &s->texts[file]);
        if (!good && i == 0)
            return false;
        has_value[i] = good && counter_measure(m, &counters[i], &s->before[i], &values[i]);
    }
    if (m->seconds <= 0 && counters[0].value != AMOUNT)
        return true;
    if (!has_value[0])
        return nl_error_false(NL_ERROR_SYSTEM, "%s: the kernel does not report \"%s\"", files[counters[0].file].path,
                              counters[0].key);
    nl_record *record = record_begin(m, fields[0].event);
    for (i = 0; fields[i].event != NULL && strcmp(fields[i].event, fields[0].event) == 0; i++)
        if (has_value[i])
            counter_add(record, &counters[i], fields[i].name, values[i], m->seconds);
    record_end(m);
    for (; fields[i].event != NULL; i++)
        if (has_value[i] && values[i] > 0) {
            counter_add(record_begin(m, fields[i].event), &counters[i], fields[i].name, values[i], m->seconds);
            record_end(m);
        }
    return true;
}

/* Defines a sensor from NAME_fields and NAME_counters. */
#define COUNTERS_SENSOR(sensor, description)                                                                           \
    static bool sensor##_measure(measurement *m)                                                                       \
    {                                                                                                                  \
        return measure_counters(m, sensor##_fields, sensor##_counters);                                                \
    }                                                                                                                  \
    const sensor_kind sensor##_sensor = {.name = #sensor,                                                              \
                                         .what = (description),                                                        \
                                         .arguments = "",                                                              \
                                         .is_default = true,                                                           \
                                         .fields = sensor##_fields,                                                    \
                                         .measure = sensor##_measure,                                                  \
                                         .state_size = sizeof(counters_state)}

/* ---- memory ---- */

static const sensor_field memory_fields[] = {
    {"MemoryFree", "MEM.TOTAL", "bytes", "memory that the kernel manages"},
    {"MemoryFree", "MEM.FREE", "bytes", "unused memory"},
    {"MemoryFree", "MEM.AVAILABLE", "bytes", "memory available without swapping"},
    {"MemoryFree", "MEM.BUFFERS", "bytes", "buffers of block devices"},
    {"MemoryFree", "MEM.CACHED", "bytes", "cached file content"},
    {"MemoryFree", "MEM.DIRTY", "bytes", "data to be written to disk"},
    {"MemoryFree", "MEM.WRITEBACK", "bytes", "data being written to disk"},
    {"MemoryFree", "MEM.ANONYMOUS", "bytes", "anonymous memory of processes"},
    {"MemoryFree", "MEM.MAPPED", "bytes", "files mapped by processes"},
    {"MemoryFree", "MEM.SHARED", "bytes", "shared memory and tmpfs"},
    {"MemoryFree", "MEM.SLAB", "bytes", "kernel objects"},
    {0},
};

static const counter memory_counters[] = {
    {AMOUNT, MEMINFO, "MemTotal:", 1024, NULL},     {AMOUNT, MEMINFO, "MemFree:", 1024, NULL},
    {AMOUNT, MEMINFO, "MemAvailable:", 1024, NULL}, {AMOUNT, MEMINFO, "Buffers:", 1024, NULL},
    {AMOUNT, MEMINFO, "Cached:", 1024, NULL},       {AMOUNT, MEMINFO, "Dirty:", 1024, NULL},
    {AMOUNT, MEMINFO, "Writeback:", 1024, NULL},    {AMOUNT, MEMINFO, "AnonPages:", 1024, NULL},
    {AMOUNT, MEMINFO, "Mapped:", 1024, NULL},       {AMOUNT, MEMINFO, "Shmem:", 1024, NULL},
    {AMOUNT, MEMINFO, "Slab:", 1024, NULL},
};

COUNTERS_SENSOR(memory, "the use of memory");

/* ---- swap ---- */

static const sensor_field swap_fields[] = {
    {"SwapUse", "SWAP.TOTAL", "bytes", "swap space"},
    {"SwapUse", "SWAP.FREE", "bytes", "unused swap space"},
    {"SwapUse", "SWAP.USED", "bytes", "used swap space"},
    {"SwapUse", "SWAP.IN", "bytes/s", "data read from swap space"},
    {"SwapUse", "SWAP.OUT", "bytes/s", "data written to swap space"},
    {0},
};

static const counter swap_counters[] = {
    {AMOUNT, MEMINFO, "SwapTotal:", 1024, NULL},
    {AMOUNT, MEMINFO, "SwapFree:", 1024, NULL},
    {AMOUNT, MEMINFO, "SwapTotal:", 1024, "SwapFree:"},
    {RATE, VMSTAT, "pswpin ", PAGES, NULL},
    {RATE, VMSTAT, "pswpout ", PAGES, NULL},
};

COUNTERS_SENSOR(swap, "the use of swap space");

/* ---- vm ---- */

static const sensor_field vm_fields[] = {
    {"VmActivity", "VM.FAULTS", "faults/s", "page faults, minor and major"},
    {"VmActivity", "VM.FAULTS.MAJOR", "faults/s", "page faults that read from disk"},
    {"VmActivity", "VM.PAGED.IN", "bytes/s", "data read from block devices"},
    {"VmActivity", "VM.PAGED.OUT", "bytes/s", "data written to block devices"},
    {"VmActivity", "VM.ALLOCATED", "pages/s", "pages allocated in the normal zone"},
    {"VmActivity", "VM.SCANNED", "pages/s", "pages scanned by kswapd because memory is scarce"},
    {"VmActivity", "VM.SCANNED.DIRECT", "pages/s", "pages scanned by processes that need memory immediately"},
    {"VmActivity", "VM.STOLEN", "pages/s", "pages reclaimed by kswapd"},
    {"VmActivity", "VM.OOM.KILLS", "processes", "processes newly killed for lack of memory"},
    {0},
};

static const counter vm_counters[] = {
    {RATE, VMSTAT, "pgfault ", 1, NULL},        {RATE, VMSTAT, "pgmajfault ", 1, NULL},
    {RATE, VMSTAT, "pgpgin ", 1024, NULL},      {RATE, VMSTAT, "pgpgout ", 1024, NULL},
    {RATE, VMSTAT, "pgalloc_normal ", 1, NULL}, {RATE, VMSTAT, "pgscan_kswapd ", 1, NULL},
    {RATE, VMSTAT, "pgscan_direct ", 1, NULL},  {RATE, VMSTAT, "pgsteal_kswapd ", 1, NULL},
    {RISE, VMSTAT, "oom_kill ", 1, NULL},
};

COUNTERS_SENSOR(vm, "the page faults and paging of this host");

/* ---- tcp ---- */

static const sensor_field tcp_fields[] = {
    {"TcpSegments", "TCP.RETRANS", "segments", "new retransmissions"},
    {"TcpSegments", "TCP.IN", "segments/s", "segments received"},
    {"TcpSegments", "TCP.OUT", "segments/s", "segments sent, not counting retransmissions"},
    {"TcpSegments", "TCP.IN.ERRORS", "segments", "new segments received with errors"},
    {"TcpSegments", "TCP.RESETS.OUT", "segments", "new segments sent with RST"},
    {"TcpSegments", "TCP.RESETS.IN", "connections", "established connections that were reset"},
    {"TcpSegments", "TCP.OPENED", "connections", "new connections that this host opened"},
    {"TcpSegments", "TCP.ACCEPTED", "connections", "new connections that other hosts opened"},
    {"TcpSegments", "TCP.FAILED", "connections", "new failures to connect"},
    {"TcpSegments", "TCP.ESTABLISHED", "connections", "established now"},
    {"TcpSegments", "TCP.LISTEN.OVERFLOWS", "connections", "new rejections because an accept queue was full"},
    {"TcpSegments", "TCP.LISTEN.DROPS", "connections", "new connections that a listener dropped"},
    {"TcpSegments", "TCP.TIMEOUTS", "timeouts", "new retransmission timeouts"},
    {"TcpRetransmit", "TCP.RETRANS", "segments",
     "new retransmissions; the sensor logs this event only if there were any"},
    {0},
};

static const counter tcp_counters[] = {
    {RISE, SNMP, "RetransSegs", 1, NULL},
    {RATE, SNMP, "InSegs", 1, NULL},
    {RATE, SNMP, "OutSegs", 1, NULL},
    {RISE, SNMP, "InErrs", 1, NULL},
    {RISE, SNMP, "OutRsts", 1, NULL},
    {RISE, SNMP, "EstabResets", 1, NULL},
    {RISE, SNMP, "ActiveOpens", 1, NULL},
    {RISE, SNMP, "PassiveOpens", 1, NULL},
    {RISE, SNMP, "AttemptFails", 1, NULL},
    {AMOUNT, SNMP, "CurrEstab", 1, NULL},
    {RISE, NETSTAT, "ListenOverflows", 1, NULL},
    {RISE, NETSTAT, "ListenDrops", 1, NULL},
    {RISE, NETSTAT, "TCPTimeouts", 1, NULL},
    {RISE, SNMP, "RetransSegs", 1, NULL},
};

COUNTERS_SENSOR(tcp, "the TCP segments, retransmissions, resets and dropped connections of this host");
