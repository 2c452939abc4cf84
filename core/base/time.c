#include "config.h"

#include "base/error.h"
#include "base/time_internal.h"

#include <endian.h>
#include <string.h>
#include <time.h>

enum { SECONDS_PER_DAY = 86400, DATE_DIGITS = 14, FRACTION_DIGITS = 9, USUAL_DATE = 21 };

const char nl_two_digits[200] = {"00010203040506070809101112131415161718192021222324"
                                 "25262728293031323334353637383940414243444546474849"
                                 "50515253545556575859606162636465666768697071727374"
                                 "75767778798081828384858687888990919293949596979899"};

typedef struct civil {
    int year;
    unsigned month, day, hour, minute, second;
    unsigned fraction_ns;
    int offset_minutes; /* difference of the time zone from UTC; positive to the east */
} civil;

int64_t nl_time_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NL_NS_PER_SECOND + now.tv_nsec;
}

/*
 * Returns the days from 1970-01-01 to a date (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2013). Years
 * begin in March, so that the leap day is the last day of a year.
 */
static int64_t days_from_civil(int year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int era = (year >= 0 ? year : year - 399) / 400;
    unsigned year_of_era = (unsigned)(year - era * 400);
    unsigned day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return (int64_t)era * 146097 + day_of_era - 719468;
}

/* Converts days since 1970-01-01 to a date, with the inverse algorithm from the same paper. */
static void civil_from_days(int64_t days, civil *date)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned day_of_era = (unsigned)(days - era * 146097);
    unsigned year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned month_from_march = (5 * day_of_year + 2) / 153;
    date->day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    date->month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    date->year = (int)(era * 400) + (int)year_of_era + (date->month <= 2);
}

static bool is_in_month(int year, unsigned month, unsigned day)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (day >= 1 && day <= days[month - 1])
        return true;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && day == 29 && leap;
}

static nl_status time_invalid(const char *what, long long number)
{
    nl_error_set(NL_ERROR_INVALID, "invalid time: %s %lld", what, number);
    return NL_MALFORMED;
}

static nl_status time_invalid_form(const char *problem)
{
    nl_error_set(NL_ERROR_INVALID, "invalid time: %s", problem);
    return NL_MALFORMED;
}

/* Returns the value of two bytes, which must be digits. */
static unsigned two(const char *text)
{
    return (unsigned)(text[0] - '0') * 10 + (unsigned)(text[1] - '0');
}

/*
 * Returns the fraction of a second in digits[0..count), in nanoseconds. Ignores digits after the ninth. With
 * NL_FRACTION_MICROSECONDS, fewer than six digits are a number of microseconds.
 */
static unsigned fraction_ns(const char *digits, size_t count, nl_fraction fraction)
{
    unsigned value = 0;
    size_t used = count < FRACTION_DIGITS ? count : FRACTION_DIGITS;
    for (size_t i = 0; i < used; i++)
        value = value * 10 + (unsigned)(digits[i] - '0');
    if (fraction == NL_FRACTION_MICROSECONDS && count < 6)
        return value * 1000;
    static const unsigned scale[] = {1000000000, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1};
    return count == 0 ? 0 : value * scale[used];
}

static nl_status seconds_to_ns(int64_t seconds, int64_t ns, int64_t *time_ns)
{
    if (seconds < 0 &&
        ns > 0) { /* both numbers now get the same sign, so that the product overflows only if the sum does */
        seconds++;
        ns -= NL_NS_PER_SECOND;
    }
    int64_t total;
    if (__builtin_mul_overflow(seconds, NL_NS_PER_SECOND, &total) || __builtin_add_overflow(total, ns, &total))
        return time_invalid_form("before 1678 or after 2261");
    *time_ns = total;
    return NL_OK;
}

static nl_status civil_to_ns(const civil *t, int64_t *time_ns)
{
    if (t->month < 1 || t->month > 12)
        return time_invalid("month", t->month);
    if (!is_in_month(t->year, t->month, t->day))
        return time_invalid("day", t->day);
    if (t->hour > 23)
        return time_invalid("hour", t->hour);
    if (t->minute > 59)
        return time_invalid("minute", t->minute);
    if (t->second > 60) /* 60: a leap second, which POSIX time counts as the next second */
        return time_invalid("second", t->second);
    int64_t seconds = days_from_civil(t->year, t->month, t->day) * SECONDS_PER_DAY +
                      (int64_t)(t->hour * 3600 + t->minute * 60 + t->second) - t->offset_minutes * 60;
    return seconds_to_ns(seconds, t->fraction_ns, time_ns);
}

/* ---- the usual form, read eight bytes at a time ---- */

static uint64_t eight_bytes(const char *text)
{
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    return le64toh(bytes);
}

/* Returns whether all eight bytes are digits. */
static bool are_digits(uint64_t bytes)
{
    const uint64_t high = 0xf0f0f0f0f0f0f0f0, zeroes = 0x3030303030303030;
    return (bytes & high) == zeroes && ((bytes + 0x0606060606060606) & high) == zeroes;
}

/* Converts eight digits to four numbers from 0 to 99, in every second byte. */
static uint64_t pairs_of(uint64_t digits)
{
    digits -= 0x3030303030303030;
    return (digits * 10 + (digits >> 8)) & 0x00ff00ff00ff00ff;
}

static unsigned pair(uint64_t pairs, unsigned place)
{
    return (unsigned)(pairs >> 16 * place) & 0xff;
}

/* Reads hhmmss.ffffff at text + 8 as nanoseconds of the day. Returns false if the text has another form. */
static inline bool read_usual_clock(const char *text, int64_t *clock_ns)
{
    /* The last eight bytes are a digit, the point, and six digits. */
    uint64_t time = eight_bytes(text + 6), fraction = eight_bytes(text + 13) >> 16 | UINT64_C(0x3030) << 48;
    if (text[14] != '.' || !are_digits(time) || !are_digits(fraction))
        return false;
    time = pairs_of(time);
    fraction = pairs_of(fraction);
    unsigned hour = pair(time, 1), minute = pair(time, 2), second = pair(time, 3);
    unsigned microseconds = pair(fraction, 0) * 10000 + pair(fraction, 1) * 100 + pair(fraction, 2);
    *clock_ns = (int64_t)(hour * 3600 + minute * 60 + second) * NL_NS_PER_SECOND + (int64_t)microseconds * 1000;
    return hour <= 23 && minute <= 59 && second <= 60;
}

bool nl_time_parse_day(const char *text, bool iso, int64_t *begin_ns)
{
    enum { FIRST_YEAR = 1700, LAST_YEAR = 2200 }; /* int64_t can represent every nanosecond of these years */
    const char *month = text + 4 + iso, *day = month + 2 + iso;
    if (nl_digits(text, 4) != 4 || nl_digits(month, 2) != 2 || nl_digits(day, 2) != 2 ||
        (iso && (text[4] != '-' || text[7] != '-')))
        return false;
    civil t = {.year = (int)(two(text) * 100 + two(text + 2)), .month = two(month), .day = two(day)};
    return t.year >= FIRST_YEAR && t.year <= LAST_YEAR && civil_to_ns(&t, begin_ns) == NL_OK;
}

bool nl_time_parse_usual(const char *text, size_t size, nl_known_day *known, int64_t *time_ns)
{
    int64_t clock_ns;
    if (size != USUAL_DATE || !read_usual_clock(text, &clock_ns))
        return false;
    if (eight_bytes(text) != known->digits) {
        int64_t begin_ns;
        if (!nl_time_parse_day(text, false, &begin_ns)) /* the day is invalid, or cannot be cached */
            return nl_time_parse_calendar(text, size, NL_FRACTION_DECIMAL, time_ns) == NL_OK;
        *known = (nl_known_day){eight_bytes(text), begin_ns};
    }
    *time_ns = known->begin_ns + clock_ns;
    return true;
}

/*
 * Parses YYYYMMDDhhmmss with an optional fraction. `text` must begin with 14 digits, followed by its end or a point.
 * Returns NL_OK or NL_MALFORMED.
 */
static nl_status parse_date(const char *text, size_t size, nl_fraction fraction, int64_t *time_ns)
{
    civil t = {
        .year = (int)(two(text) * 100 + two(text + 2)),
        .month = two(text + 4),
        .day = two(text + 6),
        .hour = two(text + 8),
        .minute = two(text + 10),
        .second = two(text + 12),
    };
    if (size > DATE_DIGITS) {
        const char *digits = text + DATE_DIGITS + 1;
        size_t count = nl_digits(digits, size - DATE_DIGITS - 1);
        if (count != size - DATE_DIGITS - 1)
            return time_invalid_form("the fraction contains a character that is not a digit");
        t.fraction_ns = fraction_ns(digits, count, fraction);
    }
    return civil_to_ns(&t, time_ns);
}

/*
 * Parses a separator, unless `separator` is '\0', and two digits after it. Returns false if the text has another form.
 */
static bool parse_two(const char **at, const char *end, char separator, unsigned *value)
{
    const char *text = *at;
    if (separator != '\0') {
        if (text == end || *text != separator)
            return false;
        text++;
    }
    if (nl_digits(text, (size_t)(end - text)) < 2)
        return false;
    *value = two(text);
    *at = text + 2;
    return true;
}

/*
 * Parses a time zone, which must extend to the end: Z, +hh, +hhmm or +hh:mm, or the same forms with -. A missing zone
 * means UTC. Returns false if the text has another form.
 */
static bool parse_zone(const char **at, const char *end, int *offset_minutes)
{
    if (*at == end)
        return true;
    char sign = *(*at)++;
    if (sign == 'Z' || sign == 'z')
        return *at == end;
    unsigned hours, minutes = 0;
    if ((sign != '+' && sign != '-') || !parse_two(at, end, '\0', &hours))
        return false;
    if (*at < end && !parse_two(at, end, **at == ':' ? ':' : '\0', &minutes))
        return false;
    *offset_minutes = (int)(hours * 60 + minutes) * (sign == '-' ? -1 : 1);
    return *at == end && hours <= 23 && minutes <= 59;
}

/* Parses an ISO 8601 time. `text` must begin with four digits and a '-'. Returns NL_OK or NL_MALFORMED. */
static nl_status parse_iso(const char *text, size_t size, nl_fraction fraction, int64_t *time_ns)
{
    const char *end = text + size;
    civil t = {.year = (int)(two(text) * 100 + two(text + 2))};
    text += 4;
    if (!parse_two(&text, end, '-', &t.month) || !parse_two(&text, end, '-', &t.day))
        return time_invalid_form("a date must be YYYY-MM-DD");
    if (text < end && (*text == 'T' || *text == 't' || *text == ' ')) {
        text++;
        if (!parse_two(&text, end, '\0', &t.hour) || !parse_two(&text, end, ':', &t.minute))
            return time_invalid_form("a time of day must be hh:mm or hh:mm:ss");
        if (text < end && *text == ':' && !parse_two(&text, end, ':', &t.second))
            return time_invalid_form("a time of day must be hh:mm or hh:mm:ss");
        if (text < end && (*text == '.' || *text == ',')) {
            size_t count = nl_digits(text + 1, (size_t)(end - text - 1));
            t.fraction_ns = fraction_ns(text + 1, count, fraction);
            text += 1 + count;
        }
    }
    if (!parse_zone(&text, end, &t.offset_minutes))
        return time_invalid_form("a zone must be Z or +hh:mm");
    return civil_to_ns(&t, time_ns);
}

/*
 * Parses decimal seconds. The code does not use a double, which would keep only 16 digits. Returns NL_OK or
 * NL_MALFORMED.
 */
static nl_status parse_seconds(const char *text, size_t size, nl_fraction fraction, int64_t *time_ns)
{
    bool negative = size > 0 && text[0] == '-';
    if (size > 0 && (text[0] == '-' || text[0] == '+')) {
        text++;
        size--;
    }
    size_t whole = nl_digits(text, size);
    size_t point = whole < size && text[whole] == '.';
    size_t part = nl_digits(text + whole + point, size - whole - point);
    if (whole + part == 0 || whole + point + part != size)
        return time_invalid_form("expected YYYYMMDDhhmmss, ISO 8601 or seconds since 1970");
    int64_t seconds = 0;
    for (size_t i = 0; i < whole && seconds <= INT64_MAX / NL_NS_PER_SECOND; i++)
        seconds = seconds * 10 + (text[i] - '0');
    int64_t ns = fraction_ns(text + whole + point, part, fraction);
    return seconds_to_ns(negative ? -seconds : seconds, negative ? -ns : ns, time_ns);
}

static bool is_date(const char *text, size_t size)
{
    return nl_digits(text, size < DATE_DIGITS + 1 ? size : DATE_DIGITS + 1) == DATE_DIGITS &&
           (size == DATE_DIGITS || text[DATE_DIGITS] == '.');
}

static bool is_iso(const char *text, size_t size)
{
    return size > 4 && text[4] == '-' && nl_digits(text, 4) == 4;
}

nl_status nl_time_parse_calendar(const char *text, size_t size, nl_fraction fraction, int64_t *time_ns)
{
    if (is_date(text, size))
        return parse_date(text, size, fraction, time_ns);
    if (is_iso(text, size))
        return parse_iso(text, size, fraction, time_ns);
    if (size == 0)
        return time_invalid_form("the text is empty");
    size_t digits = nl_digits(text, size);
    if (digits == size || text[digits] == '.')
        return time_invalid("14 digits are required, not", (long long)digits);
    return time_invalid_form("expected YYYYMMDDhhmmss or ISO 8601");
}

nl_status nl_time_parse(const char *text, size_t size, nl_fraction fraction, int64_t *time_ns)
{
    if (size == 0)
        return time_invalid_form("the text is empty");
    if (is_date(text, size))
        return parse_date(text, size, fraction, time_ns);
    if (is_iso(text, size))
        return parse_iso(text, size, fraction, time_ns);
    return parse_seconds(text, size, fraction, time_ns);
}

static char *put_two(char *out, unsigned value)
{
    memcpy(out, nl_two_digits + 2 * (size_t)value, 2);
    return out + 2;
}

static void split_day(int64_t seconds, civil *t)
{
    int64_t days = seconds / SECONDS_PER_DAY;
    int64_t second_of_day = seconds % SECONDS_PER_DAY;
    if (second_of_day < 0) {
        second_of_day += SECONDS_PER_DAY;
        days--;
    }
    civil_from_days(days, t);
    t->hour = (unsigned)second_of_day / 3600;
    t->minute = (unsigned)second_of_day / 60 % 60;
    t->second = (unsigned)second_of_day % 60;
}

/* Writes the point and six digits, or nine digits if the last three are not all zeros. Returns the end of the text. */
static char *put_fraction(char *out, unsigned ns)
{
    unsigned us = ns / 1000, rest = ns % 1000;
    *out++ = '.';
    out = put_two(out, us / 10000);
    out = put_two(out, us / 100 % 100);
    out = put_two(out, us % 100);
    if (rest != 0) {
        *out++ = (char)('0' + rest / 100);
        out = put_two(out, rest % 100);
    }
    return out;
}

/* Writes a time without its fraction, in ULM or ISO 8601 form. Returns the size of the text. */
static size_t put_second(const civil *t, bool iso, char *out)
{
    const unsigned numbers[] = {t->month, t->day, t->hour, t->minute, t->second};
    char *at = put_two(put_two(out, (unsigned)t->year / 100), (unsigned)t->year % 100);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (iso)
            *at++ = "--T::"[i];
        at = put_two(at, numbers[i]);
    }
    return (size_t)(at - out);
}

static inline size_t put_time(int64_t time_ns, nl_known_second *known, bool iso, char out[NL_TIME_TEXT_SIZE])
{
    int64_t seconds = time_ns / NL_NS_PER_SECOND, ns = time_ns % NL_NS_PER_SECOND;
    if (ns < 0) {
        ns += NL_NS_PER_SECOND;
        seconds--;
    }
    if (known->size == 0 || known->seconds != seconds) {
        civil t;
        split_day(seconds, &t);
        known->seconds = seconds;
        known->size = put_second(&t, iso, known->text);
    }
    memcpy(out, known->text, sizeof known->text);
    char *at = put_fraction(out + known->size, (unsigned)ns);
    if (iso)
        *at++ = 'Z';
    *at = '\0';
    return (size_t)(at - out);
}

size_t nl_time_put_ulm(int64_t time_ns, nl_known_second *known, char out[NL_TIME_TEXT_SIZE])
{
    return put_time(time_ns, known, false, out);
}

size_t nl_time_put_iso(int64_t time_ns, nl_known_second *known, char out[NL_TIME_TEXT_SIZE])
{
    return put_time(time_ns, known, true, out);
}

size_t nl_time_format_ulm(int64_t time_ns, char out[NL_TIME_TEXT_SIZE])
{
    return nl_time_put_ulm(time_ns, &(nl_known_second){0}, out);
}

size_t nl_time_format_iso(int64_t time_ns, char out[NL_TIME_TEXT_SIZE])
{
    return nl_time_put_iso(time_ns, &(nl_known_second){0}, out);
}
