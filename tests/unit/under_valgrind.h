/*
 * Skips tests that valgrind does not support: tests in which a process must not start threads, because valgrind itself
 * needs one; in which a child exits with the memory of its parent's threads, which valgrind reports as leaked; and in
 * which anonymous memory is mapped twice, because valgrind's mremap cannot do this. The tests run everywhere else.
 */
#ifndef NETLOGGER_TESTS_UNDER_VALGRIND_H
#define NETLOGGER_TESTS_UNDER_VALGRIND_H

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

/*
 * Returns the number of repetitions for a slow loop: a tenth of times under valgrind, which is about 30 times slower,
 * and a quarter with NL_QUICK=1, which ./check sets without --full.
 */
static inline unsigned times_here(unsigned times)
{
#ifdef RUNNING_ON_VALGRIND
    if (RUNNING_ON_VALGRIND)
        return times / 10;
#endif
    const char *quick = getenv("NL_QUICK");
    return quick != NULL && strcmp(quick, "1") == 0 ? times / 4 : times;
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
