/* Times as text, for the record formats. The module has no state; any thread may call it. */
#ifndef NETLOGGER_BASE_TIME_INTERNAL_H
#define NETLOGGER_BASE_TIME_INTERNAL_H

#include <netlogger.h>

/*
 * Like nl_time_parse, but rejects a bare number of seconds. A truncated ULM time, such as "20000330" instead of
 * "20000330112320", would otherwise be read as a time in 1970.
 */
nl_status nl_time_parse_calendar(const char *text, size_t size, nl_fraction fraction, int64_t *time_ns);

/*
 * Parses the day at the start of text: YYYYMMDD, or YYYY-MM-DD if iso is true. All bytes of the day must be readable.
 * Sets *begin_ns to the start of the day, in nanoseconds since 1970. Returns false if the day is invalid, or before
 * 1700 or after 2200.
 */
bool nl_time_parse_day(const char *text, bool iso, int64_t *begin_ns);

/*
 * Caches the latest parsed day, because most consecutive records have the same day. Initialize the structure with
 * zeros.
 */
typedef struct nl_known_day {
    uint64_t digits;  /* the eight bytes of the day's text */
    int64_t begin_ns; /* start of the day, in nanoseconds since 1970 */
} nl_known_day;

/*
 * Parses YYYYMMDDhhmmss.ffffff, which is faster than nl_time_parse. Returns false if text has another form or is
 * invalid.
 */
bool nl_time_parse_usual(const char *text, size_t size, nl_known_day *known, int64_t *time_ns);

/*
 * Caches the text of the latest formatted second, because most consecutive records have the same second. Initialize the
 * structure with zeros, and use it for only one format.
 */
typedef struct nl_known_second {
    int64_t seconds; /* since 1970 */
    size_t size;     /* size of the text in bytes; 0 means that the cache is empty */
    char text[20];
} nl_known_second;

/* Like nl_time_format_ulm, but writes the form of BP records, such as 2012-03-14T14:04:46.000000Z. */
size_t nl_time_format_iso(int64_t time_ns, char out[NL_TIME_TEXT_SIZE]);

/* Like nl_time_format_ulm and nl_time_format_iso, but faster for times in the second that `known` caches. */
size_t nl_time_put_ulm(int64_t time_ns, nl_known_second *known, char out[NL_TIME_TEXT_SIZE]);
size_t nl_time_put_iso(int64_t time_ns, nl_known_second *known, char out[NL_TIME_TEXT_SIZE]);

/* "00" to "99" in sequence. */
extern const char nl_two_digits[200];

/* Returns the number of digits at the start of text[0..size). */
static inline size_t nl_digits(const char *text, size_t size)
{
    size_t count = 0;
    while (count < size && (unsigned char)(text[count] - '0') <= 9)
        count++;
    return count;
}

#endif
