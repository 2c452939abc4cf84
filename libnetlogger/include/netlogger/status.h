/*
 * Results of calls.
 *
 * A call that can fail at run time returns an nl_status, or a pointer that is NULL on failure. A negative status is a
 * failure. The other values are ordinary results. The library keeps one message per thread for the latest failure. The
 * message is a chain from the operation to the cause: "open x-netlog://dolly:14830: connect: Connection refused". A
 * program prints the message after the program's name.
 *
 * The library never ends the program. An invalid call (an unknown format, an invalid level, NULL where a pointer is
 * required) returns NL_FAILED, NULL or nothing, and has no other effect; the message names the function. A call that
 * cannot allocate memory fails with the message "out of memory".
 */
#ifndef NETLOGGER_STATUS_H
#define NETLOGGER_STATUS_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define NL_BEGIN_DECLS extern "C" {
#define NL_END_DECLS }
#define NL_PRIVATE_CAST(type, value) static_cast<type>(value)
#else
#define NL_BEGIN_DECLS
#define NL_END_DECLS
#define NL_PRIVATE_CAST(type, value) ((type)(value))
#endif

/* Marks a symbol that the shared library exports. All other symbols are hidden. */
#define NL_API __attribute__((visibility("default")))
/* Lets the compiler check a printf(3) format. The arguments are the indexes, from 1, of the format and of its first
 * argument. */
#define NL_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))

NL_BEGIN_DECLS

typedef enum nl_status {
    NL_OK = 0,         /* done */
    NL_END = 1,        /* there are no more records */
    NL_AGAIN = 2,      /* no record is available now; call again later */
    NL_OFF = 3,        /* logging or this level is switched off; nothing was written */
    NL_FAILED = -1,    /* nl_error_message() has the reason */
    NL_MALFORMED = -2, /* the input is invalid; nl_error_message() has the reason */
} nl_status;

/* Returns the message for this thread's latest failure, without a newline, or "" if no call has failed. Never NULL. The
 * library owns the text, which is valid until this thread's next failing call. */
NL_API const char *nl_error_message(void);

/* Sets this thread's message to "". */
NL_API void nl_error_clear(void);

/* Returns the version of the library, "MAJOR.MINOR.PATCH", in static storage. */
NL_API const char *nl_version(void);

NL_END_DECLS
#endif
