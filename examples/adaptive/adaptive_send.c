/*
 * A program that adapts to its environment: it sends over TCP as fast as it was told, and slower while the kernel
 * retransmits.
 *
 *   adaptive_send --receive PORT                       takes what is sent, and throws it away
 *   adaptive_send [OPTION...] HOST PORT                sends
 *
 *     --rules FILE      what is made of the kernel's events (default adaptive.schema, beside this source)
 *     --source SOURCE   where these come from: a collector, for one; otherwise this host's kernel, by nlkernel
 *     --rate BYTES      what is sent a second, at most (default 2000000)
 *     --seconds N       how long (default 10)
 *
 * The kernel's events do not concern it: the rules make of them records RetransmitRate, with RATE, several a second.
 * While RATE is above RATE_MOST it halves what it sends each time; while it is 0, it sends a tenth more. How fast it
 * sends is logged as SendRate, to $NETLOGGER_DEST.
 */
#include <netlogger.h>

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Retransmits a second that are too many, how often we send, and the least that we send a second. */
enum { RATE_MOST = 2, SLICE_MS = 10, LEAST = 20000 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int fail(const char *what)
{
    fprintf(stderr, "adaptive_send: %s\n", what);
    return 1;
}

/* ---- the other end ---- */

static int receive(const char *port)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *found;
    static char buffer[1 << 16];
    int one = 1;
    if (getaddrinfo("0.0.0.0", port, &hints, &found) != 0)
        return fail("that is no port");
    int listener = socket(found->ai_family, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, found->ai_addr, found->ai_addrlen) != 0 || listen(listener, 1) != 0)
        return fail(strerror(errno));
    int client = accept(listener, NULL, NULL);
    while (client >= 0 && read(client, buffer, sizeof buffer) > 0)
        ;
    return 0;
}

/* ---- this end ---- */

static int dial(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return -1;
    int fd = socket(found->ai_family, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

/* Sends up to size bytes, as the socket takes them. False when the other end is gone. */
static bool send_some(int fd, size_t size)
{
    static const char data[1 << 16];
    while (size > 0) {
        ssize_t sent = send(fd, data, size < sizeof data ? size : sizeof data, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        size -= (size_t)sent;
    }
    return true;
}

static bool is(nl_string text, const char *wanted)
{
    return text.size == strlen(wanted) && memcmp(text.data, wanted, text.size) == 0;
}

/* What the environment says since it was asked last: the rate that is to be sent now. */
static double adapt(nl_environment *environment, double rate, double most, nl_log *log)
{
    const nl_record *record;
    nl_status status;
    while ((status = nl_environment_next(environment, 0, &record)) == NL_OK) {
        nl_field field;
        double retransmits;
        if (!is(record->event, "RetransmitRate") || !nl_record_find(record, "RATE", &field) ||
            !nl_field_double(&field, &retransmits))
            continue;
        double before = rate;
        if (retransmits > RATE_MOST)
            rate = rate / 2 > LEAST ? rate / 2 : LEAST;
        else if (retransmits == 0)
            rate = rate * 1.1 < most ? rate * 1.1 : most;
        NL_EVENT(log, NL_USAGE, "SendRate", "RATE", rate, "BEFORE", before, "RETRANSMITS", retransmits);
    }
    if (status == NL_FAILED) {
        fprintf(stderr, "adaptive_send: %s\n", nl_error_message());
        exit(1);
    }
    return rate;
}

static int send_adaptively(int fd, nl_environment *environment, double most, double seconds, nl_log *log)
{
    double rate = most, end_s = now_s() + seconds;
    NL_EVENT(log, NL_USAGE, "SendBegin", "RATE", rate);
    while (now_s() < end_s) {
        if (!send_some(fd, (size_t)(rate * SLICE_MS / 1000)))
            return fail("the other end is gone");
        rate = adapt(environment, rate, most, log);
        poll(NULL, 0, SLICE_MS);
    }
    NL_EVENT(log, NL_USAGE, "SendEnd", "RATE", rate);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"receive", required_argument, NULL, 'r'}, {"rules", required_argument, NULL, 'f'},
        {"source", required_argument, NULL, 's'},  {"rate", required_argument, NULL, 'b'},
        {"seconds", required_argument, NULL, 't'}, {0}};
    const char *rules = "adaptive.schema", *source = NULL;
    double rate = 2e6, seconds = 10;
    char parameter[64];
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 'r':
            return receive(optarg);
        case 'f':
            rules = optarg;
            break;
        case 's':
            source = optarg;
            break;
        case 'b':
            rate = strtod(optarg, NULL);
            break;
        case 't':
            seconds = strtod(optarg, NULL);
            break;
        default:
            return 2;
        }
    if (argc - optind != 2 || rate < LEAST)
        return fail("usage: adaptive_send [--rules FILE] [--source SOURCE] [--rate BYTES] [--seconds N] HOST PORT");
    snprintf(parameter, sizeof parameter, "PORT=%s", argv[optind + 1]);
    nl_environment *environment = nl_environment_open(rules, source, (const char *const[]){parameter, NULL});
    if (environment == NULL)
        return fail(nl_error_message());
    nl_log *log = nl_open("adaptive_send", NULL);
    int fd = dial(argv[optind], argv[optind + 1]);
    int status = fd < 0 ? fail(strerror(errno)) : send_adaptively(fd, environment, rate, seconds, log);
    nl_environment_close(environment);
    nl_close(log);
    return status;
}
