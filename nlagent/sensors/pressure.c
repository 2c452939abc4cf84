/* How long tasks had to wait for processors, memory and I/O. The kernel's Documentation/accounting/psi.rst. */
#include "config.h"

#include "sensors/sensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RESOURCES = 3 };
static const char *const resources[RESOURCES] = {"cpu", "memory", "io"};

typedef struct pressure_state {
    nl_buffer text;
    uint64_t total_us[RESOURCES][2];
} pressure_state;

/* A line "some avg10=0.00 avg60=0.00 avg300=0.00 total=0". */
static void add_line(sensor_look *look, const char *text, const char *kind, const char *prefix, uint64_t *before_us)
{
    const char *line = strstr(text, kind);
    double averages[3];
    uint64_t total_us;
    char name[24];
    if (line == NULL || sscanf(line + strlen(kind), " avg10=%lf avg60=%lf avg300=%lf total=%" SCNu64, &averages[0],
                               &averages[1], &averages[2], &total_us) != 4)
        return;
    if (look->seconds > 0)
        add_rounded(look->record, prefix, (double)proc_rise(*before_us, total_us) / look->seconds / 1e4, 2);
    *before_us = total_us;
    for (int i = 0; i < 3; i++) {
        static const char *const ends[] = {".10", ".60", ".300"};
        snprintf(name, sizeof name, "%s%s", prefix, ends[i]);
        nl_record_add_double(look->record, name, averages[i]);
    }
}

static bool pressure_look(sensor_look *look)
{
    pressure_state *s = look->state;
    bool any = false;
    for (int i = 0; i < RESOURCES; i++) {
        char path[40];
        snprintf(path, sizeof path, "/proc/pressure/%s", resources[i]);
        if (!proc_read(path, &s->text))
            continue;
        nl_record *record = look_begin(look, "Pressure");
        add_text(record, "PSI.RESOURCE", resources[i]);
        add_line(look, s->text.data, "some", "PSI.SOME", &s->total_us[i][0]);
        add_line(look, s->text.data, "full", "PSI.FULL", &s->total_us[i][1]);
        look_end(look);
        any = true;
    }
    return any;
}

static const sensor_field fields[] = {
    {"Pressure", "PSI.RESOURCE", "", "cpu, memory or io"},
    {"Pressure", "PSI.SOME", "%", "of the time since the record before that some task waited for it"},
    {"Pressure", "PSI.SOME.10", "%", "the same, of the last 10 seconds"},
    {"Pressure", "PSI.SOME.60", "%", "the same, of the last minute"},
    {"Pressure", "PSI.SOME.300", "%", "the same, of the last 5 minutes"},
    {"Pressure", "PSI.FULL", "%", "of the time since the record before that all tasks waited for it"},
    {"Pressure", "PSI.FULL.10", "%", "the same, of the last 10 seconds"},
    {"Pressure", "PSI.FULL.60", "%", "the same, of the last minute"},
    {"Pressure", "PSI.FULL.300", "%", "the same, of the last 5 minutes"},
    {0},
};

const sensor_kind pressure_sensor = {.name = "pressure",
                                     .what = "how long tasks had to wait for processors, memory and I/O",
                                     .arguments = "",
                                     .is_default = true,
                                     .fields = fields,
                                     .look = pressure_look,
                                     .state_size = sizeof(pressure_state)};
