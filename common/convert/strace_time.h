/* The times of strace's lines: since 1970, or of a day that is found out, and followed past midnight. */
#ifndef NETLOGGER_CONVERT_STRACE_TIME_H
#define NETLOGGER_CONVERT_STRACE_TIME_H

#include "convert/strace_line.h"

#include <time.h>

/* Zeroes at first. */
typedef struct strace_clock {
    bool has_day;
    struct tm day;       /* of the times that are read now */
    unsigned tod;        /* the latest time of day, in seconds */
    int64_t tod_time_ns; /* of that second */
} strace_clock;

/* The time of a line. What is wrong with it; NULL: nothing. */
const char *strace_time(strace_clock *c, const strace_line *l, const import_about *about, int64_t *time_ns);

#endif
