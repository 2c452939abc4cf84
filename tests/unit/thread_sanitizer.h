/*
 * The thread sanitizer does not support a process that forks while it has threads and whose child then starts threads.
 * Builds with this sanitizer skip the tests that do so, all of which have "fork" in their names. The other sanitizers
 * and valgrind run these tests.
 */
#ifndef NETLOGGER_TESTS_THREAD_SANITIZER_H
#define NETLOGGER_TESTS_THREAD_SANITIZER_H

#if defined(__SANITIZE_THREAD__)
#define UNDER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_THREAD_SANITIZER 1
#endif
#endif

/* Call it in main. Include <cmocka.h> before this header. */
static inline void leave_out_what_the_thread_sanitizer_cannot(void)
{
#ifdef UNDER_THREAD_SANITIZER
    cmocka_set_skip_filter("*fork*");
#endif
}

#endif
