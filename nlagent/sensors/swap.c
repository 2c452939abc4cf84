/* Swap space, and what goes there and back. proc_meminfo(5), proc_vmstat(5). */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include <unistd.h>

typedef struct swap_state {
    nl_buffer text;
    uint64_t pages[2];
} swap_state;

static bool swap_look(sensor_look *look)
{
    static const char *const space[2] = {"SwapTotal:", "SwapFree:"}, *const traffic[2] = {"pswpin ", "pswpout "};
    swap_state *s = look->state;
    uint64_t kilobytes[2], pages[2], page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (!proc_read("/proc/meminfo", &s->text))
        return false;
    if (proc_find_all(s->text.data, space, 2, kilobytes) < 2)
        return nl_error_false(NL_ERROR_SYSTEM, "/proc/meminfo: it says nothing of swap space");
    bool has_traffic = proc_read("/proc/vmstat", &s->text) && proc_find_all(s->text.data, traffic, 2, pages) == 2;
    nl_record *record = look_begin(look, "SwapUse");
    nl_record_add_uint(record, "SWAP.TOTAL", kilobytes[0] * 1024);
    nl_record_add_uint(record, "SWAP.FREE", kilobytes[1] * 1024);
    nl_record_add_uint(record, "SWAP.USED", (kilobytes[0] - kilobytes[1]) * 1024);
    if (has_traffic && look->seconds > 0) {
        add_rate(record, "SWAP.IN", proc_rise(s->pages[0], pages[0]) * page, look->seconds);
        add_rate(record, "SWAP.OUT", proc_rise(s->pages[1], pages[1]) * page, look->seconds);
    }
    for (int i = 0; i < 2 && has_traffic; i++)
        s->pages[i] = pages[i];
    look_end(look);
    return true;
}

static const sensor_field fields[] = {
    {"SwapUse", "SWAP.TOTAL", "bytes", "of swap space"}, {"SwapUse", "SWAP.FREE", "bytes", "of it free"},
    {"SwapUse", "SWAP.USED", "bytes", "of it used"},     {"SwapUse", "SWAP.IN", "bytes/s", "read back from it"},
    {"SwapUse", "SWAP.OUT", "bytes/s", "written to it"}, {0},
};

const sensor_kind swap_sensor = {.name = "swap",
                                 .what = "swap space, and what goes there and back",
                                 .arguments = "",
                                 .is_default = true,
                                 .fields = fields,
                                 .look = swap_look,
                                 .state_size = sizeof(swap_state)};
