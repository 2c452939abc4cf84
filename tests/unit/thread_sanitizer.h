/*
 * What the thread sanitizer cannot follow: a process with threads that forks, and whose child starts threads. Tests
 * that do so, all with "fork" in their names, are left out in its builds; the other sanitizers and valgrind run them.
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

/* To be called in main, after <cmocka.h>. */
static inline void leave_out_what_the_thread_sanitizer_cannot(void)
{
#ifdef UNDER_THREAD_SANITIZER
    cmocka_set_skip_filter("*fork*");
#endif
}

#endif
