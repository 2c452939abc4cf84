/*
 * The error type of the whole tree. Each thread has one error, which consists of a code and a message. Programs and
 * protocols base decisions on the code; the message is for people. Callers add context in front of the message:
 *
 *   nl_error_set(NL_ERROR_UNREACHABLE, "connection refused");
 *   nl_error_prepend("connect to %s", name);
 *
 * A function that fails sets the error and returns NL_FAILED, NL_MALFORMED, false, NULL or -1. Its caller returns a
 * failure too, or prints nl_error_message(). No code compares messages.
 */
#ifndef NETLOGGER_BASE_ERROR_H
#define NETLOGGER_BASE_ERROR_H

#include <netlogger.h>

typedef enum nl_error_code {
    NL_ERROR_NONE,
    NL_ERROR_SYSTEM,      /* a system call or another library failed for a reason that has no code below */
    NL_ERROR_MEMORY,      /* out of memory */
    NL_ERROR_CALL,        /* a function was called with invalid arguments */
    NL_ERROR_INVALID,     /* invalid input: an argument, a file, a record, a request */
    NL_ERROR_NOT_FOUND,   /* a named file, host or object does not exist */
    NL_ERROR_PERMISSION,  /* permission denied, or a certificate is not accepted */
    NL_ERROR_UNREACHABLE, /* the peer cannot be reached, or the connection broke */
    NL_ERROR_TIMEOUT,     /* no reply in time */
    NL_ERROR_PROTOCOL,    /* the peer does not follow the protocol */
    NL_ERROR_LIMIT,       /* a limit is reached */
    NL_ERROR_FULL,        /* a disk or spool is full */
    NL_ERROR_BUSY,        /* the object is in use by another process, or is not ready */
    NL_ERROR_UNSUPPORTED, /* not supported by this build, kernel or destination */
} nl_error_code;

enum { NL_ERROR_MESSAGE_SIZE = 1020 };

/*
 * A copy of an error. A caller makes a copy to keep the error, or to pass the error to another thread. All zeros mean
 * no error.
 */
typedef struct nl_error {
    nl_error_code code;
    char message[NL_ERROR_MESSAGE_SIZE]; /* longer messages are truncated */
} nl_error;

/* Sets this thread's error. Returns NL_FAILED. Keeps errno. */
nl_status nl_error_set(nl_error_code code, const char *format, ...) NL_PRINTF(2, 3);

/* Like nl_error_set, with the code that corresponds to errno. Appends ": " and the text of errno to the message. */
nl_status nl_error_set_errno(const char *format, ...) NL_PRINTF(1, 2);

/* Like nl_error_set_errno, after a failed open() of a path. If the path's directory is missing, the message names it.
 */
nl_status nl_error_set_open(const char *path);

/* Like nl_error_set, for functions that return false or NULL. */
#define nl_error_false(...) (nl_error_set(__VA_ARGS__), false)
#define nl_error_null(...) (nl_error_set(__VA_ARGS__), NULL)

/* Prepends context and ": " to this thread's message. Returns NL_FAILED. Keeps errno and the code. */
nl_status nl_error_prepend(const char *format, ...) NL_PRINTF(1, 2);

/* Sets NL_ERROR_CALL for an invalid call of the named function. Returns NL_FAILED. */
nl_status nl_error_call(const char *function, const char *problem);

/* Returns the code of this thread's latest error; NL_ERROR_NONE if there is no error. */
nl_error_code nl_error_get_code(void);

/* Copies this thread's error to *error, with code NL_ERROR_NONE if there is no error. */
void nl_error_save(nl_error *error);

/* Makes *error this thread's error. Returns NL_FAILED. */
nl_status nl_error_restore(const nl_error *error);

/*
 * Sets NL_ERROR_CALL and returns from a function if its caller violated a condition. The third argument is the returned
 * value. In a void function, leave it empty:
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
