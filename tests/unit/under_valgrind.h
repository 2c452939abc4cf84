/*
 * Skips tests that valgrind does not support. Such tests do one of three things: they run a process that must not start
 * threads, although valgrind itself needs a thread; they run a child that exits with the memory of its parent's
 * threads, which valgrind reports as leaked; or they map anonymous memory twice, which valgrind's mremap cannot do. The
 * tests run everywhere else.
 */
#ifndef NETLOGGER_TESTS_UNDER_VALGRIND_H
#define NETLOGGER_TESTS_UNDER_VALGRIND_H

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

/*
 * Returns the number of repetitions for a slow loop. Under valgrind, which is about 30 times slower, this is a tenth of
 * `times`, and also with NL_QUICK=1, which ./check sets without --full.
 */
static inline unsigned times_here(unsigned times)
{
#ifdef RUNNING_ON_VALGRIND
    if (RUNNING_ON_VALGRIND)
        return times / 10;
#endif
    const char *quick = getenv("NL_QUICK");
    return quick != NULL && strcmp(quick, "1") == 0 ? times / 10 : times;
}

/* Call it in main. Include <cmocka.h> before this header. pattern is a glob of test names. */
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
