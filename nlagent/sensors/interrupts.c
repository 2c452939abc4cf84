/* Reports interrupts, context switches and softirqs from proc_stat(5) and, with each=yes, the interrupts of
 * proc_interrupts(5). */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { SOFT_KINDS = 10, ALL, SWITCHES, SOFT_ALL, SOFT_FIRST, VALUES = SOFT_FIRST + SOFT_KINDS };

static const char *const soft_names[SOFT_KINDS] = {
    "SOFTIRQ.HI",   "SOFTIRQ.TIMER",   "SOFTIRQ.NET.TX", "SOFTIRQ.NET.RX",  "SOFTIRQ.BLOCK",
    "SOFTIRQ.POLL", "SOFTIRQ.TASKLET", "SOFTIRQ.SCHED",  "SOFTIRQ.HRTIMER", "SOFTIRQ.RCU"};

typedef struct interrupts_state {
    nl_buffer text;
    uint64_t values[VALUES];
    bool each;
    counters counters;
} interrupts_state;

static bool interrupts_open(void *state, const sensor_spec *spec)
{
    const char *each = spec_argument(spec, "each");
    ((interrupts_state *)state)->each = each != NULL && strcmp(each, "yes") == 0;
    if (each == NULL || strcmp(each, "yes") == 0 || strcmp(each, "no") == 0)
        return true;
    return nl_error_false(NL_ERROR_INVALID, "expected each=yes or each=no");
}

static void log_all(measurement *m, const uint64_t *rise)
{
    nl_record *record = record_begin(m, "InterruptRate");
    add_rate(record, "IRQ.ALL", rise[ALL], m->seconds);
    add_rate(record, "SWITCHES", rise[SWITCHES], m->seconds);
    add_rate(record, "SOFTIRQ.ALL", rise[SOFT_ALL], m->seconds);
    for (int i = 0; i < SOFT_KINDS; i++)
        add_rate(record, soft_names[i], rise[SOFT_FIRST + i], m->seconds);
    record_end(m);
}

/* Measures a line such as "  24:   12   3  PCI-MSI ... virtio0-config". */
static void measure_line(measurement *m, const char *line)
{
    interrupts_state *s = m->state;
    uint64_t sum = 0, one, rise;
    char name[COUNTERS_KEY_SIZE], device[80] = "";
    const char *colon = strchr(line, ':'), *end = line + strcspn(line, "\n");
    line += strspn(line, " ");
    if (colon == NULL || colon > end)
        return;
    snprintf(name, sizeof name, "%.*s", (int)(colon - line), line);
    colon++;
    while (proc_numbers(&colon, &one, 1) == 1)
        sum += one;
    if (!counters_rise(&s->counters, name, &sum, 1, &rise) || rise == 0 || m->seconds <= 0)
        return;
    colon += strspn(colon, " ");
    snprintf(device, sizeof device, "%.*s", (int)(colon < end ? end - colon : 0), colon);
    nl_record *record = record_begin(m, "InterruptLine");
    add_text(record, "IRQ.NAME", name);
    add_rate(record, "IRQ.RATE", rise, m->seconds);
    add_text(record, "IRQ.DEVICE", device);
    record_end(m);
}

static bool interrupts_measure(measurement *m)
{
    interrupts_state *s = m->state;
    uint64_t now[VALUES] = {0}, rise[VALUES];
    if (!proc_read("/proc/stat", &s->text))
        return false;
    const char *soft = strstr(s->text.data, "\nsoftirq ");
    if (!proc_find(s->text.data, "intr ", &now[ALL]) || !proc_find(s->text.data, "ctxt ", &now[SWITCHES]))
        return nl_error_false(NL_ERROR_SYSTEM, "/proc/stat: no \"intr\" or \"ctxt\" line");
    if (soft != NULL) {
        soft += strlen("\nsoftirq ");
        proc_numbers(&soft, &now[SOFT_ALL], SOFT_KINDS + 1);
    }
    for (int i = ALL; i < VALUES; i++)
        rise[i] = proc_rise(s->values[i], now[i]);
    memcpy(s->values, now, sizeof now);
    if (m->seconds > 0)
        log_all(m, rise);
    if (s->each && proc_read("/proc/interrupts", &s->text)) {
        counters_begin(&s->counters);
        for (const char *line = s->text.data; line != NULL; line = proc_next_line(line))
            measure_line(m, line);
    }
    return true;
}

static const sensor_field fields[] = {
    {"InterruptRate", "IRQ.ALL", "interrupts/s", "hardware interrupts"},
    {"InterruptRate", "SWITCHES", "switches/s", "context switches"},
    {"InterruptRate", "SOFTIRQ.ALL", "softirqs/s", "all kinds"},
    {"InterruptRate", "SOFTIRQ.HI", "softirqs/s", "urgent tasklets"},
    {"InterruptRate", "SOFTIRQ.TIMER", "softirqs/s", "timers"},
    {"InterruptRate", "SOFTIRQ.NET.TX", "softirqs/s", "packets sent"},
    {"InterruptRate", "SOFTIRQ.NET.RX", "softirqs/s", "packets received"},
    {"InterruptRate", "SOFTIRQ.BLOCK", "softirqs/s", "block devices"},
    {"InterruptRate", "SOFTIRQ.POLL", "softirqs/s", "polled devices"},
    {"InterruptRate", "SOFTIRQ.TASKLET", "softirqs/s", "tasklets"},
    {"InterruptRate", "SOFTIRQ.SCHED", "softirqs/s", "load balancing by the scheduler"},
    {"InterruptRate", "SOFTIRQ.HRTIMER", "softirqs/s", "high-resolution timers"},
    {"InterruptRate", "SOFTIRQ.RCU", "softirqs/s", "read-copy-update"},
    {"InterruptLine", "IRQ.NAME", "", "number or short name of the interrupt, as in /proc/interrupts"},
    {"InterruptLine", "IRQ.RATE", "interrupts/s", "interrupts on all processors"},
    {"InterruptLine", "IRQ.DEVICE", "", "interrupt controller and devices, as in /proc/interrupts"},
    {0},
};

const sensor_kind interrupts_sensor = {.name = "interrupts",
                                       .what = "the rates of interrupts, context switches and softirqs",
                                       .arguments = " each ",
                                       .arguments_help =
                                           "each=yes (also log InterruptLine for each line that had interrupts)",
                                       .is_default = true,
                                       .fields = fields,
                                       .open = interrupts_open,
                                       .measure = interrupts_measure,
                                       .state_size = sizeof(interrupts_state)};
