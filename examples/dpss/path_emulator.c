/*
 * path_emulator emulates a network path between network namespaces, for kernels without netem. It creates a TUN device
 * in each given namespace and moves packets between them through modeled paths (path.h), one per receiving device. The
 * program needs root. When the program ends, it prints the number of packets, and the kernel removes the devices.
 */
#define _GNU_SOURCE 1

#include "arguments.h"
#include "path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { ENDS_MAX = 64, PACKET_MAX = 65536, BATCH = 64 };

typedef struct end {
    char *name; /* name of the namespace; "" is the namespace of this process */
    char *device;
    uint32_t network, mask; /* IPv4 addresses behind the device, in host byte order */
    int fd;
    path *way; /* the path that leads to this end */
    uint64_t refused;
} end;

typedef struct emulator {
    path_settings settings;
    double back_rate; /* rate of the link to the first end; 0: the same as for the others */
    end ends[ENDS_MAX];
    size_t count;
    uint64_t astray; /* number of packets to unknown addresses */
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

/*
 * Enters the end's namespace and creates the device there, because a device belongs to the namespace in which
 * /dev/net/tun was opened. Returns false on failure.
 */
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
    return ioctl(e->fd, TUNSETIFF, &wanted) == 0 || path_emulator_fail(e, "create the device");
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
        if (i == 0 && m->back_rate > 0) {
            settings.rate = m->back_rate;
            settings.buffer_bytes = 0;
        }
        e->way = path_new(&settings);
        if (e->way == NULL)
            good = path_emulator_fail(e, "create its path");
        else
            good = open_device(e) && (setns(own, CLONE_NEWNET) == 0 || path_emulator_fail(e, "leave the namespace"));
    }
    if (own >= 0)
        close(own);
    return good;
}

/* ---- packets ---- */

/*
 * Returns the end to which a packet goes, or NULL if the end is unknown. If there are two ends, returns the other end.
 * Otherwise, the IPv4 address determines the end.
 */
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

/* Writes the packets that have arrived. If a device is down, its packets are dropped. */
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

/* Parses and adds an end: NAMESPACE:DEVICE[=ADDRESS/BITS]. */
static void add_end(const struct argp_state *state, emulator *m, char *text)
{
    if (m->count == ENDS_MAX)
        argp_failure(state, 2, 0, "more than %d ends", ENDS_MAX);
    end *e = &m->ends[m->count++];
    char *device = strrchr(text, ':'), *network = device != NULL ? strchr(device, '=') : NULL;
    if (device == NULL || device[1] == '\0')
        argp_failure(state, 2, 0, "%s is not NAMESPACE:DEVICE", text);
    *e = (end){.name = text, .device = device + 1, .fd = -1};
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): argp_failure exits */
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
        argp_failure(state, 2, 0, "%s is not ADDRESS/BITS", network);
    e->mask = count == 0 ? 0 : UINT32_MAX << (32 - count);
    e->network = ntohl(address.s_addr) & e->mask;
}

static const struct argp_option options[] = {
    {"rate", 'r', "RATE", 0, "Rate of each direction's link, such as 155mbit (default: unlimited)", 0},
    {"back-rate", 'k', "RATE", 0, "Rate of the link to the first device, with an unlimited queue", 0},
    {"policed", 'p', NULL, 0, "Drop packets above the rate of a link, instead of delaying them", 0},
    {"delay", 'd', "TIME", 0, "One-way delay, such as 30ms (default 0)", 0},
    {"jitter", 'j', "TIME", 0, "Variation of the delay (default 0)", 0},
    {"loss", 'l', "SHARE", 0, "Share of packets that are lost, such as 1% or 0.01 (default 0)", 0},
    {"overtaking", 'o', "SHARE", 0, "Share of packets that arrive without delay, before others (default 0)", 0},
    {"buffer", 'b', "SIZE", 0, "Size of the queue before the link, such as 512k (default: unlimited)", 0},
    {"seed", 's', "N", 0, "Seed of the random numbers (default 0)", 0},
    {0},
};

static error_t path_emulator_parse(int key, char *text, struct argp_state *state)
{
    emulator *m = state->input;
    path_settings *s = &m->settings;
    switch (key) {
    case 'r':
        s->rate = arguments_number(state, text, units_rate, 0, 1e12, "a rate such as 155mbit");
        return 0;
    case 'k':
        m->back_rate = arguments_number(state, text, units_rate, 0, 1e12, "a rate such as 155mbit");
        return 0;
    case 'p':
        s->policed = true;
        return 0;
    case 'd':
        s->delay_ns = (int64_t)arguments_number(state, text, units_time, 0, 1e12, "a time such as 30ms");
        return 0;
    case 'j':
        s->jitter_ns = (int64_t)arguments_number(state, text, units_time, 0, 1e12, "a time such as 2ms");
        return 0;
    case 'l':
        s->loss = arguments_number(state, text, units_share, 0, 1, "a share such as 1%");
        return 0;
    case 'o':
        s->overtaking = arguments_number(state, text, units_share, 0, 1, "a share such as 1%");
        return 0;
    case 'b':
        s->buffer_bytes = (size_t)arguments_number(state, text, units_size, 0, 1e12, "a size such as 512k");
        return 0;
    case 's':
        s->seed = (uint64_t)arguments_number(state, text, units_none, 0, 1e15, "a number");
        return 0;
    case ARGP_KEY_ARG:
        add_end(state, m, text);
        return 0;
    case ARGP_KEY_END:
        if (m->count < 2)
            argp_failure(state, 2, 0, "fewer than two ends; see path_emulator --help");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    options,
    path_emulator_parse,
    "NAMESPACE:DEVICE[=ADDRESS/BITS]...",
    "Carry packets between TUN devices in network namespaces, as a long path would.\vNAMESPACE is a name that "
    "ip-netns(8) lists, a file such as /proc/PID/ns/net, or empty for the current namespace. With more than two "
    "devices, ADDRESS/BITS selects the destinations of the IPv4 packets that leave through each device. The program "
    "prints \"ready\" when "
    "the devices exist.",
    0,
    0,
    0};

static void print_counts(const emulator *m)
{
    for (size_t i = 0; i < m->count; i++) {
        path_counts c = path_count(m->ends[i].way);
        printf("to %s:%s packets=%" PRIu64 " bytes=%" PRIu64 " lost=%" PRIu64 " overflowed=%" PRIu64
               " overtook=%" PRIu64 " arrived=%" PRIu64 " late=%" PRIu64 " refused=%" PRIu64 "\n",
               m->ends[i].name, m->ends[i].device, c.packets, c.bytes, c.lost, c.overflowed, c.overtook, c.arrived,
               c.late, m->ends[i].refused);
    }
    if (m->astray > 0)
        printf("to unknown addresses packets=%" PRIu64 "\n", m->astray);
}

int main(int argc, char **argv)
{
    emulator m = {0};
    arguments_parse(&argp, argc, argv, &m);
    sigset_t stops, open_signals;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigprocmask(SIG_BLOCK, &stops, &open_signals); /* the signals arrive only during ppoll */
    sigdelset(&open_signals, SIGTERM);
    sigdelset(&open_signals, SIGINT);
    struct sigaction stop = {.sa_handler = on_stop};
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* the default of 50 us would delay packets */
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
