/* What network interfaces of this network namespace carry. proc_pid_net(5), /proc/net/dev. */
#include "config.h"

#include "sensors/sensor.h"

#include <stdio.h>
#include <string.h>

enum { IN, IN_PACKETS, IN_ERRORS, IN_DROPS, OUT = 8, OUT_PACKETS, OUT_ERRORS, OUT_DROPS, COLUMNS = 16 };

typedef struct network_state {
    nl_buffer text;
    counters counters;
} network_state;

static void look_at_line(sensor_look *look, const char *line)
{
    network_state *s = look->state;
    uint64_t now[COLUMNS], rise[COLUMNS];
    char name[COUNTERS_KEY];
    const char *colon = strchr(line, ':');
    if (colon == NULL || colon > line + strcspn(line, "\n"))
        return; /* the table's head */
    line += strspn(line, " ");
    snprintf(name, sizeof name, "%.*s", (int)(colon - line), line);
    colon++;
    if (proc_numbers(&colon, now, COLUMNS) != COLUMNS || !counters_rise(&s->counters, name, now, COLUMNS, rise) ||
        look->seconds <= 0)
        return;
    nl_record *record = look_begin(look, "NetworkInterface");
    add_text(record, "NET.NAME", name);
    add_rate(record, "NET.IN", rise[IN], look->seconds);
    add_rate(record, "NET.OUT", rise[OUT], look->seconds);
    add_rate(record, "NET.IN.PACKETS", rise[IN_PACKETS], look->seconds);
    add_rate(record, "NET.OUT.PACKETS", rise[OUT_PACKETS], look->seconds);
    nl_record_add_uint(record, "NET.IN.ERRORS", rise[IN_ERRORS]);
    nl_record_add_uint(record, "NET.OUT.ERRORS", rise[OUT_ERRORS]);
    nl_record_add_uint(record, "NET.IN.DROPS", rise[IN_DROPS]);
    nl_record_add_uint(record, "NET.OUT.DROPS", rise[OUT_DROPS]);
    look_end(look);
}

static bool network_look(sensor_look *look)
{
    network_state *s = look->state;
    if (!proc_read("/proc/self/net/dev", &s->text))
        return false;
    counters_begin(&s->counters);
    for (const char *line = s->text.data; line != NULL; line = proc_next_line(line))
        look_at_line(look, line);
    return true;
}

static const sensor_field fields[] = {
    {"NetworkInterface", "NET.NAME", "", "of the interface"},
    {"NetworkInterface", "NET.IN", "bytes/s", "received"},
    {"NetworkInterface", "NET.OUT", "bytes/s", "sent"},
    {"NetworkInterface", "NET.IN.PACKETS", "packets/s", "received"},
    {"NetworkInterface", "NET.OUT.PACKETS", "packets/s", "sent"},
    {"NetworkInterface", "NET.IN.ERRORS", "packets", "received wrong since the record before"},
    {"NetworkInterface", "NET.OUT.ERRORS", "packets", "not sent for an error since the record before"},
    {"NetworkInterface", "NET.IN.DROPS", "packets", "received and dropped since the record before"},
    {"NetworkInterface", "NET.OUT.DROPS", "packets", "dropped instead of sent since the record before"},
    {0},
};

const sensor_kind network_sensor = {.name = "network",
                                    .what = "what each network interface carries",
                                    .arguments = "",
                                    .is_default = true,
                                    .fields = fields,
                                    .look = network_look,
                                    .state_size = sizeof(network_state)};
