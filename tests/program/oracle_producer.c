/*
 * A producer of the oracle test (test_netlogd_oracle.py). It logs numbered events until SIGTERM, and records its
 * progress in a file. After a kill, the test reads from this file which events the collector's output must contain.
 *
 *   producer blocks NAME RUN URL FILE THREADS PAUSE_US FLUSH_EVERY    through libnetlogger
 *   producer lines NAME RUN HOST:PORT FILE PAUSE_US                   plain text over TCP; a broken link loses lines
 *   producer datagrams NAME RUN HOST:PORT FILE PAUSE_US               one line per datagram
 *
 * FILE contains a struct counts for each thread. The value of event I of thread T depends only on I.
 */
#include <netlogger.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct counts {
    _Atomic uint64_t tried;    /* calls that began */
    _Atomic uint64_t returned; /* calls that returned */
    _Atomic uint64_t refused;  /* number of these calls that failed */
    _Atomic uint64_t flushed;  /* calls that returned before an nl_flush that returned NL_OK */
} counts;

enum { THREADS = 8, SHORT = 64, LONG = 16000, LONG_EVERY = 199 };

static volatile sig_atomic_t ending;
static nl_log *logged;
static const char *name;
static int run, pause_us, flush_every;
static counts *all;
static char pattern[LONG + 2 * SHORT];

static void on_term(int signal)
{
    (void)signal;
    ending = 1;
}

static void fill_pattern(void)
{
    static const char base[] = "abc d\"e\"f=g\\h\ni\tj k=l \xc3\xa4\x01m;n,o'p";
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = base[i % (sizeof base - 1)];
}

/* The value of event i consists of `size` bytes from pattern[i % SHORT] on. */
static size_t value_size(uint64_t i)
{
    return i % LONG_EVERY == LONG_EVERY - 1 ? i * 7919 % LONG : i * 31 % SHORT;
}

/* Pauses between groups of events of different sizes. They grow with time, so that a slow test has no more work. */
static void pause_between(uint64_t i, unsigned *seed, unsigned *left)
{
    if ((*left)-- > 0)
        return;
    *left = rand_r(seed) % 20 == 0 ? (unsigned)rand_r(seed) % 500 : (unsigned)rand_r(seed) % 20;
    usleep((unsigned)rand_r(seed) % (unsigned)pause_us * (unsigned)(1 + i / 10000));
}

static void *log_blocks(void *which)
{
    int thread = (int)(intptr_t)which;
    counts *c = &all[thread];
    unsigned seed = (unsigned)(run * THREADS + thread), left = 0;
    for (uint64_t i = 0; !ending; i++) {
        char value[LONG + 1];
        size_t size = value_size(i);
        memcpy(value, pattern + i % SHORT, size);
        value[size] = '\0';
        atomic_store(&c->tried, i + 1);
        nl_status status = NL_OK;
        if (i % 3 == 0)
            NL_EVENT(logged, NL_USAGE, "Step", "RUN", run, "T", thread, "I", i, "V", value);
        else
            status = nl_write(logged, NL_USAGE, "Step", "RUN=%d T=%d I=%llu V=%s", run, thread, (unsigned long long)i,
                              value);
        if (status != NL_OK)
            atomic_fetch_add(&c->refused, 1);
        atomic_store(&c->returned, i + 1);
        if (flush_every > 0 && i % (unsigned)flush_every == (unsigned)flush_every - 1 && nl_flush(logged) == NL_OK)
            atomic_store(&c->flushed, i + 1);
        pause_between(i, &seed, &left);
    }
    return NULL;
}

static int produce_blocks(const char *url, int threads)
{
    pthread_t ids[THREADS];
    while ((logged = nl_open(name, url)) == NULL && !ending)
        usleep(10000); /* without a spool, the collector must be reachable */
    if (logged == NULL)
        return 0;
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, log_blocks, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    if (nl_close(logged) == NL_OK)
        return 0;
    fprintf(stderr, "%s: %s\n", name, nl_error_message());
    return 3; /* for nlrecover */
}

/* A line without quotes. V is a position in the pattern, a size, and as many letters. */
static size_t print_line(uint64_t i, char *line, size_t capacity)
{
    size_t size = value_size(i);
    int head = snprintf(line, capacity,
                        "DATE=20260101000000.%06llu HOST=h PROG=%s LVL=Usage NL.EVNT=Line RUN=%d T=0 I=%llu V=",
                        (unsigned long long)(i % 1000000), name, run, (unsigned long long)i);
    for (size_t k = 0; k < size; k++)
        line[(size_t)head + k] = (char)('a' + (i + k) % 26);
    return (size_t)head + size + (size_t)sprintf(line + (size_t)head + size, ".END\n");
}

/* A connection over TCP begins with a newline, so that a collector detects a line that the previous connection cut off.
 */
static int oracle_producer_connect_to(const char *where, int type)
{
    static const char hello[] = "DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Hello\n";
    char host[64] = "";
    int port = 0;
    sscanf(where, "%63[^:]:%d", host, &port);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, host, &address.sin_addr);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    struct timeval timeout = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        (type == SOCK_DGRAM || send(fd, hello, sizeof hello - 1, MSG_NOSIGNAL) > 0))
        return fd;
    close(fd);
    return -1;
}

/* Sends pieces of random sizes, so that lines cross them. Returns false if the connection is broken. */
static bool send_line(int fd, const char *line, size_t size, unsigned *seed)
{
    size_t done = 0;
    while (done < size) {
        size_t piece = (unsigned)rand_r(seed) % 4 == 0 ? (unsigned)rand_r(seed) % (size - done) + 1 : size - done;
        ssize_t sent = send(fd, line + done, piece, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        done += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static int produce_text(const char *where, int type)
{
    static char line[LONG + 1000];
    unsigned seed = (unsigned)run, left = 0;
    int fd = -1;
    for (uint64_t i = 0; !ending;) {
        if (fd < 0 && (fd = oracle_producer_connect_to(where, type)) < 0) {
            usleep(20000);
            continue;
        }
        size_t size = print_line(i, line, sizeof line);
        atomic_store(&all[0].tried, i + 1);
        bool sent =
            type == SOCK_DGRAM ? send(fd, line, size, MSG_NOSIGNAL) == (ssize_t)size : send_line(fd, line, size, &seed);
        i++;
        atomic_store(&all[0].returned, i);
        if (!sent) {
            struct linger reset = {.l_onoff = 1};
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
            close(fd);
            fd = -1;
        }
        pause_between(i, &seed, &left);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 7)
        return 2;
    struct sigaction action = {.sa_handler = on_term};
    sigaction(SIGTERM, &action, NULL);
    fill_pattern();
    name = argv[2];
    run = atoi(argv[3]);
    int fd = open(argv[5], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, THREADS * sizeof *all) != 0)
        return perror(argv[5]), 2;
    all = mmap(NULL, THREADS * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all == MAP_FAILED)
        return perror(argv[5]), 2;
    if (strcmp(argv[1], "blocks") == 0 && argc > 8) {
        pause_us = atoi(argv[7]);
        flush_every = atoi(argv[8]);
        return produce_blocks(argv[4], atoi(argv[6]));
    }
    pause_us = atoi(argv[6]);
    return produce_text(argv[4], strcmp(argv[1], "datagrams") == 0 ? SOCK_DGRAM : SOCK_STREAM);
}
