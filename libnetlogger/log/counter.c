/* Returns whether the time-stamp counter is usable. This code is in a separate file, so that a test can replace the
 * file to simulate a machine without a counter. */
#include "config.h"

#include "log/clock.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool is_invariant(void)
{
    unsigned a, b, c, d;
    /* Intel SDM vol. 3B, 18.17.1: invariant TSC. */
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
}

/*
 * Returns whether the kernel lists the counter as a clock source. The kernel removes the counter from this list if the
 * counters of the processors differ or have a wrong rate. If the list is missing, as in a container with an empty /sys,
 * the function trusts the processor.
 */
static bool is_trusted(void)
{
    char list[256] = " ";
    int fd = open("/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, list + 1, sizeof list - 2) : -1;
    if (fd >= 0)
        close(fd);
    if (size <= 0)
        return true;
    list[size] = ' '; /* replaces the newline */
    return strstr(list, " tsc ") != NULL;
}

bool nl_clock_has_counter(void)
{
    static int known; /* 0: not determined yet; 1: no; 2: yes */
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == 0) {
        int saved = errno;
        answer = is_invariant() && is_trusted() ? 2 : 1;
        errno = saved;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == 2;
}

#else

bool nl_clock_has_counter(void)
{
    return false;
}

#endif
