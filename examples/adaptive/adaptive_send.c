/*
 * adaptive_send adapts to the network: it sends over TCP, and slows down while the kernel retransmits segments.
 *
 *   adaptive_send --receive PORT                       receives and discards data
 *   adaptive_send [OPTION...] HOST PORT                sends
 *
 *     --records URL     source of RetransmitRate records: a pipe from nlkernel live (-, the default), a collector, or a
 *                       log
 *     --rate BYTES      maximum rate in bytes/s (default 2000000)
 *     --seconds N       duration (default 10)
 *     --dest URL        destination of events (default $NETLOGGER_DEST)
 *
 * Several times per second, nlkernel live applies the rules of adaptive.rules to the kernel's events and writes a
 * RetransmitRate record with the field RATE. If RATE is above RETRANSMITS_MAX, the program halves its rate; if RATE is
 * 0, the program raises its rate by a tenth. The program logs its rate as SendRate.
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

/*
 * Above RETRANSMITS_MAX retransmissions per second, the program halves the rate. SLICE_MS is the time between sends in
 * milliseconds, and RATE_MIN is the minimum rate in bytes/s.
 */
enum { RETRANSMITS_MAX = 2, SLICE_MS = 10, RATE_MIN = 20000 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int adaptive_send_fail(const char *what)
{
    fprintf(stderr, "adaptive_send: %s\n", what);
    return 1;
}

/* ---- the receiver ---- */

static int receive(const char *port)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *found;
    static char buffer[1 << 16];
    int one = 1;
    if (getaddrinfo("0.0.0.0", port, &hints, &found) != 0)
        return adaptive_send_fail("invalid port");
    int listener = socket(found->ai_family, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, found->ai_addr, found->ai_addrlen) != 0 || listen(listener, 1) != 0)
        return adaptive_send_fail(strerror(errno));
    int client = accept(listener, NULL, NULL);
    while (client >= 0 && read(client, buffer, sizeof buffer) > 0)
        ;
    return 0;
}

/* ---- the sender ---- */

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

/* Sends up to `size` bytes without waiting. Returns false if the connection is broken. */
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

static bool adaptive_send_is(nl_string text, const char *wanted)
{
    return text.size == strlen(wanted) && memcmp(text.data, wanted, text.size) == 0;
}

/* Reads the records that have arrived since the last call, and returns the new rate in bytes/s. */
static double adapt(nl_reader *reader, double rate, double rate_max, nl_log *log)
{
    const nl_record *record;
    nl_status status;
    while ((status = nl_reader_next(reader, &record)) == NL_OK) {
        nl_field field;
        double retransmits;
        if (!adaptive_send_is(record->event, "RetransmitRate") || !nl_record_find(record, "RATE", &field) ||
            !nl_field_double(&field, &retransmits))
            continue;
        double before = rate;
        if (retransmits > RETRANSMITS_MAX)
            rate = rate / 2 > RATE_MIN ? rate / 2 : RATE_MIN;
        else if (retransmits == 0)
            rate = rate * 1.1 < rate_max ? rate * 1.1 : rate_max;
        NL_EVENT(log, NL_USAGE, "SendRate", "RATE", rate, "BEFORE", before, "RETRANSMITS", retransmits);
    }
    if (status == NL_FAILED) {
        fprintf(stderr, "adaptive_send: %s\n", nl_error_message());
        exit(1);
    }
    return rate;
}

static int send_adaptively(int fd, nl_reader *reader, double rate_max, double seconds, nl_log *log)
{
    double rate = rate_max, end_s = now_s() + seconds;
    NL_EVENT(log, NL_USAGE, "SendBegin", "RATE", rate);
    while (now_s() < end_s) {
        if (!send_some(fd, (size_t)(rate * SLICE_MS / 1000)))
            return adaptive_send_fail("the receiver closed the connection");
        rate = adapt(reader, rate, rate_max, log);
        poll(NULL, 0, SLICE_MS);
    }
    NL_EVENT(log, NL_USAGE, "SendEnd", "RATE", rate);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"receive", required_argument, NULL, 'r'}, {"records", required_argument, NULL, 's'},
        {"rate", required_argument, NULL, 'b'},    {"seconds", required_argument, NULL, 't'},
        {"dest", required_argument, NULL, 'd'},    {0},
    };
    const char *records = "-", *dest = NULL;
    double rate = 2e6, seconds = 10;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 'r':
            return receive(optarg);
        case 's':
            records = optarg;
            break;
        case 'b':
            rate = strtod(optarg, NULL);
            break;
        case 't':
            seconds = strtod(optarg, NULL);
            break;
        case 'd':
            dest = optarg;
            break;
        default:
            return 2;
        }
    if (argc - optind != 2 || rate < RATE_MIN)
        return adaptive_send_fail(
            "usage: adaptive_send [--records URL] [--rate BYTES] [--seconds N] [--dest URL] HOST PORT");
    nl_reader *reader = nl_reader_open(records, &(nl_reader_options){.nonblocking = true});
    if (reader == NULL)
        return adaptive_send_fail(nl_error_message());
    nl_log *log = nl_open("adaptive_send", dest);
    int fd = dial(argv[optind], argv[optind + 1]);
    int status = fd < 0 ? adaptive_send_fail(strerror(errno)) : send_adaptively(fd, reader, rate, seconds, log);
    nl_reader_close(reader);
    nl_close(log);
    return status;
}
