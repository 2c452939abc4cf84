/* What memory there is and what is free. proc_meminfo(5). */
#include "config.h"

#include "sensors/sensor.h"

typedef struct memory_state {
    nl_buffer text;
} memory_state;

static sample_result sample(void *state, double seconds, nl_record *record, const char **extra)
{
    (void)seconds, (void)extra;
    memory_state *s = state;
    if (!proc_read("/proc/meminfo", &s->text))
        return SAMPLE_FAILED;
    static const struct {
        const char *field;
        const char *line;
    } fields[] = {{"MEM.AVAILABLE", "MemAvailable:"}, {"MEM.FREE", "MemFree:"},   {"MEM.TOTAL", "MemTotal:"},
                  {"MEM.CACHED", "Cached:"},          {"SWAP.FREE", "SwapFree:"}, {"SWAP.TOTAL", "SwapTotal:"}};
    bool any = false;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        uint64_t kilobytes;
        if (!proc_find(s->text.data, fields[i].line, &kilobytes))
            continue;
        nl_record_add_uint(record, fields[i].field, kilobytes * 1024);
        any = true;
    }
    if (!any)
        proc_set_error("/proc/meminfo", "none of the lines that are known is there");
    return any ? SAMPLE_DONE : SAMPLE_FAILED;
}

const sensor_kind memory_sensor = {"memory", "MemoryFree",
                                   "MEM.AVAILABLE MEM.FREE MEM.TOTAL MEM.CACHED SWAP.FREE SWAP.TOTAL: bytes", sample,
                                   sizeof(memory_state)};
