/*
 * Reads the error of this host's clock from the kernel and, if chronyd is running, from chronyd. Programs that use
 * libnetlogger log the same values (base/clock_quality.h).
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

/*
 * Queries chronyd over its Unix socket, or over UDP if own_socket is false. Logs the reply. Returns whether chronyd
 * replied.
 */
static bool log_chrony(measurement *m, bool own_socket)
{
    clock_state *s = m->state;
    int fd = nl_chrony_ask(++s->number, own_socket);
    if (fd < 0)
        return false;
    bool synchronized = true;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    nl_record *record = record_begin(m, NL_CLOCK_TRACKING);
    nl_chrony_answer answer =
        poll(&ready, 1, ANSWER_MS) == 1 ? nl_chrony_take(fd, s->number, record, &synchronized) : NL_CHRONY_NONE;
    nl_chrony_close(fd);
    if (answer != NL_CHRONY_ANSWERED)
        return false;
    if (!synchronized)
        nl_record_set_level(record, NL_WARNING);
    record_end(m);
    return true;
}

static bool clock_measure(measurement *m)
{
    bool synchronized;
    nl_record *record = record_begin(m, NL_CLOCK_KERNEL);
    if (!nl_quality_add_kernel(record, &synchronized))
        return nl_error_false(NL_ERROR_SYSTEM, "adjtimex: the kernel does not report its clock's quality");
    if (!synchronized)
        nl_record_set_level(record, NL_WARNING);
    record_end(m);
    if (!log_chrony(m, false))
        log_chrony(m, true);
    return true;
}

static const sensor_field fields[] = {
    {"ClockKernel", "CLOCK.SYNCHRONIZED", "", "whether a program synchronizes the clock, according to the kernel"},
    {"ClockKernel", "CLOCK.MACHINE", "", "identity of the clock; hosts that share a clock have the same identity"},
    {"ClockKernel", "CLOCK.OFFSET", "us", "offset that the kernel is still correcting"},
    {"ClockKernel", "CLOCK.ERROR", "us", "maximum error, as set by the time daemon; only if synchronized"},
    {"ClockKernel", "CLOCK.ERROR.ESTIMATED", "us", "estimated error, as set by the time daemon; only if synchronized"},
    {"ClockKernel", "CLOCK.FREQUENCY", "ppm", "correction of the clock's speed"},
    {"ClockTracking", "CLOCK.SOURCE", "", "server or reference clock that chronyd uses"},
    {"ClockTracking", "CLOCK.SYNCHRONIZED", "", "whether chronyd synchronizes the clock"},
    {"ClockTracking", "CLOCK.STRATUM", "", "number of servers between this host and the reference clock, plus 1"},
    {"ClockTracking", "CLOCK.LEAP", "", "0: normal; 1 or 2: leap second announced; 3: not synchronized"},
    {"ClockTracking", "CLOCK.OFFSET", "us",
     "difference from chronyd's estimate; a positive value means that the clock is slow"},
    {"ClockTracking", "CLOCK.OFFSET.LAST", "us", "offset of the latest measurement"},
    {"ClockTracking", "CLOCK.OFFSET.RMS", "us", "long-term average of measured offsets"},
    {"ClockTracking", "CLOCK.FREQUENCY", "ppm", "error that the clock's speed would have without corrections"},
    {"ClockTracking", "CLOCK.SKEW", "ppm", "uncertainty of the frequency"},
    {"ClockTracking", "CLOCK.ERROR", "us",
     "maximum error, which is the sum of the offset, the dispersion and half of the delay"},
    {0},
};

const sensor_kind clock_sensor = {.name = "clock",
                                  .what =
                                      "the offset and error of the clock, from the kernel, and from chronyd if it runs",
                                  .arguments = "",
                                  .is_default = true,
                                  .fields = fields,
                                  .measure = clock_measure,
                                  .state_size = sizeof(clock_state)};
