/*
 * Injects faults into a program with LD_PRELOAD=fault.so and environment variables:
 *
 *   FAULT_STORE=SECONDS       delays each pwrite() by SECONDS
 *   FAULT_STORE_LOCK=SECONDS  holds a lock in pwrite() for SECONDS +/- 50 %, one thread at a time
 *   FAULT_FSYNC=SECONDS[,PART], FAULT_CONNECT=..., FAULT_LOOKUP=...
 *                             delays each fsync(), connect() over IPv4 or getaddrinfo(), or the share PART (0 to 1) of
 *                             the calls
 *   FAULT_WORK_LOCK=1         lets one thread at a time sleep
 *   FAULT_WORK_BEAT=SECONDS   ends sleeps at multiples of SECONDS
 *   FAULT_WORK_COLD=SECONDS,DELAY  delays sleeps by DELAY until SECONDS after the first sleep
 *   FAULT_CLOCK=SECONDS       sets the time of day ahead by SECONDS, or back if negative
 *
 * FAULT_CLOCK does what libfaketime does, but only for the real-time clock. The FAULT_WORK variables are for programs
 * that sleep to simulate work. They do not change sleeps shorter than 1 ms.
 */
#define _GNU_SOURCE 1

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static double sleep_s, hold_s;
static long long ahead_ns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A delay in some of the calls of a function. */
typedef struct slow_call {
    double seconds, part;
} slow_call;

static slow_call slow_fsync, slow_connect, slow_lookup,
    cold; /* for cold, the members are the duration of the effect and the delay, in seconds */
static double beat_s;
static bool lock_sleeps;

static double setting(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? strtod(text, NULL) : 0;
}

static slow_call pair_setting(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    slow_call result = {text != NULL ? strtod(text, &end) : 0, 1};
    if (end != NULL && *end == ',')
        result.part = strtod(end + 1, NULL);
    return result;
}

__attribute__((constructor)) static void read_settings(void)
{
    sleep_s = setting("FAULT_STORE");
    hold_s = setting("FAULT_STORE_LOCK");
    slow_fsync = pair_setting("FAULT_FSYNC");
    slow_connect = pair_setting("FAULT_CONNECT");
    slow_lookup = pair_setting("FAULT_LOOKUP");
    cold = pair_setting("FAULT_WORK_COLD");
    beat_s = setting("FAULT_WORK_BEAT");
    lock_sleeps = setting("FAULT_WORK_LOCK") > 0;
    ahead_ns = (long long)(setting("FAULT_CLOCK") * 1e9);
}

static void wait_for(double seconds)
{
    struct timespec wait = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    syscall(SYS_nanosleep, &wait, NULL);
}

static void delay(slow_call slow)
{
    if (slow.seconds > 0 && (double)random() / RAND_MAX < slow.part)
        wait_for(slow.seconds);
}

int fsync(int fd)
{
    delay(slow_fsync);
    return (int)syscall(SYS_fsync, fd);
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    if (address->sa_family == AF_INET)
        delay(slow_connect);
    return (int)syscall(SYS_connect, fd, address, size);
}

int getaddrinfo(const char *restrict host, const char *restrict port, const struct addrinfo *restrict hints,
                struct addrinfo **restrict result)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    delay(slow_lookup);
    return real(host, port, hints, result);
}

static double seconds_on(clockid_t clock)
{
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request, struct timespec *left)
{
    static double first_s;
    double now_s = seconds_on(CLOCK_MONOTONIC);
    double length_s = (double)request->tv_sec + (double)request->tv_nsec / 1e9;
    if ((flags & TIMER_ABSTIME) != 0)
        length_s -= seconds_on(clock);
    if (length_s < 0.001)
        return syscall(SYS_clock_nanosleep, clock, flags, request, left) == 0 ? 0 : errno;
    if (lock_sleeps)
        pthread_mutex_lock(&lock);
    if (first_s == 0)
        first_s = now_s;
    wait_for(length_s + (now_s - first_s < cold.seconds ? cold.part : 0));
    if (lock_sleeps)
        pthread_mutex_unlock(&lock);
    if (beat_s > 0)
        wait_for(beat_s - fmod(seconds_on(CLOCK_REALTIME), beat_s));
    return 0;
}

int nanosleep(const struct timespec *request, struct timespec *left)
{
    int result = clock_nanosleep(CLOCK_MONOTONIC, 0, request, left);
    errno = result;
    return result == 0 ? 0 : -1;
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
