/*
 * What calls return.
 *
 * A call that can fail at run time returns an nl_status, or a pointer that is NULL on failure. A negative status is a
 * failure; the others are ordinary outcomes. For each failure the library keeps one line of words per thread: what was
 * being done, then why, then why that ("open x-netlog://dolly:14830: connect: Connection refused"). A program prints it
 * after its own name.
 *
 * The library never ends the program. A wrong call (an unknown format, an invalid level, NULL where a pointer is
 * needed) fails like any other: it returns NL_FAILED, NULL or nothing, changes nothing, and the message names the
 * function. When memory runs out, a call fails with the message "out of memory".
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

/* Marks what the shared library exports; everything else is hidden. */
#define NL_API __attribute__((visibility("default")))
/* Marks a function of a format as printf(3) has it: which argument that is, and the first of those for it. */
#define NL_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))

NL_BEGIN_DECLS

typedef enum nl_status {
    NL_OK = 0,         /* done */
    NL_END = 1,        /* there is no more and never will be */
    NL_AGAIN = 2,      /* nothing now, more may come: call again later */
    NL_OFF = 3,        /* logging, or this level, is switched off: nothing was written */
    NL_FAILED = -1,    /* nl_error_message() says what and why */
    NL_MALFORMED = -2, /* the input is not what it should be; nl_error_message() says how */
} nl_status;

/*
 * The words for this thread's latest failure, without a newline; "" when there was none.
 * Never NULL. Owned by the library, valid until this thread's next failing call.
 */
NL_API const char *nl_error_message(void);

/* Forgets this thread's latest failure. */
NL_API void nl_error_clear(void);

/* The library's version, "MAJOR.MINOR.PATCH"; static storage. */
NL_API const char *nl_version(void);

NL_END_DECLS
#endif
