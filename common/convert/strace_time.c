#include "config.h"

#include "convert/strace_time.h"

/* The local day on which an input began that has such a time of day and was written last at written_ns. */
static void find_day(strace_clock *c, const import_about *about, unsigned tod)
{
    time_t written = (time_t)((about != NULL ? about->written_ns : 0) / NL_NS_PER_SECOND);
    if (about != NULL && about->has_base)
        written = (time_t)(about->base_ns / NL_NS_PER_SECOND);
    localtime_r(&written, &c->day);
    unsigned last = (unsigned)(c->day.tm_hour * 3600 + c->day.tm_min * 60 + c->day.tm_sec);
    if (about != NULL && !about->has_base && about->written_ns != 0 && tod > last)
        c->day.tm_mday--; /* it can't have begun after it ended: it began the day before */
    c->has_day = true;
    c->tod = tod + 1; /* not known yet */
}

/* HH:MM:SS on the day. */
static bool read_clock(strace_clock *c, nl_string text, const import_about *about, int64_t *time_ns)
{
    enum { HALF_A_DAY = 43200 };
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
        if (tod + HALF_A_DAY < c->tod)
            c->day.tm_mday++;
        else if (c->tod + HALF_A_DAY < tod) /* back over midnight: a line that is a little late */
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

const char *strace_time(strace_clock *c, const strace_line *l, const import_about *about, int64_t *time_ns)
{
    static const uint64_t least = 100000000, most = INT64_MAX / NL_NS_PER_SECOND; /* 1973, 2262 */
    nl_string text = l->time, digits;
    uint64_t seconds;
    if (l->is_clock) {
        if (!read_clock(c, l->time, about, time_ns))
            return "the time can't be read";
    } else if (text_digits(&text, &digits), !strace_number_below(digits, most, &seconds)) {
        return "the time can't be read";
    } else if (seconds < least) {
        return "the time is none of a day (strace -tt) or since 1970 (strace -ttt)";
    } else {
        *time_ns = (int64_t)seconds * NL_NS_PER_SECOND;
    }
    *time_ns += strace_fraction_ns(l->time);
    return NULL;
}
