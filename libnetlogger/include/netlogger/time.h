/*
 * Time.
 *
 * A time is an int64_t number of nanoseconds since 1970-01-01 00:00:00 UTC without leap seconds (POSIX time). Times
 * cover the years 1678 to 2261. Names of times end in _ns. The text of a time is a ULM DATE (YYYYMMDDhhmmss with 0 to 9
 * fractional digits) or an ISO 8601 time, in UTC or with an offset. It can also be a decimal number of seconds since
 * 1970.
 */
#ifndef NETLOGGER_TIME_H
#define NETLOGGER_TIME_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

#define NL_NS_PER_SECOND INT64_C(1000000000)
#define NL_TIME_TEXT_SIZE 40 /* size of a buffer for the text of any time and a NUL */

/*
 * How to read fractional seconds of fewer than six digits. Old GridFTP servers print microseconds without leading
 * zeros: .2102 is 2102 us.
 */
typedef enum nl_fraction {
    NL_FRACTION_DECIMAL = 0,  /* .2102 is 0.2102 s */
    NL_FRACTION_MICROSECONDS, /* .2102 is 0.002102 s; seven or more digits are decimal */
} nl_fraction;

/* Returns the time of the real-time clock. Safe in any thread and in signal handlers. */
NL_API int64_t nl_time_now_ns(void);

/*
 * Parses text[0..size), which must be a time in one of the forms above and nothing else. Returns NL_OK and sets
 * *time_ns, or returns NL_MALFORMED with the reason in nl_error_message() and leaves *time_ns unchanged. Thread-safe.
 */
NL_API nl_status nl_time_parse(const char *text, size_t size, nl_fraction fraction, int64_t *time_ns);

/*
 * Writes a time as a ULM DATE with a NUL into `out` and returns its length. The fraction has six digits, or nine if the
 * time is not a whole number of microseconds. Safe in any thread and in signal handlers.
 */
NL_API size_t nl_time_format_ulm(int64_t time_ns, char out[NL_TIME_TEXT_SIZE]);

NL_END_DECLS
#endif
