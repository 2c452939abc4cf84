/* Reports the load and the number of tasks, from proc_loadavg(5). */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include <stdio.h>

typedef struct load_state {
    nl_buffer text;
} load_state;

static bool load_measure(measurement *m)
{
    load_state *s = m->state;
    double loads[3];
    unsigned runnable, all;
    if (!proc_read("/proc/loadavg", &s->text))
        return false;
    if (sscanf(s->text.data, "%lf %lf %lf %u/%u", &loads[0], &loads[1], &loads[2], &runnable, &all) != 5)
        return nl_error_false(NL_ERROR_SYSTEM, "/proc/loadavg: unknown format");
    nl_record *record = record_begin(m, "LoadAverage");
    nl_record_add_double(record, "LOAD.1", loads[0]);
    nl_record_add_double(record, "LOAD.5", loads[1]);
    nl_record_add_double(record, "LOAD.15", loads[2]);
    nl_record_add_uint(record, "LOAD.RUNNABLE", runnable);
    nl_record_add_uint(record, "LOAD.TASKS", all);
    record_end(m);
    return true;
}

static const sensor_field fields[] = {
    {"LoadAverage", "LOAD.1", "tasks",
     "1-minute average of the load, which is the number of tasks that run or wait for a processor or disk"},
    {"LoadAverage", "LOAD.5", "tasks", "5-minute average of the load"},
    {"LoadAverage", "LOAD.15", "tasks", "15-minute average of the load"},
    {"LoadAverage", "LOAD.RUNNABLE", "tasks", "tasks that are running or runnable now"},
    {"LoadAverage", "LOAD.TASKS", "tasks", "number of threads on this host"},
    {0},
};

const sensor_kind load_sensor = {.name = "load",
                                 .what = "the load and the number of tasks",
                                 .arguments = "",
                                 .is_default = true,
                                 .fields = fields,
                                 .measure = load_measure,
                                 .state_size = sizeof(load_state)};
