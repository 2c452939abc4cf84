/*
 * Injects faults into a program with LD_PRELOAD=fault.so and environment variables:
 *
 *   FAULT_STORE=SECONDS       delays each pwrite() by SECONDS
 *   FAULT_STORE_LOCK=SECONDS  holds a lock in pwrite() for SECONDS +/- 50 %, one thread at a time
 *   FAULT_CLOCK=SECONDS       sets the time of day ahead by SECONDS, or back if negative
 *
 * FAULT_CLOCK does what libfaketime does, but only for the real-time clock.
 */
#define _GNU_SOURCE 1

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static double sleep_s, hold_s;
static long long ahead_ns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double setting(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? strtod(text, NULL) : 0;
}

__attribute__((constructor)) static void read_settings(void)
{
    sleep_s = setting("FAULT_STORE");
    hold_s = setting("FAULT_STORE_LOCK");
    ahead_ns = (long long)(setting("FAULT_CLOCK") * 1e9);
}

static void wait_for(double seconds)
{
    struct timespec wait = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&wait, NULL);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    if (sleep_s > 0)
        wait_for(sleep_s);
    if (hold_s > 0) {
        static unsigned seed; /* protected by the lock */
        pthread_mutex_lock(&lock);
        wait_for(hold_s * (0.5 + (double)rand_r(&seed) / RAND_MAX));
        pthread_mutex_unlock(&lock);
    }
    return syscall(SYS_pwrite64, fd, data, size, offset);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    return pwrite64(fd, data, size, offset);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && ahead_ns != 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        long long ns = now->tv_nsec + ahead_ns % 1000000000;
        now->tv_sec += ahead_ns / 1000000000 + (ns >= 1000000000) - (ns < 0);
        now->tv_nsec = (ns + 1000000000) % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
    return result;
}

time_t time(time_t *now)
{
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now != NULL)
        *now = precise.tv_sec;
    return precise.tv_sec;
}
