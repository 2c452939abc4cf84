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

/* Reports a wrong call by the programmer of the host program. Returns NL_FAILED. */
nl_status nl_error_call(const char *function, const char *problem);

/*
 * Returns from a function whose caller broke a condition, with the value behind problem (none from a void function):
 *
 *   NL_REQUIRE(record != NULL, "record is NULL", NL_FAILED);
 */
#define NL_REQUIRE(condition, problem, ...)                                                                            \
    do {                                                                                                               \
        if (__builtin_expect(!(condition), 0)) {                                                                       \
            nl_error_call(__func__, problem);                                                                          \
            return __VA_ARGS__;                                                                                        \
        }                                                                                                              \
    } while (0)

#endif
