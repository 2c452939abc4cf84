#include "config.h"

#include "base/option.h"

#include "base/environment_value.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/time_internal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- values ---- */

static const struct {
    const char *name;
    int64_t ns;
} duration_units[] = {
    {"d", 86400 * NL_NS_PER_SECOND},
    {"h", 3600 * NL_NS_PER_SECOND},
    {"m", 60 * NL_NS_PER_SECOND},
    {"s", NL_NS_PER_SECOND},
    {"ms", 1000000},
    {"us", 1000},
    {"ns", 1},
};

enum { DURATION_UNIT_COUNT = sizeof duration_units / sizeof duration_units[0] };

static const char *const size_units[] = {"", "k", "m", "g", "t"}; /* each unit is 1024 times the previous unit */

enum { SIZE_UNIT_COUNT = sizeof size_units / sizeof size_units[0] };

bool nl_duration_parse(const char *text, int64_t *duration_ns)
{
    if (!isdigit((unsigned char)text[*text == '.']))
        return false;
    int64_t whole = 0;
    const char *at = text;
    for (; isdigit((unsigned char)*at); at++)
        if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, *at - '0', &whole))
            return false;
    const char *fraction = *at == '.' ? at + 1 : at;
    at = fraction + strspn(fraction, "0123456789");
    int64_t unit_ns = *at == '\0' ? NL_NS_PER_SECOND : 0;
    for (size_t i = 0; i < DURATION_UNIT_COUNT; i++)
        if (strcasecmp(at, duration_units[i].name) == 0)
            unit_ns = duration_units[i].ns;
    if (unit_ns == 0 || __builtin_mul_overflow(whole, unit_ns, &whole))
        return false;
    /* The sum is computed digit by digit, because a double would lose the nanoseconds of a long duration. */
    int64_t part_ns = 0;
    for (const char *digit = at; digit-- > fraction;)
        part_ns = (part_ns + (*digit - '0') * unit_ns) / 10;
    return !__builtin_add_overflow(whole, part_ns, duration_ns);
}

bool nl_time_parse_relative(const char *text, int64_t *time_ns)
{
    int64_t ago_ns;
    if (strlen(text) == 8 && strspn(text, "0123456789") == 8)
        return false; /* eight digits are probably a date, but would be parsed as seconds since 1970 */
    if (*text != '-')
        return nl_time_parse(text, strlen(text), NL_FRACTION_DECIMAL, time_ns) == NL_OK;
    if (!nl_duration_parse(text + 1, &ago_ns))
        return false;
    *time_ns = nl_time_now_ns() - ago_ns;
    return true;
}

const char *nl_duration_format(int64_t duration_ns, char out[NL_OPTION_VALUE_SIZE])
{
    size_t i = 0;
    while (i + 1 < DURATION_UNIT_COUNT && duration_ns % duration_units[i].ns != 0)
        i++;
    if (duration_ns == 0)
        return strcpy(out, "0");
    snprintf(out, NL_OPTION_VALUE_SIZE, "%" PRId64 "%s", duration_ns / duration_units[i].ns, duration_units[i].name);
    return out;
}

const char *nl_size_format(uint64_t size, char out[NL_OPTION_VALUE_SIZE])
{
    size_t unit = 0;
    while (size != 0 && size % 1024 == 0 && unit + 1 < SIZE_UNIT_COUNT) {
        size /= 1024;
        unit++;
    }
    snprintf(out, NL_OPTION_VALUE_SIZE, "%" PRIu64 "%s", size, size_units[unit]);
    return out;
}

const char *nl_option_format_bound(const nl_option *row, int64_t bound, char out[NL_OPTION_VALUE_SIZE])
{
    if (row->type == NL_OPTION_SIZE)
        return nl_size_format((uint64_t)bound, out);
    if (row->type == NL_OPTION_DURATION)
        return nl_duration_format(bound, out);
    snprintf(out, NL_OPTION_VALUE_SIZE, "%" PRId64, bound);
    return out;
}

/* ---- members ---- */

static void *option_member(const nl_option *row, const void *settings)
{
    return (char *)settings + row->offset;
}

static int64_t option_load_integer(const nl_option *row, const void *settings)
{
    const void *member = option_member(row, settings);
    return row->size == 1   ? *(const int8_t *)member
           : row->size == 4 ? *(const int32_t *)member
                            : *(const int64_t *)member;
}

static void option_store_integer(const nl_option *row, void *settings, int64_t value)
{
    void *member = option_member(row, settings);
    if (row->size == 1)
        *(int8_t *)member = (int8_t)value;
    else if (row->size == 4)
        *(uint32_t *)member = (uint32_t)value;
    else if (row->size == 8)
        *(int64_t *)member = value;
}

/* Returns the option's maximum, in the unit of the row's bounds. */
static int64_t option_maximum(const nl_option *row)
{
    int64_t unit = row->unit != 0 ? row->unit : 1;
    if (row->maximum != 0)
        return row->maximum;
    return row->size == 4 && INT32_MAX < INT64_MAX / unit ? INT32_MAX * unit : INT64_MAX;
}

/* ---- setting ---- */

static bool option_parse_count(const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    *number = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : -1;
    return *number >= 0 && errno == 0 && *end == '\0';
}

/* Parses "65536", "64k", "256M" or "1g"; 1k is 1024 bytes. Returns false if the text has another form. */
static bool option_parse_size(const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    *number = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : -1;
    if (*number < 0 || errno != 0)
        return false;
    for (size_t i = 1; i < SIZE_UNIT_COUNT; i++)
        if (strcasecmp(end, size_units[i]) == 0)
            return !__builtin_mul_overflow(*number, INT64_C(1) << 10 * i, number);
    return *end == '\0';
}

/* Sets an error such as "9g is out of range; use 1k to 1g". Returns false. */
static bool option_reject_range(const nl_option *row, const char *value)
{
    char minimum[NL_OPTION_VALUE_SIZE], maximum[NL_OPTION_VALUE_SIZE];
    nl_option_format_bound(row, row->minimum, minimum);
    nl_option_format_bound(row, option_maximum(row), maximum);
    if (row->maximum != 0)
        return nl_error_false(NL_ERROR_INVALID, "%.100s is out of range; use %s to %s", value, minimum, maximum);
    return nl_error_false(NL_ERROR_INVALID, "%.100s is out of range; use at %s %s", value,
                          row->minimum != 0 ? "least" : "most", row->minimum != 0 ? minimum : maximum);
}

/* Returns the index of a value among choices, without regard to case; -1 if value is not a choice. */
static int64_t option_find_choice(const char *choices, const char *value)
{
    int64_t index = 0;
    for (const char *at = choices; *at != '\0'; index++) {
        size_t size = strcspn(at, "|");
        if (strlen(value) == size && strncasecmp(at, value, size) == 0)
            return index;
        at += size + (at[size] == '|');
    }
    return -1;
}

static bool option_set_number(const nl_option *row, void *settings, const char *value)
{
    static const struct {
        const char *what, *example;
        bool (*parse)(const char *text, int64_t *number);
    } kinds[] = {[NL_OPTION_COUNT] = {"a whole number", NULL, option_parse_count},
                 [NL_OPTION_SIZE] = {"a size", "64k, 256m or 1g", option_parse_size},
                 [NL_OPTION_DURATION] = {"a duration", "10s, 500ms, 5m or 2h", nl_duration_parse}};
    int64_t number, choice = row->choices != NULL ? option_find_choice(row->choices, value) : -1;
    if (choice >= 0) {
        option_store_integer(row, settings, -1 - choice);
        return true;
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): the callers handle other types */
    if (!kinds[row->type].parse(value, &number)) {
        const char *example = kinds[row->type].example, *choices = row->choices;
        return nl_error_false(NL_ERROR_INVALID, "\"%.100s\" is not %s%s%s%s%s", value, choices != NULL ? choices : "",
                              choices != NULL ? " or " : "", kinds[row->type].what,
                              example != NULL ? "; use, for example, " : "", example != NULL ? example : "");
    }
    if (number < row->minimum || number > option_maximum(row))
        return option_reject_range(row, value);
    if (row->unit > 1)
        number = number / row->unit + (number % row->unit != 0);
    option_store_integer(row, settings, number);
    return true;
}

static bool option_set_flag(const nl_option *row, void *settings, const char *value)
{
    bool yes = strcasecmp(value, "yes") == 0;
    if (!yes && strcasecmp(value, "no") != 0)
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" is neither yes nor no", value);
    option_store_integer(row, settings, yes);
    return true;
}

static bool option_set_choice(const nl_option *row, void *settings, const char *value)
{
    const char *choices = nl_option_choices(row);
    int64_t index = option_find_choice(choices, value);
    if (index < 0)
        return nl_error_false(NL_ERROR_INVALID, "\"%.100s\" is not one of %s", value, choices + (*choices == '|'));
    option_store_integer(row, settings, index);
    return true;
}

static bool option_set_level(const nl_option *row, void *settings, const char *value)
{
    nl_level level = nl_level_parse(value, strlen(value));
    if (level == NL_LEVEL_NONE)
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not one of the levels " NL_LEVEL_NAMES, value);
    option_store_integer(row, settings, level);
    return true;
}

static bool option_set_copy(const nl_option *row, void *settings, const char *value)
{
    char **member = option_member(row, settings), *copy = strdup(value);
    if (copy == NULL)
        return (nl_memory_failed(), false);
    free(*member);
    *member = copy;
    return true;
}

bool nl_option_set(const nl_option *row, void *settings, const char *value)
{
    if (*value == '\0' && !row->optional_value && !row->empty_value)
        return nl_error_false(NL_ERROR_INVALID, "the value is empty");
    return row->set != NULL ? row->set(settings, row, value) : nl_option_set_by_type(row, settings, value);
}

bool nl_option_set_by_type(const nl_option *row, void *settings, const char *value)
{
    switch (row->type) {
    case NL_OPTION_TEXT:
        *(const char **)option_member(row, settings) = value;
        return true;
    case NL_OPTION_COPY:
        return option_set_copy(row, settings, value);
    case NL_OPTION_FLAG:
        return option_set_flag(row, settings, value);
    case NL_OPTION_TIME:
        return nl_time_parse_relative(value, option_member(row, settings)) ||
               nl_error_false(
                   NL_ERROR_INVALID,
                   "\"%s\" is not a time; use, for example, 2026-01-31T12:00:00.5, seconds since 1970, or -10m", value);
    case NL_OPTION_CHOICE:
        return option_set_choice(row, settings, value);
    case NL_OPTION_LEVEL:
        return option_set_level(row, settings, value);
    default:
        return option_set_number(row, settings, value);
    }
}

/* ---- rows ---- */

const char *nl_option_type_name(const nl_option *row)
{
    static const char *const names[] = {"text", "text", "flag", "count", "size", "duration", "time", "choice", "level"};
    return names[row->type];
}

const char *nl_option_choices(const nl_option *row)
{
    return row->list_choices != NULL ? row->list_choices() : row->choices;
}

const nl_option *nl_option_find(const nl_option *rows, const char *name)
{
    for (; rows->name != NULL; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

enum { NAME_MAX_COMPARED = 32 };

/* Returns the number of edits that change a into b. An edit inserts, removes or replaces a letter, or swaps two
 * adjacent letters. */
static unsigned option_name_distance(const char *a, const char *b)
{
    unsigned lines[3][NAME_MAX_COMPARED + 1], *before = lines[0], *last = lines[1], *line = lines[2];
    size_t size = strlen(b);
    for (unsigned k = 0; k <= size; k++)
        last[k] = k;
    for (size_t i = 0; a[i] != '\0'; i++) {
        line[0] = (unsigned)i + 1;
        for (size_t k = 0; k < size; k++) {
            unsigned cost = last[k] + (a[i] != b[k]);
            cost = last[k + 1] + 1 < cost ? last[k + 1] + 1 : cost;
            cost = line[k] + 1 < cost ? line[k] + 1 : cost;
            if (i > 0 && k > 0 && a[i] == b[k - 1] && a[i - 1] == b[k] && before[k - 1] + 1 < cost)
                cost = before[k - 1] + 1;
            line[k + 1] = cost;
        }
        unsigned *free_line = before;
        before = last;
        last = line;
        line = free_line;
    }
    return last[size];
}

void nl_option_find_nearest(nl_option_nearest *nearest, const nl_option *rows, const char *unknown)
{
    if (strlen(unknown) > NAME_MAX_COMPARED)
        return;
    for (; rows->name != NULL; rows++) {
        if (strlen(rows->name) > NAME_MAX_COMPARED)
            continue;
        unsigned distance = option_name_distance(unknown, rows->name);
        size_t length = strlen(rows->name);
        if (distance <= (length < 6 ? 1 : length / 3) && (nearest->name == NULL || distance < nearest->distance))
            *nearest = (nl_option_nearest){rows->name, distance};
    }
}

bool nl_option_list_has(const char *list, char separator, const char *item, size_t size)
{
    while (*list != '\0') {
        const char *end = strchrnul(list, separator);
        if ((size_t)(end - list) == size && memcmp(list, item, size) == 0)
            return true;
        list = end + (*end != '\0');
    }
    return false;
}

/* Copies the choice at an index to scratch. Returns scratch. Returns NULL if the choice is empty or does not exist. */
static const char *option_choice(const char *choices, int64_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    const char *at = choices;
    for (; index > 0 && *at != '\0'; index--)
        at += strcspn(at, "|") + (strchr(at, '|') != NULL);
    snprintf(scratch, NL_OPTION_VALUE_SIZE, "%.*s", (int)strcspn(at, "|"), at);
    return *scratch != '\0' ? scratch : NULL;
}

const char *nl_option_get_at(const nl_option *row, const void *settings, size_t index,
                             char scratch[NL_OPTION_TEXT_SIZE])
{
    if (row->get != NULL)
        return row->get(settings, index, scratch);
    if (index > 0 || row->size == 0)
        return NULL;
    if (row->type == NL_OPTION_TEXT || row->type == NL_OPTION_COPY)
        return row->size == sizeof(char *) ? *(const char **)option_member(row, settings) : NULL;
    int64_t value = option_load_integer(row, settings);
    switch (row->type) {
    case NL_OPTION_FLAG:
        return value != 0 ? "yes" : "no";
    case NL_OPTION_CHOICE:
        return option_choice(nl_option_choices(row), value, scratch);
    case NL_OPTION_LEVEL:
        return nl_level_name((nl_level)value);
    case NL_OPTION_TIME:
        if (value == INT64_MIN || value == INT64_MAX)
            return NULL;
        nl_time_format_iso(value, scratch);
        return scratch;
    default:
        if (value < 0)
            return row->choices != NULL ? option_choice(row->choices, -1 - value, scratch) : NULL;
        return nl_option_format_bound(row, row->unit > 1 ? value * row->unit : value, scratch);
    }
}

const char *nl_option_get(const nl_option *row, const void *settings, char scratch[NL_OPTION_TEXT_SIZE])
{
    return nl_option_get_at(row, settings, 0, scratch);
}

const nl_option *nl_options_init(const nl_option *rows, void *settings)
{
    for (; rows->name != NULL; rows++)
        if (rows->initial != NULL && *rows->initial != '(' && !nl_option_set(rows, settings, rows->initial))
            return rows;
    return NULL;
}

void nl_options_free(const nl_option *rows, void *settings)
{
    for (; rows->name != NULL; rows++)
        if (rows->type == NL_OPTION_COPY && rows->size == sizeof(char *)) {
            free(*(char **)option_member(rows, settings));
            *(char **)option_member(rows, settings) = NULL;
        }
}

const nl_option *nl_options_fixed_difference(const nl_option *rows, const void *a, const void *b)
{
    for (; rows->name != NULL; rows++) {
        char of_a[NL_OPTION_TEXT_SIZE], of_b[NL_OPTION_TEXT_SIZE];
        if (rows->on_reload)
            continue;
        const char *first = nl_option_get(rows, a, of_a), *second = nl_option_get(rows, b, of_b);
        if (first == NULL || second == NULL ? first != second : strcmp(first, second) != 0)
            return rows;
    }
    return NULL;
}

const nl_option *nl_options_read_environment(const nl_option *rows, void *settings)
{
    const nl_option *rejected = NULL;
    nl_error error;
    for (; rows->name != NULL; rows++) {
        const char *value = rows->environment != NULL ? nl_environment_value(rows->environment) : NULL;
        if (value == NULL || nl_option_set(rows, settings, value) || rejected != NULL)
            continue;
        rejected = rows;
        nl_error_prepend("%s", rows->environment);
        nl_error_save(&error);
    }
    if (rejected != NULL)
        nl_error_restore(&error);
    return rejected;
}
