/*
 * What valgrind cannot follow: a process that may start no thread (its own need one), a child that ends with the
 * memory of its parent's threads, which it calls lost, and memory without a file that is mapped twice: there it has no
 * mremap for it. Such tests are left out under it; they run everywhere else.
 */
#ifndef NETLOGGER_TESTS_UNDER_VALGRIND_H
#define NETLOGGER_TESTS_UNDER_VALGRIND_H

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

/* How often something that takes its time is done: a tenth of that under it, which is thirty times slower. */
static inline unsigned times_here(unsigned times)
{
#ifdef RUNNING_ON_VALGRIND
    return RUNNING_ON_VALGRIND ? times / 10 : times;
#else
    return times;
#endif
}

/* To be called in main, after <cmocka.h>; pattern is a glob of test names. */
static inline void leave_out_under_valgrind(const char *pattern)
{
#ifdef RUNNING_ON_VALGRIND
    if (RUNNING_ON_VALGRIND)
        cmocka_set_skip_filter(pattern);
#else
    (void)pattern;
#endif
}

#endif
