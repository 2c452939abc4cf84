/*
 * The words for a failure, one line a thread. Lower floors set them; each floor that adds something worth knowing puts
 * it in front: nl_error_set("Connection refused"), nl_error_prepend("connect to %s", name).
 */
#ifndef NETLOGGER_BASE_ERROR_H
#define NETLOGGER_BASE_ERROR_H

#include <netlogger.h>

/* Replaces this thread's message. Always returns NL_FAILED, so that a failing function can return it. errno is kept. */
nl_status nl_error_set(const char *format, ...) NL_PRINTF(1, 2);

/* As nl_error_set, with ": " and the words for errno after it. */
nl_status nl_error_set_errno(const char *format, ...) NL_PRINTF(1, 2);

/* Puts words and ": " before this thread's message. Always returns NL_FAILED. errno is kept. */
nl_status nl_error_prepend(const char *format, ...) NL_PRINTF(1, 2);

/* A wrong call by the programmer: says so on standard error and aborts. */
_Noreturn void nl_abort_call(const char *function, const char *what);

/* Aborts when a condition that only a wrong call can break does not hold. */
#define NL_REQUIRE(condition, what)                                                                                    \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            nl_abort_call(__func__, what);                                                                             \
    } while (0)

#endif
