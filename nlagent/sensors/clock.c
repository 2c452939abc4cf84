/*
 * How far this host's clock is off: from chronyd by its own protocol (the command "tracking", over UDP to port 323 of
 * this host, as chrony's doc/ and candm.h have it, version 6), and from the kernel (adjtimex(2)) in any case.
 */
#include "config.h"

#include "sensors/sensor.h"

#include <arpa/inet.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>

enum {
    PORT = 323,
    PROTOCOL = 6,
    TRACKING = 33,
    TRACKING_REPLY = 5,
    ANSWER_MS = 200,
    HEAD = 28,
    REQUEST = 104,
    REPLY = 104
};

/* Where in the reply, behind its head, what stands; 32 bits each in network order, floats in chrony's own form. */
enum {
    REFERENCE = 0,
    STRATUM = 24,
    LEAP = 26,
    CORRECTION = 40,
    LAST_OFFSET = 44,
    RMS_OFFSET = 48,
    FREQUENCY = 52,
    SKEW = 60,
    ROOT_DELAY = 64,
    ROOT_DISPERSION = 68
};

typedef struct clock_state {
    uint32_t sequence;
} clock_state;

static uint32_t read_32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Seven bits of exponent and 25 of coefficient, both signed. */
static double read_float(const unsigned char *at)
{
    uint32_t bits = read_32(at);
    int exponent = (int)(bits >> 25), coefficient = (int)(bits & 0x1ffffff);
    if (exponent >= 1 << 6)
        exponent -= 1 << 7;
    if (coefficient >= 1 << 24)
        coefficient -= 1 << 25;
    return ldexp(coefficient, exponent - 25);
}

/* Asks chronyd on an open socket. False when it does not answer as is known. */
static bool ask(int fd, uint32_t sequence, unsigned char reply[REPLY])
{
    unsigned char request[REQUEST] = {PROTOCOL, 1, 0, 0, 0, TRACKING};
    const struct sockaddr_in chronyd = {
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    uint32_t number = htonl(sequence);
    memcpy(request + 8, &number, sizeof number);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (connect(fd, (const struct sockaddr *)&chronyd, sizeof chronyd) != 0 ||
        send(fd, request, sizeof request, 0) != (ssize_t)sizeof request || poll(&ready, 1, ANSWER_MS) != 1)
        return false;
    return recv(fd, reply, REPLY, 0) == REPLY && reply[0] == PROTOCOL && reply[1] == 2 && reply[5] == TRACKING &&
           reply[7] == TRACKING_REPLY && reply[8] == 0 && reply[9] == 0 && memcmp(reply + 16, &number, 4) == 0;
}

static void log_chrony(sensor_look *look)
{
    unsigned char reply[REPLY];
    clock_state *s = look->state;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && ask(fd, ++s->sequence, reply);
    if (fd >= 0)
        close(fd);
    if (!good)
        return;
    const unsigned char *at = reply + HEAD;
    nl_record *record = look_begin(look, "ClockTracking");
    double delay = read_float(at + ROOT_DELAY), dispersion = read_float(at + ROOT_DISPERSION);
    double offset = read_float(at + CORRECTION);
    nl_record_add_uint(record, "CLOCK.STRATUM", (uint64_t)at[STRATUM] << 8 | at[STRATUM + 1]);
    nl_record_add_uint(record, "CLOCK.LEAP", (uint64_t)at[LEAP] << 8 | at[LEAP + 1]);
    add_rounded(record, "CLOCK.OFFSET", offset * 1e6, 3);
    add_rounded(record, "CLOCK.OFFSET.LAST", read_float(at + LAST_OFFSET) * 1e6, 3);
    add_rounded(record, "CLOCK.OFFSET.RMS", read_float(at + RMS_OFFSET) * 1e6, 3);
    add_rounded(record, "CLOCK.FREQUENCY", read_float(at + FREQUENCY), 3);
    add_rounded(record, "CLOCK.SKEW", read_float(at + SKEW), 3);
    add_rounded(record, "CLOCK.ERROR", (fabs(offset) + dispersion + delay / 2) * 1e6, 3);
    look_end(look);
}

static bool look(sensor_look *look)
{
    struct timex t = {0};
    int state = adjtimex(&t);
    if (state < 0) {
        proc_set_error("adjtimex", "the kernel does not tell of its clock");
        return false;
    }
    double unit = t.status & STA_NANO ? 1e-3 : 1;
    nl_record *record = look_begin(look, "ClockKernel");
    nl_record_add_bool(record, "CLOCK.SYNCHRONIZED", state != TIME_ERROR && (t.status & STA_UNSYNC) == 0);
    add_rounded(record, "CLOCK.OFFSET", (double)t.offset * unit, 3);
    add_rounded(record, "CLOCK.ERROR", (double)t.maxerror, 0);
    add_rounded(record, "CLOCK.ERROR.ESTIMATED", (double)t.esterror, 0);
    add_rounded(record, "CLOCK.FREQUENCY", (double)t.freq / 65536, 3);
    look_end(look);
    log_chrony(look);
    return true;
}

static const sensor_field fields[] = {
    {"ClockKernel", "CLOCK.SYNCHRONIZED", "", "whether something keeps the clock right, as far as the kernel knows"},
    {"ClockKernel", "CLOCK.OFFSET", "us", "that the kernel is still to correct"},
    {"ClockKernel", "CLOCK.ERROR", "us", "at most, as was said to the kernel"},
    {"ClockKernel", "CLOCK.ERROR.ESTIMATED", "us", "as was said to the kernel"},
    {"ClockKernel", "CLOCK.FREQUENCY", "ppm", "by which the kernel corrects the clock's speed"},
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
                                  .look = look,
                                  .state_size = sizeof(clock_state)};
