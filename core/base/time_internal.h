/*
 * Time in text, for the codecs.
 *
 * nl_time_parse takes every form of a time, bare seconds too. A ULM DATE must not: "20000330", cut from
 * "20000330112320", would be a day in 1970.
 */
#ifndef NETLOGGER_BASE_TIME_INTERNAL_H
#define NETLOGGER_BASE_TIME_INTERNAL_H

#include <netlogger.h>

#include "base/time_internal.h"

/* As nl_time_parse, but only a ULM DATE or an ISO 8601 time: no bare seconds. */
nl_status nl_time_parse_calendar(const char *text, size_t size, nl_fraction fraction, int64_t *time_ns);

/* A day in text, kept for the next time that is in it: most records of a row are. Zeroes at first. */
typedef struct nl_known_day {
    uint64_t digits; /* its eight bytes */
    int64_t begin_ns;
} nl_known_day;

/*
 * As nl_time_parse_calendar, of YYYYMMDDhhmmss.ffffff alone, which is the same by any reading of the fraction. False,
 * without a message: it is none, or no time.
 */
bool nl_time_parse_usual(const char *text, size_t size, nl_known_day *known, int64_t *time_ns);

/* A second in text, kept for the next time that is in it: most records of a row are. Zeroes at first; one format's. */
typedef struct nl_known_second {
    int64_t seconds;
    size_t size;
    char text[20];
} nl_known_second;

/* As nl_time_format_ulm, in the form of BP: 2012-03-14T14:04:46.000000Z. */
size_t nl_time_format_iso(int64_t time_ns, char out[NL_TIME_TEXT_SIZE]);

/* As nl_time_format_ulm and nl_time_format_iso. */
size_t nl_time_put_ulm(int64_t time_ns, nl_known_second *known, char out[NL_TIME_TEXT_SIZE]);
size_t nl_time_put_iso(int64_t time_ns, nl_known_second *known, char out[NL_TIME_TEXT_SIZE]);

/* "00" to "99", one behind the other. */
extern const char nl_two_digits[200];

/* How many digits text begins with, looking at no more than size bytes. */
static inline size_t nl_digits(const char *text, size_t size)
{
    size_t count = 0;
    while (count < size && (unsigned char)(text[count] - '0') <= 9)
        count++;
    return count;
}

#endif
