/*
 * Converts the times in strace's lines, which are seconds since 1970 or times of day. Only one thread at a time may use
 * a clock.
 */
#ifndef NETLOGGER_CONVERT_STRACE_TIME_H
#define NETLOGGER_CONVERT_STRACE_TIME_H

#include "convert/strace_line.h"

#include <time.h>

/* Initialize the structure with zeros. */
typedef struct strace_clock {
    bool has_day;
    struct tm day;
    unsigned tod;        /* the latest time of day, in seconds */
    int64_t tod_time_ns; /* the time of that second since 1970 */
} strace_clock;

/* Converts the time of a line to nanoseconds since 1970. Returns false and sets the error on failure. */
bool strace_time(strace_clock *c, const strace_line *l, const import_about *about, int64_t *time_ns);

#endif
