/*
 * Measures the time from an application's NL_EVENT to a subscriber of the collector. bench/netlogd/latency compiles and
 * runs this program, once with netlogd and once with this program as a sink that only receives the records. The second
 * run shows the part of the latency that the log's own thread causes.
 *
 *   latency burst URL EVENTS        the maximum rate in events per second, with all events logged at once
 *   latency through URL FORMAT RATE SECONDS    to a subscriber of the same collector
 *   latency sink FORMAT RATE SECONDS
 */
#include <netlogger.h>
#if __has_include("reader/decoder.h") /* for comparisons with older revisions */
#include "reader/decoder.h"
#endif

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { SINK_READ = 256 << 10 };

static int64_t *latencies;
static size_t wanted, measured;
static double rate;

static void die(const char *what)
{
    fprintf(stderr, "latency: %s: %s\n", what, nl_error_message());
    exit(1);
}

static void latency_ends_take(const nl_record *record)
{
    nl_field at;
    int64_t at_ns;
    if (measured < wanted && nl_record_find(record, "AT", &at) && nl_field_int(&at, &at_ns))
        latencies[measured++] = nl_time_now_ns() - at_ns;
}

/* Logs events at a constant rate, in batches of one millisecond. Each event contains the time of its call. */
static void log_paced(nl_log *log)
{
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    double due = 0;
    for (size_t logged = 0; logged < wanted;) {
        next.tv_nsec += 1000000;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        for (due += rate / 1000; (double)logged < due && logged < wanted; logged++)
            NL_EVENT(log, NL_USAGE, "Ping", "AT", nl_time_now_ns(), "N", logged, "FILE", "block-0001.dat");
    }
}

static void *log_to(void *url)
{
    nl_log *log = nl_open("latency", url);
    if (log == NULL)
        die(url);
    nl_set_policy(log, NL_POLICY_BLOCK, INT64_C(10000000000), NL_LEVEL_NONE);
    log_paced(log);
    if (nl_close(log) != NL_OK)
        die("close");
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void latency_ends_report(void)
{
    if (measured == 0)
        die("no records arrived");
    qsort(latencies, measured, sizeof *latencies, by_size);
    printf("%.3f %.3f %.3f %zu\n", (double)latencies[measured / 2] / 1e6, (double)latencies[measured * 99 / 100] / 1e6,
           (double)latencies[measured - 1] / 1e6, measured);
}

/* ---- a collector that discards records ---- */

static int listener_fd;

static void *sink(void *unused)
{
    int fd = accept(listener_fd, NULL, NULL);
    static char bytes[SINK_READ];
    nl_decoder *decoder = nl_decoder_new(NULL);
    ssize_t got;
    while ((got = read(fd, bytes, sizeof bytes)) > 0) {
        const nl_record *record;
        nl_decoder_feed(decoder, bytes, (size_t)got);
        while (nl_decoder_next(decoder, &record) == NL_OK)
            latency_ends_take(record);
        uint64_t blocks = nl_decoder_get_stats(decoder)->blocks;
        char frame[16] = "NLA1\x08";
        memcpy(frame + 8, &blocks, sizeof blocks);
        if (blocks > 0 && send(fd, frame, sizeof frame, MSG_NOSIGNAL) < 0)
            break;
    }
    close(fd);
    nl_decoder_free(decoder);
    return unused;
}

static void measure_sink(const char *format)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/latency.%d", (int)getpid());
    listener_fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener_fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener_fd, 1) != 0)
        die("listen");
    char url[200];
    snprintf(url, sizeof url, "unix:%s?format=%s", address.sun_path, format);
    pthread_t thread;
    pthread_create(&thread, NULL, sink, NULL);
    log_to(url);
    pthread_join(thread, NULL);
    unlink(address.sun_path);
    latency_ends_report();
}

static void measure_through(char *url, const char *format)
{
    char from[300], to[300];
    snprintf(from, sizeof from, "%s?where=PROG==latency&format=%s", url, format);
    snprintf(to, sizeof to, "%s?format=%s", url, format);
    nl_reader *reader = nl_reader_open(from, NULL);
    if (reader == NULL)
        die("subscribe");
    pthread_t thread;
    pthread_create(&thread, NULL, log_to, to);
    const nl_record *record;
    while (measured < wanted && nl_reader_next(reader, &record) == NL_OK)
        latency_ends_take(record);
    pthread_join(thread, NULL);
    nl_reader_close(reader);
    latency_ends_report();
}

static void measure_burst(const char *url, size_t events)
{
    nl_log *log = nl_open("burst", url);
    if (log == NULL)
        die(url);
    nl_set_policy(log, NL_POLICY_BLOCK, INT64_C(60000000000), NL_LEVEL_NONE);
    int64_t begin_ns = nl_time_now_ns();
    for (size_t i = 0; i < events; i++)
        NL_EVENT(log, NL_USAGE, "Ping", "AT", begin_ns, "N", i, "FILE", "block-0001.dat");
    if (nl_close(log) != NL_OK)
        die("close");
    printf("%.0f\n", (double)events * 1e9 / (double)(nl_time_now_ns() - begin_ns));
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "burst") == 0) {
        measure_burst(argv[2], strtoul(argv[3], NULL, 10));
        return 0;
    }
    if (argc != 6 && argc != 5) {
        fprintf(stderr, "usage: run bench/netlogd/latency, which starts this program\n");
        return 2;
    }
    rate = atof(argv[argc - 2]);
    wanted = (size_t)(rate * atof(argv[argc - 1]));
    latencies = malloc((wanted + 1) * sizeof *latencies);
    if (strcmp(argv[1], "sink") == 0)
        measure_sink(argv[2]);
    else
        measure_through(argv[2], argv[3]);
    free(latencies);
    return 0;
}
