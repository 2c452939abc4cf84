/* Where the processors' time went since the last look, in percent of all of it. proc_stat(5), the line "cpu". */
#include "config.h"

#include "sensors/sensor.h"

#include <stdio.h>
#include <string.h>

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, STATES };

typedef struct cpu_state {
    nl_buffer text;
    uint64_t ticks[STATES];
} cpu_state;

static sample_result sample(void *state, double seconds, nl_record *record, const char **extra)
{
    (void)extra;
    cpu_state *s = state;
    uint64_t now[STATES] = {0}, rise[STATES], all = 0;
    if (!proc_read("/proc/stat", &s->text))
        return SAMPLE_FAILED;
    if (sscanf(s->text.data, "cpu %lu %lu %lu %lu %lu %lu %lu %lu", &now[0], &now[1], &now[2], &now[3], &now[4],
               &now[5], &now[6], &now[7]) < IOWAIT) {
        proc_set_error("/proc/stat", "there is no line of the processors' times");
        return SAMPLE_FAILED;
    }
    for (int i = 0; i < STATES; i++) {
        rise[i] = proc_rise(s->ticks[i], now[i]);
        all += rise[i];
    }
    memcpy(s->ticks, now, sizeof now);
    if (seconds <= 0 || all == 0)
        return SAMPLE_NOTHING;
    double percent = 100.0 / (double)all;
    const struct {
        const char *name;
        uint64_t ticks;
    } fields[] = {
        {"CPU.BUSY", all - rise[IDLE] - rise[IOWAIT]},
        {"CPU.USER", rise[USER] + rise[NICE]},
        {"CPU.SYS", rise[SYSTEM]},
        {"CPU.IOWAIT", rise[IOWAIT]},
        {"CPU.IRQ", rise[IRQ] + rise[SOFTIRQ]},
        {"CPU.STEAL", rise[STEAL]},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        nl_record_add_double(record, fields[i].name,
                             (double)(int64_t)((double)fields[i].ticks * percent * 100 + 0.5) / 100);
    return SAMPLE_DONE;
}

const sensor_kind cpu_sensor = {
    "cpu", "CpuLoad", "CPU.BUSY CPU.USER CPU.SYS CPU.IOWAIT CPU.IRQ CPU.STEAL: percent of all processors' time", sample,
    sizeof(cpu_state)};
