/* Reports the traffic on each network interface of this network namespace, from /proc/net/dev (proc_pid_net(5)). */
#include "config.h"

#include "sensors/sensor.h"

#include <stdio.h>
#include <string.h>

enum { IN, IN_PACKETS, IN_ERRORS, IN_DROPS, OUT = 8, OUT_PACKETS, OUT_ERRORS, OUT_DROPS, COLUMNS = 16 };

typedef struct network_state {
    nl_buffer text;
    counters counters;
} network_state;

static void measure_line(measurement *m, const char *line)
{
    network_state *s = m->state;
    uint64_t now[COLUMNS], rise[COLUMNS];
    char name[COUNTERS_KEY_SIZE];
    const char *colon = strchr(line, ':');
    if (colon == NULL || colon > line + strcspn(line, "\n"))
        return; /* the header of the table */
    line += strspn(line, " ");
    snprintf(name, sizeof name, "%.*s", (int)(colon - line), line);
    colon++;
    if (proc_numbers(&colon, now, COLUMNS) != COLUMNS || !counters_rise(&s->counters, name, now, COLUMNS, rise) ||
        m->seconds <= 0)
        return;
    nl_record *record = record_begin(m, "NetworkInterface");
    add_text(record, "NET.NAME", name);
    add_rate(record, "NET.IN", rise[IN], m->seconds);
    add_rate(record, "NET.OUT", rise[OUT], m->seconds);
    add_rate(record, "NET.IN.PACKETS", rise[IN_PACKETS], m->seconds);
    add_rate(record, "NET.OUT.PACKETS", rise[OUT_PACKETS], m->seconds);
    nl_record_add_uint(record, "NET.IN.ERRORS", rise[IN_ERRORS]);
    nl_record_add_uint(record, "NET.OUT.ERRORS", rise[OUT_ERRORS]);
    nl_record_add_uint(record, "NET.IN.DROPS", rise[IN_DROPS]);
    nl_record_add_uint(record, "NET.OUT.DROPS", rise[OUT_DROPS]);
    record_end(m);
}

static bool network_measure(measurement *m)
{
    network_state *s = m->state;
    if (!proc_read("/proc/self/net/dev", &s->text))
        return false;
    counters_begin(&s->counters);
    for (const char *line = s->text.data; line != NULL; line = proc_next_line(line))
        measure_line(m, line);
    return true;
}

static const sensor_field fields[] = {
    {"NetworkInterface", "NET.NAME", "", "name of the interface"},
    {"NetworkInterface", "NET.IN", "bytes/s", "data received"},
    {"NetworkInterface", "NET.OUT", "bytes/s", "data sent"},
    {"NetworkInterface", "NET.IN.PACKETS", "packets/s", "packets received"},
    {"NetworkInterface", "NET.OUT.PACKETS", "packets/s", "packets sent"},
    {"NetworkInterface", "NET.IN.ERRORS", "packets", "new packets received with errors"},
    {"NetworkInterface", "NET.OUT.ERRORS", "packets", "new packets not sent because of errors"},
    {"NetworkInterface", "NET.IN.DROPS", "packets", "new packets received and dropped"},
    {"NetworkInterface", "NET.OUT.DROPS", "packets", "new packets dropped before sending"},
    {0},
};

const sensor_kind network_sensor = {.name = "network",
                                    .what = "the traffic on each network interface",
                                    .arguments = "",
                                    .is_default = true,
                                    .fields = fields,
                                    .measure = network_measure,
                                    .state_size = sizeof(network_state)};
