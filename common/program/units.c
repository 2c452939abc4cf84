#include "config.h"

#include "program/units.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *units_time(double ns, char out[UNITS_SIZE])
{
    if (ns < 0) {
        char positive[UNITS_SIZE];
        snprintf(out, UNITS_SIZE, "-%s", units_time(-ns, positive));
    } else if (ns < 1e3) {
        snprintf(out, UNITS_SIZE, "%.0f ns", ns);
    } else if (ns < 1e6) {
        snprintf(out, UNITS_SIZE, "%.1f us", ns / 1e3);
    } else if (ns < 1e9) {
        snprintf(out, UNITS_SIZE, "%.2f ms", ns / 1e6);
    } else if (ns < 600e9) {
        snprintf(out, UNITS_SIZE, "%.3f s", ns / 1e9);
    } else if (ns < 72 * 3600e9) {
        snprintf(out, UNITS_SIZE, "%d:%02d:%02d h", (int)(ns / 3600e9), (int)(ns / 60e9) % 60, (int)(ns / 1e9) % 60);
    } else {
        snprintf(out, UNITS_SIZE, "%.1f days", ns / 86400e9);
    }
    return out;
}

const char *units_quantity(double value, char out[UNITS_SIZE])
{
    static const char prefixes[] = " kMGTPE";
    size_t i = 0;
    for (; (value >= 9999.5 || value <= -9999.5) && i + 2 < sizeof prefixes; i++)
        value /= 1000;
    if (i > 0)
        snprintf(out, UNITS_SIZE, "%.1f %c", value, prefixes[i]);
    else
        snprintf(out, UNITS_SIZE, value == (double)(long)value ? "%.0f" : "%.1f", value);
    return out;
}

const char *units_amount(double value, const char *unit, char out[UNITS_SIZE])
{
    size_t size = strlen(units_quantity(value, out));
    bool has_prefix = strchr("0123456789", out[size - 1]) == NULL;
    snprintf(out + size, UNITS_SIZE - size, "%s%s", has_prefix ? "" : " ", unit);
    return out;
}
