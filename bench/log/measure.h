/*
 * The harness that all sides of bench/log share. The harness measures the times of single calls and of bursts. The
 * header is both C and C++.
 *
 * A side is a small program that includes this header and defines side_open, side_write and side_close. The side's main
 * returns measure_main(argc, argv). The compiler inlines side_write() into the loops of this header, so that the
 * measured time equals the time of a call in a real program.
 *
 * A side that cannot be built here defines MEASURE_MISSING as the reason before it includes this header, and then needs
 * only main.
 *
 *   SIDE calls EVENTS PATH     one thread: bursts, single calls, then EVENTS events without a pause
 *   SIDE threads EVENTS PATH   bursts in 1, 2, 4, 8 and 16 threads at the same time
 *   SIDE count EVENTS PATH     EVENTS events after a short warm-up, for counting the instructions of measure_many
 *   SIDE built                 {}, or {"missing": reason}
 *
 * The output is one line of JSON; times are in nanoseconds.
 */
#ifndef BENCH_LOG_MEASURE_H
#define BENCH_LOG_MEASURE_H

#ifndef _GNU_SOURCE
#error "compile with -D_GNU_SOURCE"
#endif
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#ifndef MEASURE_MISSING

/* Opens the log at path, which names a file or directory that does not exist yet. Ends the program on failure. */
void side_open(const char *path);

/* Logs one event that contains i. Any thread may call this function. */
extern inline __attribute__((always_inline)) void side_write(uint64_t i);

/* Waits until all events are in the file. Returns the number of lost events, or 0 if the number is unknown. */
uint64_t side_close(void);

enum {
    MEASURE_BURST = 4096,      /* number of events; two bursts fit into the smallest buffer of any side */
    MEASURE_BURSTS = 31,       /* number of bursts for the median */
    MEASURE_THREAD_BURSTS = 8, /* bursts per thread */
    MEASURE_THREADS = 16,
    MEASURE_PAUSE_NS = 10 * 1000 * 1000,       /* pause after each burst, in which the consumer empties the buffers */
    MEASURE_LONG_PAUSE_NS = 200 * 1000 * 1000, /* pause after EVENTS events, and during the comparison of the clocks */
    MEASURE_PAIRS = 10000,                     /* pairs of counter readings with nothing between them */
    MEASURE_COUNT_WARM = 1000,
};

/* Set before the side starts threads, and then only read. */
static cpu_set_t measure_last_cpu;
static double measure_ns_per_tick;

static double measure_now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure_pause(int64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&t, NULL);
}

/* Measures the rate of the counter, over a period so long that the cost of reading the clock is negligible. */
static void measure_calibrate(void)
{
    double from = measure_now(CLOCK_MONOTONIC);
    uint64_t ticks = __rdtsc();
    measure_pause(MEASURE_LONG_PAUSE_NS);
    double took = measure_now(CLOCK_MONOTONIC) - from;
    measure_ns_per_tick = took / (double)(__rdtsc() - ticks);
}

/* The timed loop. It is not inlined, so that valgrind can attribute instructions to it by name. */
__attribute__((noinline)) static void measure_many(uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        side_write(i);
        __asm__ volatile("" ::: "memory"); /* keeps the compiler from holding state of side_write() in registers */
    }
}

/* Prevents code before the first reading, or after the second, from running between the two. */
static inline __attribute__((always_inline)) uint64_t measure_before(void)
{
    _mm_lfence();
    uint64_t t = __rdtsc();
    __asm__ volatile("" ::: "memory");
    return t;
}

static inline __attribute__((always_inline)) uint64_t measure_after(void)
{
    unsigned int cpu;
    __asm__ volatile("" ::: "memory");
    uint64_t t = __rdtscp(&cpu);
    _mm_lfence();
    return t;
}

/* Times single calls. Reuses the memory of ticks, because a new page would delay the call that touches it. */
__attribute__((noinline)) static void measure_each(uint64_t first, uint32_t ticks[MEASURE_BURST])
{
    for (uint64_t i = 0; i < MEASURE_BURST; i++) {
        uint64_t from = measure_before();
        side_write(first + i);
        ticks[i] = (uint32_t)(measure_after() - from);
    }
}

static int measure_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts values in place, and returns a percentile. */
static double measure_percentile(double *values, size_t count, double percent)
{
    qsort(values, count, sizeof *values, measure_compare);
    size_t at = (size_t)((double)count * percent / 100);
    return values[at < count ? at : count - 1];
}

static double *measure_array(size_t count)
{
    double *values = (double *)malloc(count * sizeof *values);
    if (values == NULL)
        abort();
    memset(values, 0xff, count * sizeof *values); /* allocate the pages before the measurement */
    return values;
}

static double measure_empty_pair(void)
{
    double ticks[MEASURE_PAIRS];
    for (int i = 0; i < MEASURE_PAIRS; i++) {
        uint64_t from = measure_before();
        ticks[i] = (double)(measure_after() - from);
    }
    return measure_percentile(ticks, MEASURE_PAIRS, 50);
}

/*
 * Pins the producer to the last processor. Threads that the side has started run on any processor, or, if
 * $MEASURE_APART is set, on any processor except the last.
 */
static void measure_pin(void)
{
    sched_setaffinity(0, sizeof measure_last_cpu, &measure_last_cpu);
}

static void measure_find_cpus(void)
{
    cpu_set_t others;
    sched_getaffinity(0, sizeof others, &others);
    int last = 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &others))
            last = i;
    CPU_ZERO(&measure_last_cpu);
    CPU_SET(last, &measure_last_cpu);
    CPU_CLR(last, &others);
    if (getenv("MEASURE_APART") != NULL && CPU_COUNT(&others) > 0)
        sched_setaffinity(0, sizeof others, &others);
}

static void measure_bursts(uint64_t *next)
{
    double each[MEASURE_BURSTS];
    for (int i = 0; i < MEASURE_BURSTS; i++) {
        double from = measure_now(CLOCK_MONOTONIC);
        measure_many(*next, MEASURE_BURST);
        each[i] = (measure_now(CLOCK_MONOTONIC) - from) / MEASURE_BURST;
        *next += MEASURE_BURST;
        measure_pause(MEASURE_PAUSE_NS);
    }
    printf("\"burst_ns\": %.3f, ", measure_percentile(each, MEASURE_BURSTS, 50));
}

static void measure_singles(uint64_t *next)
{
    const size_t count = (size_t)MEASURE_BURSTS * MEASURE_BURST;
    double *ticks = measure_array(count);
    static uint32_t burst[MEASURE_BURST];
    double of_burst[MEASURE_BURST], quiet[MEASURE_BURSTS];
    double empty = measure_empty_pair();
    for (size_t at = 0; at < count; at += MEASURE_BURST) {
        measure_each(*next, burst);
        *next += MEASURE_BURST;
        for (size_t i = 0; i < MEASURE_BURST; i++)
            ticks[at + i] = of_burst[i] = burst[i];
        quiet[at / MEASURE_BURST] = measure_percentile(of_burst, MEASURE_BURST, 99.9);
        measure_pause(MEASURE_PAUSE_NS);
    }
    const double wanted[] = {50, 99, 99.9, 100};
    const char *const names[] = {"p50", "p99", "p99.9", "max"};
    for (int i = 0; i < 4; i++)
        printf("\"%s_ns\": %.1f, ", names[i],
               (measure_percentile(ticks, count, wanted[i]) - empty) * measure_ns_per_tick);
    /* Use the median, because only some bursts are interrupted. */
    printf("\"p99.9_median_ns\": %.1f, ",
           (measure_percentile(quiet, MEASURE_BURSTS, 50) - empty) * measure_ns_per_tick);
    printf("\"empty_pair_ns\": %.1f, ", empty * measure_ns_per_tick);
    free(ticks);
}

static uint64_t measure_size;

static int measure_add_size(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)path;
    (void)where;
    if (kind == FTW_F)
        measure_size += (uint64_t)status->st_size;
    return 0;
}

/*
 * Closes the log and prints the numbers of events and lost events, and the size of the log's files in bytes. Returns
 * the time, in nanoseconds, at which everything was written.
 */
static double measure_finish(const char *path, uint64_t total)
{
    uint64_t lost = side_close();
    double complete = measure_now(CLOCK_MONOTONIC);
    nftw(path, measure_add_size, 16, FTW_PHYS);
    printf("\"events\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"bytes\": %" PRIu64, total, lost, measure_size);
    return complete;
}

static void measure_calls(uint64_t events, const char *path)
{
    uint64_t next = 0;
    measure_many(next++, 1); /* makes the sides start their threads before this process is bound to a processor */
    measure_pin();
    measure_many(next, events); /* touches each page of each buffer once */
    next += events;
    measure_pause(MEASURE_LONG_PAUSE_NS);
    measure_bursts(&next);
    measure_singles(&next);
    measure_pause(MEASURE_LONG_PAUSE_NS);
    double from = measure_now(CLOCK_MONOTONIC);
    measure_many(next, events);
    double took = measure_now(CLOCK_MONOTONIC) - from;
    double all = measure_finish(path, next + events) - from;
    printf(", \"sustained_ns\": %.3f, \"to_file_per_s\": %.0f", took / (double)events, (double)events * 1e9 / all);
}

typedef struct measure_thread {
    pthread_t id;
    pthread_barrier_t *together;
    uint64_t first;
    int64_t pause_ns;
    double clock_ns; /* the part of cpu_ns that reading the two clocks takes */
    double cpu_ns[MEASURE_THREAD_BURSTS];
    double wall_ns[MEASURE_THREAD_BURSTS];
} measure_thread;

static double measure_clock_pair(void)
{
    double each[101];
    for (int i = 0; i < 101; i++) {
        double from = measure_now(CLOCK_THREAD_CPUTIME_ID);
        (void)measure_now(CLOCK_MONOTONIC);
        (void)measure_now(CLOCK_MONOTONIC);
        each[i] = measure_now(CLOCK_THREAD_CPUTIME_ID) - from;
    }
    return measure_percentile(each, 101, 50);
}

static void *measure_thread_main(void *argument)
{
    measure_thread *thread = (measure_thread *)argument;
    uint64_t next = thread->first;
    double clock_ns = measure_clock_pair();
    for (int i = -1; i < MEASURE_THREAD_BURSTS; i++, next += MEASURE_BURST) { /* the first round is the warm-up */
        measure_pause(thread->pause_ns);
        pthread_barrier_wait(thread->together);
        double cpu = measure_now(CLOCK_THREAD_CPUTIME_ID), wall = measure_now(CLOCK_MONOTONIC);
        measure_many(next, MEASURE_BURST);
        wall = measure_now(CLOCK_MONOTONIC) - wall;
        cpu = measure_now(CLOCK_THREAD_CPUTIME_ID) - cpu - clock_ns;
        if (i >= 0) {
            thread->cpu_ns[i] = cpu / MEASURE_BURST;
            thread->wall_ns[i] = wall / MEASURE_BURST;
        }
    }
    return NULL;
}

static void measure_with(int count, uint64_t *next)
{
    measure_thread threads[MEASURE_THREADS];
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, (unsigned)count);
    for (int t = 0; t < count; t++) {
        threads[t].together = &together;
        threads[t].first = *next;
        threads[t].pause_ns = (int64_t)(count + 1) * MEASURE_PAUSE_NS / 2;
        *next += (uint64_t)(MEASURE_THREAD_BURSTS + 1) * MEASURE_BURST;
        if (pthread_create(&threads[t].id, NULL, measure_thread_main, &threads[t]) != 0)
            abort();
    }
    double cpu[MEASURE_THREADS * MEASURE_THREAD_BURSTS], wall[MEASURE_THREADS * MEASURE_THREAD_BURSTS];
    for (int t = 0; t < count; t++) {
        pthread_join(threads[t].id, NULL);
        memcpy(cpu + t * MEASURE_THREAD_BURSTS, threads[t].cpu_ns, sizeof threads[t].cpu_ns);
        memcpy(wall + t * MEASURE_THREAD_BURSTS, threads[t].wall_ns, sizeof threads[t].wall_ns);
    }
    pthread_barrier_destroy(&together);
    size_t all = (size_t)count * MEASURE_THREAD_BURSTS;
    printf("%s\"%d\": {\"cpu_ns\": %.3f, \"wall_ns\": %.3f}", count > 1 ? ", " : "", count,
           measure_percentile(cpu, all, 50), measure_percentile(wall, all, 50));
}

static void measure_threads(const char *path)
{
    uint64_t next = 0;
    printf("\"threads\": {");
    for (int count = 1; count <= MEASURE_THREADS; count *= 2)
        measure_with(count, &next);
    printf("}, ");
    measure_finish(path, next);
}

static void measure_count(uint64_t events, const char *path)
{
    measure_many(0, MEASURE_COUNT_WARM);
    measure_many(MEASURE_COUNT_WARM, events);
    measure_finish(path, MEASURE_COUNT_WARM + events);
}

static int measure_main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "built") == 0) {
        printf("{}\n");
        return 0;
    }
    if (argc != 4) {
        fprintf(stderr, "usage: %1$s built, or %1$s calls|threads|count EVENTS PATH\n", argv[0]);
        return 2;
    }
    uint64_t events = strtoull(argv[2], NULL, 10);
    measure_calibrate();
    if (strcmp(argv[1], "calls") == 0)
        measure_find_cpus();
    side_open(argv[3]);
    printf("{");
    if (strcmp(argv[1], "calls") == 0)
        measure_calls(events, argv[3]);
    else if (strcmp(argv[1], "threads") == 0)
        measure_threads(argv[3]);
    else
        measure_count(events, argv[3]);
    printf("}\n");
    return 0;
}

#else

static int measure_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("{\"missing\": \"%s\"}\n", MEASURE_MISSING);
    return 0;
}

#endif
#endif
