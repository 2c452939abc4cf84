#include "config.h"

#include "scene/axis.h"
#include "base/time_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DIGITS_MAX = 6 };

static const int64_t second_ns = NL_NS_PER_SECOND;

int64_t axis_time_step_ns(int64_t min_ns)
{
    static const int64_t seconds[] = {1,        2,        5,         10,        15,       30,      60,      120,
                                      300,      600,      900,       1800,      3600,     7200,    10800,   21600,
                                      43200,    86400,    172800,    604800,    1209600,  2592000, 7776000, 15552000,
                                      31536000, 63072000, 157680000, 315360000, 788400000};
    for (int64_t unit = 1; unit < second_ns; unit *= 10)
        for (int64_t factor = 1; factor <= 5; factor = factor == 1 ? 2 : factor + 3)
            if (unit * factor >= min_ns)
                return unit * factor;
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
        if (seconds[i] * second_ns >= min_ns)
            return seconds[i] * second_ns;
    return INT64_C(1576800000) * second_ns;
}

int64_t axis_first_tick_ns(int64_t from_ns, int64_t step_ns)
{
    int64_t ticks = from_ns / step_ns;
    int64_t tick = ticks * step_ns;
    return tick < from_ns ? tick + step_ns : tick;
}

void axis_time_label(int64_t time_ns, int64_t step_ns, char out[NL_TIME_TEXT_SIZE])
{
    char iso[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(time_ns, iso); /* for example 2012-03-14T14:04:46.000000Z; may have 9 decimal places */
    if (step_ns >= 86400 * second_ns) {
        snprintf(out, NL_TIME_TEXT_SIZE, "%.10s", iso);
        return;
    }
    if (step_ns >= second_ns) {
        snprintf(out, NL_TIME_TEXT_SIZE, step_ns >= 60 * second_ns ? "%.5s" : "%.8s", iso + 11);
        return;
    }
    int digits = 0;
    for (int64_t unit = second_ns; unit > step_ns; unit /= 10)
        digits++;
    int64_t fraction = time_ns % second_ns;
    if (fraction < 0)
        fraction += second_ns;
    char part[16];
    snprintf(part, sizeof part, "%09lld", (long long)fraction);
    snprintf(out, NL_TIME_TEXT_SIZE, "%.8s.%.*s", iso + 11, digits, part);
}

int64_t axis_shift_ns(axis_clock clock, int64_t time_ns, int64_t origin_ns)
{
    const time_t seconds = (time_t)(time_ns / second_ns);
    struct tm local;
    if (clock == AXIS_LOCAL && localtime_r(&seconds, &local) != NULL)
        return local.tm_gmtoff * second_ns;
    return clock == AXIS_RELATIVE ? -origin_ns : 0;
}

void axis_relative_label(int64_t since_ns, int64_t step_ns, char out[NL_TIME_TEXT_SIZE])
{
    const uint64_t length_ns = since_ns < 0 ? -(uint64_t)since_ns : (uint64_t)since_ns,
                   seconds = length_ns / 1000000000;
    int digits = 0;
    for (int64_t unit = second_ns; unit > step_ns && unit > 1; unit /= 10)
        digits++;
    char fraction[16];
    snprintf(fraction, sizeof fraction, ".%09u", (unsigned)(length_ns % 1000000000));
    snprintf(out, NL_TIME_TEXT_SIZE, "%c%" PRIu64 ":%02u:%02u%.*s", since_ns < 0 ? '-' : '+', seconds / 3600,
             (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60), digits > 0 ? digits + 1 : 0, fraction);
}

void axis_write_time(axis_clock clock, int64_t origin_ns, int64_t time_ns, char out[AXIS_TIME_SIZE])
{
    char iso[NL_TIME_TEXT_SIZE];
    int64_t shown_ns;
    if (__builtin_add_overflow(time_ns, axis_shift_ns(clock, time_ns, origin_ns), &shown_ns))
        shown_ns = time_ns;
    if (clock == AXIS_RELATIVE) {
        int64_t step_ns = 1; /* no zeros at the end of the fraction */
        while (step_ns < second_ns && shown_ns % (10 * step_ns) == 0)
            step_ns *= 10;
        axis_relative_label(shown_ns, step_ns, iso);
        snprintf(out, AXIS_TIME_SIZE, "%s", iso);
        return;
    }
    nl_time_format_iso(shown_ns, iso);
    const size_t digits = strcspn(iso, "Z");
    const int minutes = (int)((shown_ns - time_ns) / second_ns / 60), size = minutes < 0 ? -minutes : minutes;
    if (clock == AXIS_LOCAL)
        snprintf(out, AXIS_TIME_SIZE, "%.*s%c%02d:%02d", (int)digits, iso, minutes < 0 ? '-' : '+', size / 60 % 100,
                 size % 60);
    else
        snprintf(out, AXIS_TIME_SIZE, "%s", iso);
}

void axis_write_clock(axis_clock clock, int64_t origin_ns, int64_t time_ns, char out[AXIS_TIME_SIZE])
{
    axis_write_time(clock, origin_ns, time_ns, out);
    const char *after = strchr(out, 'T');
    if (after != NULL)
        memmove(out, after + 1, strlen(after));
}

const char *axis_clock_text(axis_clock clock)
{
    return clock == AXIS_UTC ? "UTC" : clock == AXIS_LOCAL ? "local" : "relative";
}

double axis_step(double min)
{
    if (!(min > 0))
        return 1;
    double unit = pow(10, floor(log10(min)));
    const double factors[] = {1, 2, 5, 10};
    for (int i = 0; i < 4; i++)
        if (unit * factors[i] >= min * (1 - 1e-9))
            return unit * factors[i];
    return unit * 10;
}

void axis_number_label(double value, double step, char out[32])
{
    static const struct {
        double unit;
        const char *name;
    } prefixes[] = {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
    const char *name = "";
    for (int i = 0; i < 4; i++)
        if (fabs(value) >= prefixes[i].unit) {
            value /= prefixes[i].unit;
            step /= prefixes[i].unit;
            name = prefixes[i].name;
            break;
        }
    int digits = step > 0 && step < 1 ? (int)fmin(ceil(-log10(step) - 1e-9), DIGITS_MAX) : 0;
    for (double scale = pow(10, digits); digits < DIGITS_MAX && fabs(value * scale - round(value * scale)) > 1e-6;
         scale *= 10)
        digits++; /* a label in the middle of an axis may be between two steps */
    snprintf(out, 32, "%.*f%s", digits, value == 0 ? 0 : value, name);
}

void axis_span_label(double ns, char out[32])
{
    static const struct {
        double min_ns, part_ns, parts;
        const char *unit, *part;
    } units[] = {{172800e9, 3600e9, 24, "days", "h"}, {7200e9, 60e9, 60, "h", "min"}, {120e9, 1e9, 60, "min", "s"}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const double total = round(ns / units[i].part_ns), whole = floor(total / units[i].parts),
                     rest = total - whole * units[i].parts;
        if (ns < units[i].min_ns)
            continue;
        if (rest > 0)
            snprintf(out, 32, "%.0f %s %.0f %s", whole, units[i].unit, rest, units[i].part);
        else
            snprintf(out, 32, "%.0f %s", whole, units[i].unit);
        return;
    }
    if (ns < 1e3)
        snprintf(out, 32, "%.0f ns", ns);
    else if (ns < 1e6)
        snprintf(out, 32, "%.4g µs", ns / 1e3);
    else if (ns < 1e9)
        snprintf(out, 32, "%.4g ms", ns / 1e6);
    else
        snprintf(out, 32, "%.4g s", ns / 1e9);
}
