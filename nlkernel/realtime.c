#include "config.h"

#include "realtime.h"

#include <netlogger.h>

#include <errno.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 7 };

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NL_NS_PER_SECOND + now.tv_nsec;
}

static void realtime_measure(const realtime *r, int64_t *offset_ns, int64_t *error_ns)
{
    *error_ns = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        int64_t before = read_ns(CLOCK_MONOTONIC), real = read_ns(CLOCK_REALTIME), after = read_ns(CLOCK_MONOTONIC);
        int64_t error = (after - before + 1) / 2;
        if (error >= *error_ns)
            continue;
        *error_ns = error;
        *offset_ns = real - (before + (after - before) / 2) + r->namespace_ns;
    }
}

/* Returns the nanoseconds that the time namespace adds to the monotonic clock, but not to the kernel's trace clock. */
static int64_t read_namespace_ns(void)
{
    char line[128];
    long long seconds, nanoseconds;
    int64_t result = 0;
    FILE *file = fopen("/proc/self/timens_offsets", "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "monotonic %lld %lld", &seconds, &nanoseconds) == 2)
            result = seconds * NL_NS_PER_SECOND + nanoseconds;
    fclose(file);
    return result;
}

/* Arms the timer with a distant time (2038), so that the kernel reports each setting of the clock. */
static void arm_timer(realtime *r)
{
    const struct itimerspec never = {.it_value.tv_sec = INT32_MAX};
    uint64_t count;
    if (r->timer_fd >= 0 && read(r->timer_fd, &count, sizeof count) < 0 && errno == EAGAIN)
        return; /* success */
    if (r->timer_fd >= 0)
        timerfd_settime(r->timer_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

void realtime_start(realtime *r)
{
    const struct itimerspec never = {.it_value.tv_sec = INT32_MAX};
    int64_t offset_ns = 0;
    r->timer_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (r->timer_fd >= 0)
        timerfd_settime(r->timer_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
    r->namespace_ns = read_namespace_ns();
    realtime_measure(r, &offset_ns, &r->error_ns);
    atomic_store(&r->offset_ns, offset_ns);
    atomic_store(&r->before_ns, offset_ns);
    atomic_store(&r->since_ns, INT64_MIN);
}

void realtime_stop(realtime *r)
{
    if (r->timer_fd >= 0)
        close(r->timer_fd);
    r->timer_fd = -1;
}

/* Sets the offset for all later events. */
static void set_offset(realtime *r, int64_t offset_ns)
{
    atomic_store(&r->before_ns, atomic_load(&r->offset_ns));
    atomic_store(&r->since_ns, read_ns(CLOCK_MONOTONIC) - r->namespace_ns);
    atomic_store(&r->offset_ns, offset_ns);
}

bool realtime_update(realtime *r)
{
    int64_t offset_ns = 0, error_ns, before_ns = atomic_load(&r->offset_ns);
    arm_timer(r);
    realtime_measure(r, &offset_ns, &error_ns);
    int64_t apart = offset_ns > before_ns ? offset_ns - before_ns : before_ns - offset_ns;
    if (apart <= error_ns + r->error_ns) {
        /* the clock was not set, so keep the measurement with the smaller error */
        if (error_ns < r->error_ns) {
            r->error_ns = error_ns;
            atomic_store(&r->offset_ns, offset_ns);
        }
        return false;
    }
    r->error_ns = error_ns;
    set_offset(r, offset_ns);
    return true;
}
