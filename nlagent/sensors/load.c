/* How many tasks want to run. proc_loadavg(5). */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include <stdio.h>

typedef struct load_state {
    nl_buffer text;
} load_state;

static bool load_look(sensor_look *look)
{
    load_state *s = look->state;
    double loads[3];
    unsigned runnable, all;
    if (!proc_read("/proc/loadavg", &s->text))
        return false;
    if (sscanf(s->text.data, "%lf %lf %lf %u/%u", &loads[0], &loads[1], &loads[2], &runnable, &all) != 5)
        return nl_error_false(NL_ERROR_SYSTEM, "/proc/loadavg: it is not as it is known");
    nl_record *record = look_begin(look, "LoadAverage");
    nl_record_add_double(record, "LOAD.1", loads[0]);
    nl_record_add_double(record, "LOAD.5", loads[1]);
    nl_record_add_double(record, "LOAD.15", loads[2]);
    nl_record_add_uint(record, "LOAD.RUNNABLE", runnable);
    nl_record_add_uint(record, "LOAD.TASKS", all);
    look_end(look);
    return true;
}

static const sensor_field fields[] = {
    {"LoadAverage", "LOAD.1", "tasks", "that run or wait, on the average of 1 minute"},
    {"LoadAverage", "LOAD.5", "tasks", "the same, of 5 minutes"},
    {"LoadAverage", "LOAD.15", "tasks", "the same, of 15 minutes"},
    {"LoadAverage", "LOAD.RUNNABLE", "tasks", "that run or could, now"},
    {"LoadAverage", "LOAD.TASKS", "tasks", "threads that there are, now"},
    {0},
};

const sensor_kind load_sensor = {.name = "load",
                                 .what = "how many tasks want to run",
                                 .arguments = "",
                                 .is_default = true,
                                 .fields = fields,
                                 .look = load_look,
                                 .state_size = sizeof(load_state)};
