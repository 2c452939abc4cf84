/* Reports the percentage of the time since the last measurement in each state, for all processors together and for each
 * processor. Reads the "cpu" lines of proc_stat(5). */
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

/* Measures the line "cpu3 1 2 3 ..." of a processor, or "cpu  1 2 3 ..." of all processors. Returns false if the line
 * is not of this form. */
static bool measure_line(measurement *m, const char *line)
{
    cpu_state *s = m->state;
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
    nl_record *record = record_begin(m, one ? "CpuOne" : "CpuLoad");
    if (one)
        nl_record_add_uint(record, "CPU.ID", strtoull(key + 3, NULL, 10));
    add_states(record, rise, all);
    record_end(m);
    return true;
}

static bool cpu_measure(measurement *m)
{
    cpu_state *s = m->state;
    bool any = false;
    if (!proc_read("/proc/stat", &s->text))
        return false;
    counters_begin(&s->counters);
    for (const char *line = s->text.data; line != NULL && strncmp(line, "cpu", 3) == 0; line = proc_next_line(line))
        any = measure_line(m, line) || any;
    if (!any)
        nl_error_set(NL_ERROR_SYSTEM, "/proc/stat: no \"cpu\" line");
    return any;
}

#define STATE_FIELDS(event)                                                                                            \
    {event, "CPU.BUSY", "%", "time in neither CPU.IDLE nor CPU.IOWAIT"}, {event, "CPU.USER", "%", "user code"},        \
        {event, "CPU.NICE", "%", "user code with lowered priority"}, {event, "CPU.SYS", "%", "kernel code"},           \
        {event, "CPU.IDLE", "%", "idle"}, {event, "CPU.IOWAIT", "%", "idle while waiting for I/O"},                    \
        {event, "CPU.IRQ", "%", "interrupts"}, {event, "CPU.SOFTIRQ", "%", "softirqs"},                                \
    {                                                                                                                  \
        event, "CPU.STEAL", "%", "time that the hypervisor used for other guests"                                      \
    }

static const sensor_field fields[] = {
    STATE_FIELDS("CpuLoad"),
    {"CpuOne", "CPU.ID", "", "number of the processor"},
    STATE_FIELDS("CpuOne"),
    {0},
};

const sensor_kind cpu_sensor = {.name = "cpu",
                                .what = "the time that processors spend in each state: CpuLoad for all processors "
                                        "together, and CpuOne for each processor",
                                .arguments = "",
                                .is_default = true,
                                .fields = fields,
                                .measure = cpu_measure,
                                .state_size = sizeof(cpu_state)};
