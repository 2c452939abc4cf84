/* Where the processors' time went since the last look, in percent of it, of all and of each. proc_stat(5), the lines
 * "cpu". */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, STATES };

typedef struct cpu_state {
    nl_buffer text;
    counters counters;
} cpu_state;

static void add_states(nl_record *record, const uint64_t rise[STATES], uint64_t all)
{
    static const char *const names[STATES] = {"CPU.USER",   "CPU.NICE", "CPU.SYS",     "CPU.IDLE",
                                              "CPU.IOWAIT", "CPU.IRQ",  "CPU.SOFTIRQ", "CPU.STEAL"};
    double percent = 100.0 / (double)all;
    add_rounded(record, "CPU.BUSY", (double)(all - rise[IDLE] - rise[IOWAIT]) * percent, 2);
    for (int i = 0; i < STATES; i++)
        add_rounded(record, names[i], (double)rise[i] * percent, 2);
}

/* A line "cpu3 1 2 3 ...", or "cpu  1 2 3 ..." of all. */
static bool look_at_line(sensor_look *look, const char *line)
{
    cpu_state *s = look->state;
    uint64_t now[STATES] = {0}, rise[STATES], all = 0;
    char key[16];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(line, " "), line);
    const char *at = line + strlen(key);
    if (proc_numbers(&at, now, STATES) <= IOWAIT)
        return false;
    if (!counters_rise(&s->counters, key, now, STATES, rise))
        return true;
    for (int i = 0; i < STATES; i++)
        all += rise[i];
    if (all == 0)
        return true;
    bool one = key[3] != '\0';
    nl_record *record = look_begin(look, one ? "CpuOne" : "CpuLoad");
    if (one)
        nl_record_add_uint(record, "CPU.ID", strtoull(key + 3, NULL, 10));
    add_states(record, rise, all);
    look_end(look);
    return true;
}

static bool cpu_look(sensor_look *look)
{
    cpu_state *s = look->state;
    bool any = false;
    if (!proc_read("/proc/stat", &s->text))
        return false;
    counters_begin(&s->counters);
    for (const char *line = s->text.data; line != NULL && strncmp(line, "cpu", 3) == 0; line = proc_next_line(line))
        any = look_at_line(look, line) || any;
    if (!any)
        nl_error_set(NL_ERROR_SYSTEM, "/proc/stat: there is no line of the processors' times");
    return any;
}

#define STATE_FIELDS(event)                                                                                            \
    {event, "CPU.BUSY", "%", "all but idle and waiting for I/O"}, {event, "CPU.USER", "%", "user code"},               \
        {event, "CPU.NICE", "%", "user code of lowered priority"}, {event, "CPU.SYS", "%", "the kernel"},              \
        {event, "CPU.IDLE", "%", "nothing to do"}, {event, "CPU.IOWAIT", "%", "idle while I/O was waited for"},        \
        {event, "CPU.IRQ", "%", "interrupts"}, {event, "CPU.SOFTIRQ", "%", "what interrupts left to be done"},         \
    {                                                                                                                  \
        event, "CPU.STEAL", "%", "taken by the hypervisor for others"                                                  \
    }

static const sensor_field fields[] = {
    STATE_FIELDS("CpuLoad"),
    {"CpuOne", "CPU.ID", "", "number of the processor"},
    STATE_FIELDS("CpuOne"),
    {0},
};

const sensor_kind cpu_sensor = {.name = "cpu",
                                .what = "where the processors' time goes: CpuLoad of all, CpuOne of each",
                                .arguments = "",
                                .is_default = true,
                                .fields = fields,
                                .look = cpu_look,
                                .state_size = sizeof(cpu_state)};
