/*
 * Time.
 *
 * Every time is an int64_t count of nanoseconds since 1970-01-01 00:00:00 UTC, leap seconds not counted (POSIX time),
 * so 1678 to 2261 can be said. Names end in _ns. In text a time is a ULM DATE (YYYYMMDDhhmmss and up to nine digits of
 * fraction), an ISO 8601 time in UTC or with an offset, or decimal seconds since 1970.
 */
#ifndef NETLOGGER_TIME_H
#define NETLOGGER_TIME_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

#define NL_NS_PER_SECOND INT64_C(1000000000)
#define NL_TIME_TEXT_SIZE 40 /* room for any time in text, with its terminating NUL */

/* How a fraction with fewer than six digits is read. Old GridFTP servers print microseconds unpadded: .2102 is 2102 us.
 */
typedef enum nl_fraction {
    NL_FRACTION_DECIMAL = 0,  /* .2102 is 0.2102 s */
    NL_FRACTION_MICROSECONDS, /* .2102 is 0.002102 s; seven or more digits are decimal */
} nl_fraction;

/* The real-time clock now, nanoseconds since 1970 UTC. Thread- and signal-safe. */
NL_API int64_t nl_time_now_ns(void);

/*
 * Reads a time in any of the forms above from text[0..size), all of which must be the time.
 * On NL_OK *time_ns is set; on NL_MALFORMED it is untouched and the reason is in nl_error_message().
 */
NL_API nl_status nl_time_parse(const char *text, size_t size, nl_fraction fraction, int64_t *time_ns);

/*
 * Writes a time as a ULM DATE into out, NUL-terminated, and returns its length. Six digits of fraction, nine when the
 * time is not a whole number of microseconds (so that nothing is lost). Years outside 0001 to 9999 cannot occur.
 */
NL_API size_t nl_time_format_ulm(int64_t time_ns, char out[NL_TIME_TEXT_SIZE]);

NL_END_DECLS
#endif
