/* Reports the time that tasks wait for processors, memory and I/O (Documentation/accounting/psi.rst in Linux). */
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

/* Adds the fields of a line such as "some avg10=0.00 avg60=0.00 avg300=0.00 total=0". */
static void add_line(measurement *m, const char *text, const char *kind, const char *prefix, uint64_t *before_us)
{
    const char *line = strstr(text, kind);
    double averages[3];
    uint64_t total_us;
    char name[24];
    if (line == NULL || sscanf(line + strlen(kind), " avg10=%lf avg60=%lf avg300=%lf total=%" SCNu64, &averages[0],
                               &averages[1], &averages[2], &total_us) != 4)
        return;
    if (m->seconds > 0)
        add_rounded(m->record, prefix, (double)proc_rise(*before_us, total_us) / m->seconds / 1e4, 2);
    *before_us = total_us;
    for (int i = 0; i < 3; i++) {
        static const char *const ends[] = {".10", ".60", ".300"};
        snprintf(name, sizeof name, "%s%s", prefix, ends[i]);
        nl_record_add_double(m->record, name, averages[i]);
    }
}

static bool pressure_measure(measurement *m)
{
    pressure_state *s = m->state;
    bool any = false;
    for (int i = 0; i < RESOURCES; i++) {
        char path[40];
        snprintf(path, sizeof path, "/proc/pressure/%s", resources[i]);
        if (!proc_read(path, &s->text))
            continue;
        nl_record *record = record_begin(m, "Pressure");
        add_text(record, "PSI.RESOURCE", resources[i]);
        add_line(m, s->text.data, "some", "PSI.SOME", &s->total_us[i][0]);
        add_line(m, s->text.data, "full", "PSI.FULL", &s->total_us[i][1]);
        record_end(m);
        any = true;
    }
    return any;
}

static const sensor_field fields[] = {
    {"Pressure", "PSI.RESOURCE", "", "cpu, memory or io"},
    {"Pressure", "PSI.SOME", "%", "share of the time since the previous record in which at least one task waited"},
    {"Pressure", "PSI.SOME.10", "%", "average of PSI.SOME over 10 s"},
    {"Pressure", "PSI.SOME.60", "%", "average of PSI.SOME over 1 minute"},
    {"Pressure", "PSI.SOME.300", "%", "average of PSI.SOME over 5 minutes"},
    {"Pressure", "PSI.FULL", "%", "share of the time since the previous record in which all tasks waited"},
    {"Pressure", "PSI.FULL.10", "%", "average of PSI.FULL over 10 s"},
    {"Pressure", "PSI.FULL.60", "%", "average of PSI.FULL over 1 minute"},
    {"Pressure", "PSI.FULL.300", "%", "average of PSI.FULL over 5 minutes"},
    {0},
};

const sensor_kind pressure_sensor = {.name = "pressure",
                                     .what = "the time that tasks wait for processors, memory and I/O",
                                     .arguments = "",
                                     .is_default = true,
                                     .fields = fields,
                                     .measure = pressure_measure,
                                     .state_size = sizeof(pressure_state)};
