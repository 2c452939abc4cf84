/*
 * The monotonic clock, for intervals and deadlines, and the processor time of a thread. The clock's origin is
 * arbitrary.
 */
#ifndef NETLOGGER_BASE_MONOTONIC_H
#define NETLOGGER_BASE_MONOTONIC_H

#include <netlogger.h>
#include <pthread.h>
#include <time.h>

/* Returns the clock's time in nanoseconds. Safe in signal handlers. */
static inline int64_t nl_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NL_NS_PER_SECOND + now.tv_nsec;
}

/* Returns the processor time that the calling thread has used, in nanoseconds. */
static inline int64_t nl_thread_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * NL_NS_PER_SECOND + used.tv_nsec;
}

/* Returns the clock's time in milliseconds. Safe in signal handlers. */
static inline int64_t nl_monotonic_ms(void)
{
    return nl_monotonic_ns() / 1000000;
}

/* Converts a time of the clock in nanoseconds to a timespec. */
static inline struct timespec nl_monotonic_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NL_NS_PER_SECOND, .tv_nsec = ns % NL_NS_PER_SECOND};
}

/* Returns the clock's time `ms` milliseconds from now. */
static inline struct timespec nl_monotonic_in_ms(int64_t ms)
{
    return nl_monotonic_timespec(nl_monotonic_ns() + ms * 1000000);
}

/* Initializes a condition variable whose pthread_cond_timedwait uses this clock. */
static inline void nl_monotonic_cond_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

#endif
