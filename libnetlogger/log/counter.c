/* In a file of its own, so that a test can say that there is no counter. */
#include "config.h"

#include "log/clock.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

bool nl_clock_has_counter(void)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;
    /* Intel SDM vol. 3B, 18.17.1: invariant TSC. */
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
#else
    return false;
#endif
}
