#include "config.h"

#include "base/memory.h"
#include "base/time_internal.h"
#include "record/number.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * Powers of ten that a double represents exactly. With these powers and integers up to 2^53, one multiplication or
 * division gives the correctly rounded result (W. D. Clinger, "How to Read Floating Point Numbers Accurately", 1990).
 */
static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MAX_EXACT_POWER = 22, MAX_DIGITS_IN_UINT64 = 19 };
#define MAX_EXACT_INTEGER (UINT64_C(1) << 53)

static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/*
 * glibc creates the C locale without allocating memory. If another C library cannot create it, the module uses the
 * program's locale.
 */
static locale_t get_c_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
    return c_locale;
}

bool nl_number_parse_int(nl_string text, int64_t *value)
{
    const char *at = text.data;
    size_t size = text.size;
    bool negative = size > 0 && *at == '-';
    if (size > 0 && (*at == '-' || *at == '+')) {
        at++;
        size--;
    }
    if (size == 0 || nl_digits(at, size) != size)
        return false;
    int64_t result = 0; /* accumulated as a negative number, because the negative range is larger */
    for (size_t i = 0; i < size; i++)
        if (__builtin_mul_overflow(result, 10, &result) || __builtin_sub_overflow(result, at[i] - '0', &result))
            return false;
    if (!negative && result == INT64_MIN)
        return false;
    *value = negative ? result : -result;
    return true;
}

/* A scanned decimal number. */
typedef struct decimal {
    bool negative;
    bool exact; /* mantissa and exponent are exact */
    uint64_t mantissa;
    int exponent;
} decimal;

static void number_read_digits(decimal *d, const char *digits, size_t count, int *significant)
{
    for (size_t i = 0; i < count; i++) {
        d->mantissa = d->mantissa * 10 + (uint64_t)(digits[i] - '0');
        *significant += d->mantissa != 0;
        if (*significant > MAX_DIGITS_IN_UINT64) {
            d->exact = false;
            return;
        }
    }
}

/* Scans [+-]digits[.digits][e[+-]digits]. Returns false if the text has another form. */
static bool scan_decimal(const char *at, const char *end, decimal *d)
{
    int significant = 0;
    *d = (decimal){.negative = at < end && *at == '-', .exact = true};
    at += at < end && (*at == '-' || *at == '+');
    size_t whole = nl_digits(at, (size_t)(end - at));
    number_read_digits(d, at, whole, &significant);
    at += whole;
    size_t part = 0;
    if (at < end && *at == '.') {
        part = nl_digits(at + 1, (size_t)(end - at - 1));
        number_read_digits(d, at + 1, part, &significant);
        at += 1 + part;
    }
    if (whole + part == 0)
        return false;
    int exponent = 0;
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        bool negative = at < end && *at == '-';
        at += at < end && (*at == '-' || *at == '+');
        size_t count = nl_digits(at, (size_t)(end - at));
        if (count == 0)
            return false;
        for (size_t i = 0; i < count && exponent < 100000; i++)
            exponent = exponent * 10 + (at[i] - '0');
        at += count;
        exponent = negative ? -exponent : exponent;
    }
    d->exact = d->exact && part <= 100000;
    d->exponent = d->exact ? exponent - (int)part : 0;
    return at == end;
}

static bool parse_special(const char *at, size_t size, double *value)
{
    bool negative = size > 0 && *at == '-';
    if (size > 0 && (*at == '-' || *at == '+')) {
        at++;
        size--;
    }
    if ((size == 3 && strncasecmp(at, "inf", 3) == 0) || (size == 8 && strncasecmp(at, "infinity", 8) == 0))
        *value = negative ? -INFINITY : INFINITY;
    else if (size == 3 && strncasecmp(at, "nan", 3) == 0)
        *value = NAN;
    else
        return false;
    return true;
}

bool nl_number_parse_double(nl_string text, double *value)
{
    decimal d;
    if (text.size == 0)
        return false;
    if (!scan_decimal(text.data, text.data + text.size, &d))
        return parse_special(text.data, text.size, value);
    if (d.exact && d.mantissa <= MAX_EXACT_INTEGER && abs(d.exponent) <= MAX_EXACT_POWER) {
        double mantissa = (double)d.mantissa;
        double result = d.exponent < 0 ? mantissa / powers_of_ten[-d.exponent] : mantissa * powers_of_ten[d.exponent];
        *value = d.negative ? -result : result;
        return true;
    }
    char small[128];
    char *copy = text.size < sizeof small ? small : malloc(text.size + 1);
    if (copy == NULL)
        return nl_memory_failed() == NL_OK;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    *value = strtod_l(copy, NULL, get_c_locale());
    if (copy != small)
        free(copy);
    return true;
}

static size_t digits_of(uint64_t value)
{
    for (size_t count = 1;; count += 4, value /= 10000) {
        if (value < 100)
            return count + (value >= 10);
        if (value < 10000)
            return count + 2 + (value >= 1000);
    }
}

size_t nl_number_format_uint(uint64_t value, char *out)
{
    size_t count = digits_of(value);
    char *at = out + count;
    *at = '\0';
    for (; value >= 100; value /= 100)
        memcpy(at -= 2, nl_two_digits + value % 100 * 2, 2);
    if (value >= 10)
        memcpy(out, nl_two_digits + value * 2, 2);
    else
        *out = (char)('0' + value);
    return count;
}

size_t nl_number_format_int(int64_t value, char *out)
{
    if (value >= 0)
        return nl_number_format_uint((uint64_t)value, out);
    out[0] = '-';
    return 1 + nl_number_format_uint(0 - (uint64_t)value, out + 1);
}

/*
 * Writes a non-negative value that is an integer of up to 15 digits divided by 10^decimals; most measured values have
 * this form. If a double has a decimal form with at most 15 digits, this form without its trailing zeros is the
 * shortest text that parses to the double. Returns 0 for other values.
 */
static size_t format_short_decimal(double value, char *out)
{
    for (unsigned decimals = 0; decimals <= 9; decimals++) {
        double scaled = value * powers_of_ten[decimals];
        if (scaled >= 1e15)
            return 0;
        uint64_t integer = (uint64_t)(scaled + 0.5);
        if ((double)integer / powers_of_ten[decimals] != value)
            continue;
        uint64_t unit = (uint64_t)powers_of_ten[decimals];
        size_t size = nl_number_format_uint(integer / unit, out);
        if (decimals > 0)
            out[size++] = '.';
        uint64_t part = integer % unit;
        for (unsigned i = decimals; i-- > 0; part /= 10)
            out[size + i] = (char)('0' + part % 10);
        return size + decimals;
    }
    return 0;
}

size_t nl_number_format_double(double value, char *out)
{
    if (isnan(value))
        return (size_t)(stpcpy(out, "nan") - out);
    size_t sign = 0;
    if (signbit(value)) {
        out[sign++] = '-';
        value = -value;
    }
    if (isinf(value))
        return (size_t)(stpcpy(out + sign, "inf") - out);
    size_t size = format_short_decimal(value, out + sign);
    if (size == 0) {
        locale_t before = uselocale(get_c_locale());
        for (int precision = 15; precision <= 17; precision++) {
            size = (size_t)snprintf(out + sign, NL_FIELD_TEXT_SIZE - sign, "%.*g", precision, value);
            if (strtod(out + sign, NULL) == value)
                break;
        }
        uselocale(before);
    }
    out[sign + size] = '\0';
    return sign + size;
}
