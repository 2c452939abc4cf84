/*
 * Times bursts of calls. For each measurement, each side of bench/spans prints a line "NAME MEDIAN MINIMUM", in
 * nanoseconds per call. The header is both C and C++.
 */
#ifndef BENCH_SPANS_MEASURE_H
#define BENCH_SPANS_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MEASURE_CALLS = 2048, MEASURE_BURSTS = 31 };

#define MEASURE_BARRIER() __asm__ volatile("" ::: "memory")

static double measure_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int measure_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/*
 * Runs the given code with i from 0 in bursts that fit into the buffers. Before each burst, empty() and a pause of 10
 * ms let the consumer empty the buffers.
 */
#define MEASURE(name, empty, ...)                                                                                      \
    do {                                                                                                               \
        double measure_times[MEASURE_BURSTS];                                                                          \
        for (int measure_burst = 0; measure_burst < MEASURE_BURSTS; measure_burst++) {                                 \
            const struct timespec measure_pause = {0, 10000000};                                                       \
            empty();                                                                                                   \
            nanosleep(&measure_pause, NULL);                                                                           \
            double measure_from = measure_now_ns();                                                                    \
            for (int i = 0; i < MEASURE_CALLS; i++)                                                                    \
                __VA_ARGS__;                                                                                           \
            measure_times[measure_burst] = (measure_now_ns() - measure_from) / MEASURE_CALLS;                          \
        }                                                                                                              \
        qsort(measure_times, MEASURE_BURSTS, sizeof *measure_times, measure_compare);                                  \
        printf("%s\t%.1f\t%.1f\n", name, measure_times[MEASURE_BURSTS / 2], measure_times[0]);                         \
    } while (0)

#endif
