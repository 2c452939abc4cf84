#include "config.h"

#include "sensors/spec.h"
#include "base/error.h"
#include "base/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_name(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && strchr("-_.", text[i]) == NULL)
            return false;
    return size > 0 && isalpha((unsigned char)text[0]);
}

static int hex(char digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0' : isxdigit((unsigned char)digit) ? (digit | 32) - 'a' + 10 : -1;
}

/* Decodes %XX in place. Returns false if an escape is invalid, or if the result contains control characters. */
static bool spec_decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        int byte = (unsigned char)*from;
        if (byte == '%') {
            if (hex(from[1]) < 0 || hex(from[2]) < 0)
                return false;
            byte = hex(from[1]) * 16 + hex(from[2]);
            from += 2;
        }
        if (byte < ' ' || byte == 0x7f)
            return false;
        *to++ = (char)byte;
    }
    *to = '\0';
    return true;
}

static int spec_compare(const void *a, const void *b)
{
    return strcmp(((const sensor_argument *)a)->name, ((const sensor_argument *)b)->name);
}

/* Splits name=value&name=value in place, and adds the arguments. Returns false and sets the error if the text is
 * invalid. */
static bool spec_read_arguments(sensor_spec *s, char *text)
{
    for (char *rest = text, *part; (part = strsep(&rest, "&")) != NULL;) {
        char *value = part + strcspn(part, "=");
        if (*value != '=' || !is_name(part, (size_t)(value - part)))
            return nl_error_false(NL_ERROR_INVALID, "expected NAME=VALUE instead of \"%s\"", part);
        *value++ = '\0';
        if (s->count == SPEC_ARGUMENTS_MAX)
            return nl_error_false(NL_ERROR_INVALID, "too many arguments: \"%s\"", part);
        if (spec_argument(s, part) != NULL)
            return nl_error_false(NL_ERROR_INVALID, "repeated argument: \"%s\"", part);
        if (!spec_decode(value))
            return nl_error_false(NL_ERROR_INVALID, "invalid value: \"%s\"", part);
        s->arguments[s->count++] = (sensor_argument){strdup(part), strdup(value)};
    }
    return true;
}

static void make_canonical(sensor_spec *s)
{
    size_t size = strlen(s->name) + 2;
    qsort(s->arguments, s->count, sizeof *s->arguments, spec_compare);
    for (size_t i = 0; i < s->count; i++)
        size += strlen(s->arguments[i].name) + 3 * strlen(s->arguments[i].value) + 2;
    s->text = nl_memory_check(malloc(size));
    char *to = stpcpy(s->text, s->name);
    for (size_t i = 0; i < s->count; i++) {
        to += sprintf(to, "%c%s=", i == 0 ? '?' : '&', s->arguments[i].name);
        for (const char *v = s->arguments[i].value; *v != '\0'; v++)
            to += strchr("&%+ #\"'<>\\", *v) != NULL ? sprintf(to, "%%%02X", (unsigned char)*v) : sprintf(to, "%c", *v);
    }
}

sensor_spec *spec_parse(const char *text)
{
    size_t name_size = strcspn(text, "?");
    if (strlen(text) > SPEC_SIZE_MAX || !is_name(text, name_size))
        return nl_error_null(NL_ERROR_INVALID, "invalid sensor name: \"%.60s\"", text);
    sensor_spec *s = nl_memory_check(calloc(1, sizeof *s));
    char *copy = nl_memory_check(strdup(text));
    s->name = strndup(text, name_size);
    bool good = text[name_size] == '\0' || spec_read_arguments(s, copy + name_size + 1);
    free(copy);
    if (good) {
        make_canonical(s);
        return s;
    }
    spec_free(s);
    return NULL;
}

void spec_free(sensor_spec *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->count; i++) {
        free(s->arguments[i].name);
        free(s->arguments[i].value);
    }
    free(s->name);
    free(s->text);
    free(s);
}

const char *spec_argument(const sensor_spec *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->arguments[i].name, name) == 0)
            return s->arguments[i].value;
    return NULL;
}

bool spec_number(const sensor_spec *s, const char *name, long min, long max, long initial, long *value)
{
    const char *text = spec_argument(s, name);
    char *end;
    *value = initial;
    if (text == NULL)
        return true;
    *value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && *value >= min && *value <= max)
        return true;
    return nl_error_false(NL_ERROR_INVALID, "%s=%s: invalid number; use a whole number from %ld to %ld", name, text,
                          min, max);
}

const char *spec_unknown(const sensor_spec *s, const char *names)
{
    for (size_t i = 0; i < s->count; i++) {
        char padded[SPEC_SIZE_MAX + 3];
        snprintf(padded, sizeof padded, " %s ", s->arguments[i].name);
        if (strstr(names, padded) == NULL)
            return s->arguments[i].name;
    }
    return NULL;
}

bool spec_has_required(const sensor_spec *s, const char *required)
{
    if (required == NULL)
        return true;
    size_t size = strcspn(required, "=");
    for (size_t i = 0; i < s->count; i++)
        if (strlen(s->arguments[i].name) == size && strncmp(s->arguments[i].name, required, size) == 0)
            return true;
    return nl_error_false(NL_ERROR_INVALID, "sensor %s: missing argument; use %s?%s", s->name, s->name, required);
}
