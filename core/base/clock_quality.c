#include "config.h"

#include "base/clock_quality.h"

#include "base/hash_bytes.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <unistd.h>

#define CHRONY_DIRECTORY "/run/chrony/"
#define CHRONY_SOCKET CHRONY_DIRECTORY "chronyd.sock"

enum {
    PORT = 323,
    PROTOCOL = 6,
    TRACKING = 33,
    TRACKING_REPLY = 5,
    HEAD = 28,
    REQUEST = 104,
    REPLY = 104,
    NOT_SYNCHRONIZED = 3, /* value of LEAP */
    SOURCE_SIZE = INET6_ADDRSTRLEN,
};

/*
 * Byte offsets in the reply, counted from the end of its header. Integers are in network byte order; floating-point
 * numbers have chrony's own 32-bit format.
 */
enum {
    REFERENCE = 0,
    ADDRESS = 4,
    FAMILY = 20, /* 1: IPv4; 2: IPv6; other values: REFERENCE is the name of a reference clock */
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

/* Rounds without libm. Does not round values of 9e12 or more, or -9e12 or less. */
void nl_quality_add(nl_record *record, const char *name, double value)
{
    double thousandths = value * 1e3 + (value < 0 ? -0.5 : 0.5);
    if (thousandths > -9e15 && thousandths < 9e15)
        value = (double)(int64_t)thousandths / 1e3;
    nl_record_add_double(record, name, value);
}

/*
 * Adds CLOCK.MACHINE, which is the boot ID. The kernel generates a random boot ID at each boot. Containers and network
 * namespaces have the same boot ID as their host, and the same clock.
 */
static void add_machine(nl_record *record)
{
    enum { BOOT_ID_SIZE = 36, DIGITS = 16 };
    char boot_id[BOOT_ID_SIZE], machine[DIGITS + 1];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (read(fd, boot_id, sizeof boot_id) == (ssize_t)sizeof boot_id) {
        snprintf(machine, sizeof machine, "%016llx", (unsigned long long)hash_bytes(0, boot_id, sizeof boot_id));
        nl_record_add_string(record, NL_CLOCK_MACHINE, machine, DIGITS);
    }
    close(fd);
}

bool nl_quality_add_kernel(nl_record *record, bool *synchronized)
{
    struct timex t = {0};
    int64_t before_ns = nl_time_now_ns();
    int state = ntp_adjtime(&t);
    int64_t after_ns = nl_time_now_ns();
    if (state < 0)
        return false;
    int64_t kernel_ns = t.time.tv_sec * NL_NS_PER_SECOND + t.time.tv_usec * (t.status & STA_NANO ? 1 : 1000);
    *synchronized = state != TIME_ERROR && (t.status & STA_UNSYNC) == 0;
    nl_record_add_bool(record, "CLOCK.SYNCHRONIZED", *synchronized);
    if (kernel_ns >= before_ns - 1000 &&
        kernel_ns <= after_ns) /* other times come from a clock that only the process has, as with libfaketime */
        add_machine(record);
    nl_quality_add(record, "CLOCK.OFFSET", (double)t.offset * (t.status & STA_NANO ? 1e-3 : 1));
    if (*synchronized) { /* if the clock is not synchronized, the kernel reports its default error of 16 s */
        nl_quality_add(record, "CLOCK.ERROR", (double)t.maxerror);
        nl_quality_add(record, "CLOCK.ERROR.ESTIMATED", (double)t.esterror);
    }
    nl_quality_add(record, "CLOCK.FREQUENCY", (double)t.freq / 65536);
    return true;
}

/* ---- chronyd ---- */

static uint32_t read_32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static unsigned read_16(const unsigned char *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

/* Reads a 32-bit number in chrony's format: a 7-bit exponent and a 25-bit coefficient, both signed. */
static double read_float(const unsigned char *at)
{
    uint32_t bits = read_32(at);
    int exponent = (int)(bits >> 25), coefficient = (int)(bits & 0x1ffffff);
    if (exponent >= 1 << 6)
        exponent -= 1 << 7;
    if (coefficient >= 1 << 24)
        coefficient -= 1 << 25;
    double value = coefficient;
    for (exponent -= 25; exponent > 0; exponent--)
        value *= 2;
    for (; exponent < 0; exponent++)
        value /= 2;
    return value;
}

static bool connect_udp(int fd)
{
    const struct sockaddr_in chronyd = {
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return connect(fd, (const struct sockaddr *)&chronyd, sizeof chronyd) == 0;
}

/*
 * Connects fd to chronyd's socket. First binds fd to a name in chronyd's directory, because chronyd sends its reply to
 * this name. Only root and chronyd's user can write to this directory.
 */
static bool connect_unix(int fd, uint32_t number)
{
    const struct sockaddr_un chronyd = {.sun_family = AF_UNIX, .sun_path = CHRONY_SOCKET};
    struct sockaddr_un ours = {.sun_family = AF_UNIX};
    snprintf(ours.sun_path, sizeof ours.sun_path, CHRONY_DIRECTORY "netlogger.%ld.%08x.sock", (long)getpid(), number);
    return bind(fd, (struct sockaddr *)&ours, sizeof ours) == 0 && chmod(ours.sun_path, 0666) == 0 &&
           connect(fd, (const struct sockaddr *)&chronyd, sizeof chronyd) == 0;
}

int nl_chrony_ask(uint32_t number, bool own_socket)
{
    if (own_socket && (access(CHRONY_DIRECTORY, W_OK | X_OK) != 0 || access(CHRONY_SOCKET, W_OK) != 0))
        return -1;
    int fd = socket(own_socket ? AF_UNIX : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unsigned char request[REQUEST] = {PROTOCOL, 1, 0, 0, 0, TRACKING};
    uint32_t network = htonl(number);
    memcpy(request + 8, &network, sizeof network);
    if (fd >= 0 && (own_socket ? connect_unix(fd, number) : connect_udp(fd)) &&
        send(fd, request, sizeof request, MSG_NOSIGNAL) == (ssize_t)sizeof request)
        return fd;
    if (fd >= 0)
        nl_chrony_close(fd);
    return -1;
}

void nl_chrony_close(int fd)
{
    struct sockaddr_un ours = {0};
    socklen_t size = sizeof ours;
    if (getsockname(fd, (struct sockaddr *)&ours, &size) == 0 && ours.sun_family == AF_UNIX &&
        strncmp(ours.sun_path, CHRONY_DIRECTORY, strlen(CHRONY_DIRECTORY)) == 0)
        unlink(ours.sun_path);
    close(fd);
}

/*
 * Sets name to the server's address, the name of a reference clock (such as GPS or PPS), or the reference ID in
 * hexadecimal.
 */
static void name_source(const unsigned char *at, char *name)
{
    unsigned family = read_16(at + FAMILY);
    const unsigned char *id = at + REFERENCE;
    bool printable = id[0] != '\0';
    for (unsigned i = 0, ended = 0; i < 4; i++) {
        ended |= id[i] == '\0';
        printable &= ended ? id[i] == '\0' : id[i] > ' ' && id[i] < 127;
    }
    if (family == 1 || family == 2)
        inet_ntop(family == 1 ? AF_INET : AF_INET6, at + ADDRESS, name, SOURCE_SIZE);
    else if (printable)
        snprintf(name, SOURCE_SIZE, "%.4s", (const char *)id);
    else
        snprintf(name, SOURCE_SIZE, "%08X", read_32(id));
}

static bool is_answer(const unsigned char *reply, uint32_t number)
{
    return reply[0] == PROTOCOL && reply[1] == 2 && read_16(reply + 4) == TRACKING &&
           read_16(reply + 6) == TRACKING_REPLY && read_16(reply + 8) == 0 && read_32(reply + 16) == number;
}

static void add_tracking(nl_record *record, const unsigned char *at)
{
    char source[SOURCE_SIZE] = "";
    name_source(at, source);
    double delay = read_float(at + ROOT_DELAY), dispersion = read_float(at + ROOT_DISPERSION);
    double offset = read_float(at + CORRECTION);
    nl_record_add_text(record, "CLOCK.SOURCE", source);
    nl_record_add_uint(record, "CLOCK.STRATUM", read_16(at + STRATUM));
    nl_record_add_uint(record, "CLOCK.LEAP", read_16(at + LEAP));
    nl_record_add_bool(record, "CLOCK.SYNCHRONIZED", read_16(at + LEAP) != NOT_SYNCHRONIZED);
    nl_quality_add(record, "CLOCK.OFFSET", offset * 1e6);
    nl_quality_add(record, "CLOCK.OFFSET.LAST", read_float(at + LAST_OFFSET) * 1e6);
    nl_quality_add(record, "CLOCK.OFFSET.RMS", read_float(at + RMS_OFFSET) * 1e6);
    nl_quality_add(record, "CLOCK.FREQUENCY", read_float(at + FREQUENCY));
    nl_quality_add(record, "CLOCK.SKEW", read_float(at + SKEW));
    nl_quality_add(record, "CLOCK.ERROR", ((offset < 0 ? -offset : offset) + dispersion + delay / 2) * 1e6);
}

nl_chrony_answer nl_chrony_take(int fd, uint32_t number, nl_record *record, bool *synchronized)
{
    unsigned char reply[REPLY + 1];
    for (;;) {
        ssize_t got = recv(fd, reply, sizeof reply, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN ? NL_CHRONY_NOT_YET : NL_CHRONY_NONE;
        if (got == REPLY && is_answer(reply, number))
            break;
    }
    add_tracking(record, reply + HEAD);
    *synchronized = read_16(reply + HEAD + LEAP) != NOT_SYNCHRONIZED;
    return NL_CHRONY_ANSWERED;
}
