/*
 * path_emulator: a network path between network namespaces, for kernels without netem. It makes a TUN device in each
 * namespace that it is told, and moves packets between them through modelled paths (path.h), one for each device that
 * packets come out of. Only root may. When it is ended, the devices go, and it says what became of the packets.
 */
#define _GNU_SOURCE 1

#include "path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { ENDS_MAX = 64, PACKET_MAX = 65536, BATCH = 64 };

typedef struct end {
    char *name; /* of the namespace; "" for the one it was started in */
    char *device;
    uint32_t network, mask; /* whose packets come out there: IPv4, host order */
    int fd;
    path *way; /* to it */
    uint64_t refused;
} end;

typedef struct emulator {
    path_settings settings;
    end ends[ENDS_MAX];
    size_t count;
    uint64_t astray; /* packets for nobody */
} emulator;

static volatile sig_atomic_t stopping;

static void on_stop(int signal)
{
    (void)signal;
    stopping = 1;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- devices ---- */

static bool path_emulator_fail(const end *e, const char *what)
{
    fprintf(stderr, "path_emulator: %s:%s: %s: %s\n", e->name, e->device, what, strerror(errno));
    return false;
}

/* A device belongs to the namespace in which /dev/net/tun was opened. */
static bool open_device(end *e)
{
    char place[256];
    snprintf(place, sizeof place, strchr(e->name, '/') != NULL ? "%s" : "/run/netns/%s", e->name);
    if (e->name[0] != '\0') {
        int space = open(place, O_RDONLY | O_CLOEXEC);
        if (space < 0)
            return path_emulator_fail(e, place);
        int result = setns(space, CLONE_NEWNET);
        close(space);
        if (result != 0)
            return path_emulator_fail(e, "enter the namespace");
    }
    e->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (e->fd < 0)
        return path_emulator_fail(e, "/dev/net/tun");
    struct ifreq wanted = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    snprintf(wanted.ifr_name, sizeof wanted.ifr_name, "%s", e->device);
    return ioctl(e->fd, TUNSETIFF, &wanted) == 0 || path_emulator_fail(e, "make the device");
}

static bool open_ends(emulator *m)
{
    int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    bool good = own >= 0;
    if (!good)
        fprintf(stderr, "path_emulator: /proc/self/ns/net: %s\n", strerror(errno));
    for (size_t i = 0; good && i < m->count; i++) {
        end *e = &m->ends[i];
        path_settings settings = m->settings;
        settings.seed = settings.seed * ENDS_MAX + i;
        e->way = path_new(&settings);
        if (e->way == NULL)
            good = path_emulator_fail(e, "make its path");
        else
            good = open_device(e) &&
                   (setns(own, CLONE_NEWNET) == 0 || path_emulator_fail(e, "come back from the namespace"));
    }
    if (own >= 0)
        close(own);
    return good;
}

/* ---- packets ---- */

/* The end that a packet is for: of two the other one, of more the one whose network its IPv4 address is in. */
static end *destination(emulator *m, const end *from, const unsigned char *packet, size_t size)
{
    if (m->count == 2)
        return &m->ends[from == &m->ends[0]];
    if (size < 20 || packet[0] >> 4 != 4)
        return NULL;
    uint32_t address;
    memcpy(&address, packet + 16, sizeof address);
    address = ntohl(address);
    for (size_t i = 0; i < m->count; i++)
        if (&m->ends[i] != from && (address & m->ends[i].mask) == m->ends[i].network)
            return &m->ends[i];
    return NULL;
}

static void read_packets(emulator *m, end *from)
{
    unsigned char packet[PACKET_MAX];
    for (int i = 0; i < BATCH; i++) {
        ssize_t size = read(from->fd, packet, sizeof packet);
        if (size <= 0)
            return;
        end *to = destination(m, from, packet, (size_t)size);
        if (to == NULL)
            m->astray++;
        else
            path_put(to->way, packet, (size_t)size, now_ns());
    }
}

/* What a device does not take (it is down) is gone, as on a wire. */
static void write_packets(end *to)
{
    path_packet *packet;
    while ((packet = path_take(to->way, now_ns())) != NULL) {
        to->refused += write(to->fd, packet->bytes, packet->size) < 0;
        free(packet);
    }
}

static void path_emulator_run(emulator *m, const sigset_t *open_signals)
{
    struct pollfd polled[ENDS_MAX];
    for (size_t i = 0; i < m->count; i++)
        polled[i] = (struct pollfd){.fd = m->ends[i].fd, .events = POLLIN};
    while (!stopping) {
        int64_t next = INT64_MAX, now = now_ns();
        for (size_t i = 0; i < m->count; i++)
            next = path_next_ns(m->ends[i].way) < next ? path_next_ns(m->ends[i].way) : next;
        int64_t left = next == INT64_MAX ? 0 : next > now ? next - now : 0;
        struct timespec wait = {left / 1000000000, left % 1000000000};
        int ready = ppoll(polled, m->count, next == INT64_MAX ? NULL : &wait, open_signals);
        for (size_t i = 0; ready > 0 && i < m->count; i++)
            if (polled[i].revents != 0)
                read_packets(m, &m->ends[i]);
        for (size_t i = 0; i < m->count; i++)
            write_packets(&m->ends[i]);
    }
}

/* ---- arguments ---- */

typedef struct unit {
    const char *name;
    double times;
} unit;

/* A number and one of some units. False when it is anything else. */
static bool quantity(const char *text, const unit *units, double *value)
{
    char *rest;
    *value = strtod(text, &rest);
    if (rest == text || !(*value >= 0) || *value > 1e18)
        return false;
    for (; units->name != NULL; units++)
        if (strcmp(units->name, rest) == 0) {
            *value *= units->times;
            return true;
        }
    return false;
}

static const unit rates[] = {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {NULL, 0}};
static const unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const unit shares[] = {{"", 1}, {"%", 0.01}, {NULL, 0}};
static const unit sizes[] = {{"", 1}, {"k", 1024}, {"m", 1048576}, {NULL, 0}};

static const unit numbers[] = {{"", 1}, {NULL, 0}};

/* Reports an invalid command line and exits. */
__attribute__((format(printf, 1, 2))) _Noreturn static void fail_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("path_emulator: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("; see path_emulator --help\n", stderr);
    va_end(arguments);
    exit(2);
}

static double parse_quantity(const char *text, const unit *units, double maximum, const char *example)
{
    double value;
    if (!quantity(text, units, &value) || value > maximum)
        fail_usage("%s is not %s", text, example);
    return value;
}

/* NAMESPACE:DEVICE[=ADDRESS/BITS] */
static void add_end(emulator *m, char *text)
{
    if (m->count == ENDS_MAX)
        fail_usage("more than %d ends", ENDS_MAX);
    end *e = &m->ends[m->count++];
    char *device = strrchr(text, ':'), *network = device != NULL ? strchr(device, '=') : NULL;
    if (device == NULL || device[1] == '\0')
        fail_usage("%s is not NAMESPACE:DEVICE", text);
    *e = (end){.name = text, .device = device + 1, .fd = -1};
    *device = '\0';
    if (network == NULL)
        return;
    *network++ = '\0';
    char *bits = strchr(network, '/'), *rest = NULL;
    struct in_addr address;
    long count = 32;
    if (bits != NULL) {
        *bits++ = '\0';
        count = strtol(bits, &rest, 10);
    }
    if (inet_pton(AF_INET, network, &address) != 1 || count < 0 || count > 32 || (rest != NULL && *rest != '\0'))
        fail_usage("%s is not ADDRESS/BITS", network);
    e->mask = count == 0 ? 0 : UINT32_MAX << (32 - count);
    e->network = ntohl(address.s_addr) & e->mask;
}

static const char usage[] =
    "usage: path_emulator [OPTION...] NAMESPACE:DEVICE[=ADDRESS/BITS]...\n"
    "Carry packets between TUN devices in network namespaces, as a long path would.\n\n"
    "NAMESPACE is one of ip-netns(8), a file such as /proc/PID/ns/net, or empty for this namespace.\n"
    "With more than two devices, ADDRESS/BITS names the IPv4 packets that leave by each device.\n"
    "Prints \"ready\" when the devices exist.\n\n"
    "  -r, --rate=RATE         rate of each direction's link: 155mbit (default: unlimited)\n"
    "  -d, --delay=TIME        one-way delay: 30ms (default 0)\n"
    "  -j, --jitter=TIME       variation of the delay (default 0)\n"
    "  -l, --loss=SHARE        share of packets that are lost: 1% or 0.01 (default 0)\n"
    "  -o, --overtaking=SHARE  share of packets that arrive without delay, before others (default 0)\n"
    "  -b, --buffer=BYTES      size of the queue before the link: 512k (default: unlimited)\n"
    "  -s, --seed=N            seed of the random numbers (default 0)\n"
    "  -h, --help              print this help\n";

/* Reads the command line; exits when it is invalid. */
static void path_emulator_read_arguments(int argc, char **argv, emulator *m)
{
    static const struct option options[] = {
        {"rate", required_argument, NULL, 'r'},
        {"delay", required_argument, NULL, 'd'},
        {"jitter", required_argument, NULL, 'j'},
        {"loss", required_argument, NULL, 'l'},
        {"overtaking", required_argument, NULL, 'o'},
        {"buffer", required_argument, NULL, 'b'},
        {"seed", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    path_settings *s = &m->settings;
    for (int option; (option = getopt_long(argc, argv, "r:d:j:l:o:b:s:h", options, NULL)) != -1;)
        switch (option) {
        case 'r':
            s->rate = parse_quantity(optarg, rates, 1e12, "a rate such as 155mbit");
            break;
        case 'd':
            s->delay_ns = (int64_t)parse_quantity(optarg, times, 1e12, "a time such as 30ms");
            break;
        case 'j':
            s->jitter_ns = (int64_t)parse_quantity(optarg, times, 1e12, "a time such as 2ms");
            break;
        case 'l':
            s->loss = parse_quantity(optarg, shares, 1, "a share such as 1%");
            break;
        case 'o':
            s->overtaking = parse_quantity(optarg, shares, 1, "a share such as 1%");
            break;
        case 'b':
            s->buffer_bytes = (size_t)parse_quantity(optarg, sizes, 1e12, "a size such as 512k");
            break;
        case 's':
            s->seed = (uint64_t)parse_quantity(optarg, numbers, 1e15, "a number");
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            exit(2);
        }
    for (int i = optind; i < argc; i++)
        add_end(m, argv[i]);
    if (m->count < 2)
        fail_usage("fewer than two ends");
}

static void print_counts(const emulator *m)
{
    for (size_t i = 0; i < m->count; i++) {
        path_counts c = path_count(m->ends[i].way);
        printf("to %s:%s packets=%" PRIu64 " bytes=%" PRIu64 " lost=%" PRIu64 " overflowed=%" PRIu64
               " overtook=%" PRIu64 " arrived=%" PRIu64 " refused=%" PRIu64 "\n",
               m->ends[i].name, m->ends[i].device, c.packets, c.bytes, c.lost, c.overflowed, c.overtook, c.arrived,
               m->ends[i].refused);
    }
    if (m->astray > 0)
        printf("for nobody packets=%" PRIu64 "\n", m->astray);
}

int main(int argc, char **argv)
{
    emulator m = {0};
    path_emulator_read_arguments(argc, argv, &m);
    sigset_t stops, open_signals;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigprocmask(SIG_BLOCK, &stops, &open_signals); /* they are taken in ppoll alone */
    sigdelset(&open_signals, SIGTERM);
    sigdelset(&open_signals, SIGINT);
    struct sigaction stop = {.sa_handler = on_stop};
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* 50 us otherwise, which packets would come late by */
    bool good = open_ends(&m);
    if (good) {
        printf("ready\n");
        fflush(stdout);
        path_emulator_run(&m, &open_signals);
        print_counts(&m);
    }
    for (size_t i = 0; i < m.count; i++) {
        if (m.ends[i].fd >= 0)
            close(m.ends[i].fd);
        path_free(m.ends[i].way);
    }
    return good ? 0 : 1;
}
