/*
 * How far this host's clock is off: from the kernel in any case, and from chronyd where it runs (timekeeping/quality.h,
 * by which programs that log say the same of their hosts).
 */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include "base/clock_quality.h"

#include <poll.h>

enum { ANSWER_MS = 200 };

typedef struct clock_state {
    uint32_t number;
} clock_state;

/* Looks at chronyd by one of its two ways. Whether it answered. */
static bool log_chrony(sensor_look *look, bool own_socket)
{
    clock_state *s = look->state;
    int fd = nl_chrony_ask(++s->number, own_socket);
    if (fd < 0)
        return false;
    bool synchronized = true;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    nl_record *record = look_begin(look, NL_CLOCK_TRACKING);
    nl_chrony_answer answer =
        poll(&ready, 1, ANSWER_MS) == 1 ? nl_chrony_take(fd, s->number, record, &synchronized) : NL_CHRONY_NONE;
    nl_chrony_close(fd);
    if (answer != NL_CHRONY_ANSWERED)
        return false;
    if (!synchronized)
        nl_record_set_level(record, NL_WARNING);
    look_end(look);
    return true;
}

static bool clock_look(sensor_look *look)
{
    bool synchronized;
    nl_record *record = look_begin(look, NL_CLOCK_KERNEL);
    if (!nl_quality_add_kernel(record, &synchronized))
        return nl_error_false(NL_ERROR_SYSTEM, "adjtimex: the kernel does not tell of its clock");
    if (!synchronized)
        nl_record_set_level(record, NL_WARNING);
    look_end(look);
    if (!log_chrony(look, false))
        log_chrony(look, true);
    return true;
}

static const sensor_field fields[] = {
    {"ClockKernel", "CLOCK.SYNCHRONIZED", "", "whether something keeps the clock right, as far as the kernel knows"},
    {"ClockKernel", "CLOCK.OFFSET", "us", "that the kernel is still to correct"},
    {"ClockKernel", "CLOCK.ERROR", "us", "at most, as was said to the kernel"},
    {"ClockKernel", "CLOCK.ERROR.ESTIMATED", "us", "as was said to the kernel"},
    {"ClockKernel", "CLOCK.FREQUENCY", "ppm", "by which the kernel corrects the clock's speed"},
    {"ClockTracking", "CLOCK.SOURCE", "", "which server, or reference clock, chronyd goes by"},
    {"ClockTracking", "CLOCK.SYNCHRONIZED", "", "whether chronyd keeps the clock right"},
    {"ClockTracking", "CLOCK.STRATUM", "", "how many servers away the reference clock is"},
    {"ClockTracking", "CLOCK.LEAP", "", "0 as usual, 1 or 2 a leap second comes, 3 not synchronized"},
    {"ClockTracking", "CLOCK.OFFSET", "us", "of the system's clock from chronyd's estimate; positive: it is slow"},
    {"ClockTracking", "CLOCK.OFFSET.LAST", "us", "found by the latest measurement"},
    {"ClockTracking", "CLOCK.OFFSET.RMS", "us", "of measurements, on the long average"},
    {"ClockTracking", "CLOCK.FREQUENCY", "ppm", "by which the clock would be wrong, left alone"},
    {"ClockTracking", "CLOCK.SKEW", "ppm", "how far that may be wrong"},
    {"ClockTracking", "CLOCK.ERROR", "us", "that the clock has at most: offset, dispersion and half the delay"},
    {0},
};

const sensor_kind clock_sensor = {.name = "clock",
                                  .what = "the clock's offset and error: of the kernel, and of chronyd where it runs",
                                  .arguments = "",
                                  .is_default = true,
                                  .fields = fields,
                                  .look = clock_look,
                                  .state_size = sizeof(clock_state)};
