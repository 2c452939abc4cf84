#include "config.h"

#include "convert/strace_time.h"

#include "base/error.h"

/*
 * Finds the local date of the trace's first time of day (tod, in seconds after midnight), from --base or from the time
 * of the last write to the file.
 */
static void find_day(strace_clock *c, const import_about *about, unsigned tod)
{
    time_t written = (time_t)((about != NULL ? about->written_ns : 0) / NL_NS_PER_SECOND);
    if (about != NULL && about->has_base)
        written = (time_t)(about->base_ns / NL_NS_PER_SECOND);
    localtime_r(&written, &c->day);
    unsigned last = (unsigned)(c->day.tm_hour * 3600 + c->day.tm_min * 60 + c->day.tm_sec);
    if (about != NULL && !about->has_base && about->written_ns != 0 && tod > last)
        c->day.tm_mday--; /* the trace cannot begin later than the last write */
    c->has_day = true;
    c->tod = tod + 1; /* makes read_clock compute the time, because it differs from tod */
}

/* Reads HH:MM:SS. Returns false if the text has another form. */
static bool read_clock(strace_clock *c, nl_string text, const import_about *about, int64_t *time_ns)
{
    enum { HALF_DAY_S = 43200 };
    nl_string hours, minutes, seconds;
    uint64_t h, m, s;
    text_digits(&text, &hours);
    text_skip(&text, 1);
    text_digits(&text, &minutes);
    text_skip(&text, 1);
    text_digits(&text, &seconds);
    if (!strace_number_below(hours, 24, &h) || !strace_number_below(minutes, 60, &m) ||
        !strace_number_below(seconds, 61, &s))
        return false;
    unsigned tod = (unsigned)(h * 3600 + m * 60 + s);
    if (!c->has_day)
        find_day(c, about, tod);
    if (tod != c->tod) {
        if (tod + HALF_DAY_S < c->tod)
            c->day.tm_mday++;
        else if (c->tod + HALF_DAY_S < tod) /* a late line from before midnight */
            c->day.tm_mday--;
        struct tm when = c->day;
        when.tm_hour = (int)h;
        when.tm_min = (int)m;
        when.tm_sec = (int)s;
        when.tm_isdst = -1;
        c->tod_time_ns = (int64_t)mktime(&when) * NL_NS_PER_SECOND;
        c->tod = tod;
    }
    *time_ns = c->tod_time_ns;
    return true;
}

bool strace_time(strace_clock *c, const strace_line *l, const import_about *about, int64_t *time_ns)
{
    static const uint64_t minimum = 100000000, maximum = INT64_MAX / NL_NS_PER_SECOND; /* times in 1973 and 2262 */
    nl_string text = l->time, digits;
    uint64_t seconds;
    if (l->is_clock) {
        if (!read_clock(c, l->time, about, time_ns))
            return nl_error_false(NL_ERROR_INVALID, "invalid time");
    } else if (text_digits(&text, &digits), !strace_number_below(digits, maximum, &seconds)) {
        return nl_error_false(NL_ERROR_INVALID, "invalid time");
    } else if (seconds < minimum) {
        return nl_error_false(NL_ERROR_INVALID, "relative time; run strace with -tt or -ttt");
    } else {
        *time_ns = (int64_t)seconds * NL_NS_PER_SECOND;
    }
    *time_ns += strace_fraction_ns(l->time);
    return true;
}
