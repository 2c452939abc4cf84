#include "config.h"

#include "convert/builder.h"

#include "record/common_names.h"
#include "record/field_name.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND_SIZE = 19 }; /* YYYY-MM-DDTHH:MM:SS */

void builder_begin(builder *b, size_t capacity)
{
    if (b->record == NULL)
        b->record = nl_record_new();
    nl_record_clear(b->record);
    b->count = 0;
    b->seen = 0;
    b->time = (nl_string){NULL, 0};
    b->bytes.size = 0;
    nl_buffer_reserve(&b->bytes, capacity);
}

void builder_free(builder *b)
{
    nl_record_free(b->record);
    free(b->fields);
    nl_buffer_free(&b->bytes);
}

char *builder_bytes(builder *b, size_t size)
{
    if (size > b->bytes.capacity - b->bytes.size)
        return NULL;
    char *bytes = b->bytes.data + b->bytes.size;
    b->bytes.size += size;
    return bytes;
}

/*
 * If a time is in the same second as the previous time, parses only its fraction. This saves time, because consecutive
 * times are often in the same second. Returns false for other times.
 */
static bool read_known_second(const builder *b, nl_string text, int64_t *time_ns)
{
    if (text.size < SECOND_SIZE + 3 || text.size > SECOND_SIZE + 11 || memcmp(text.data, b->second, SECOND_SIZE) != 0 ||
        text.data[SECOND_SIZE] != '.' || text.data[text.size - 1] != 'Z')
        return false;
    static const int64_t units[] = {1000000000, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1};
    int64_t fraction = 0;
    for (size_t at = SECOND_SIZE + 1; at + 1 < text.size; at++) {
        if (text.data[at] < '0' || text.data[at] > '9')
            return false;
        fraction = fraction * 10 + (text.data[at] - '0');
    }
    *time_ns = b->second_ns + fraction * units[text.size - SECOND_SIZE - 2];
    return true;
}

static bool read_time(builder *b, nl_string text, int64_t *time_ns)
{
    if (read_known_second(b, text, time_ns))
        return true;
    if (nl_time_parse(text.data, text.size, NL_FRACTION_DECIMAL, time_ns) != NL_OK)
        return false;
    int64_t second_ns;
    char second[SECOND_SIZE + 2];
    if (text.size > SECOND_SIZE) {
        memcpy(second, text.data, SECOND_SIZE);
        second[SECOND_SIZE] = 'Z';
        second[SECOND_SIZE + 1] = '\0';
        if (text.data[4] == '-' && text.data[SECOND_SIZE] == '.' &&
            nl_time_parse(second, SECOND_SIZE + 1, NL_FRACTION_DECIMAL, &second_ns) == NL_OK) {
            memcpy(b->second, second, sizeof second);
            b->second_ns = second_ns;
        }
    }
    return true;
}

bool builder_set(builder *b, member m, nl_string text)
{
    nl_record *record = b->record;
    b->seen |= 1u << m;
    switch (m) {
    case MEMBER_TIME:
        b->time = text;
        return read_time(b, text, &record->time_ns);
    case MEMBER_EVENT:
        record->event = text;
        break;
    case MEMBER_LEVEL:
        record->level_text = text;
        record->level = nl_level_parse(text.data, text.size);
        break;
    case MEMBER_HOST:
        record->host = text;
        break;
    case MEMBER_PROG:
        record->prog = text;
        break;
    case MEMBER_NONE:
        break;
    }
    return true;
}

/* Returns the name with invalid bytes replaced by "_". */
static nl_string make_valid_name(builder *b, nl_string name)
{
    static const char none[] = "_";
    char *valid = name.size > 0 ? builder_bytes(b, name.size) : NULL;
    if (valid == NULL)
        return (nl_string){none, 1};
    memcpy(valid, name.data, name.size);
    nl_name_make_valid(valid, name.size);
    return (nl_string){valid, name.size};
}

nl_field *builder_add_good_name(builder *b, nl_string name)
{
    NL_ARRAY_GROW(b->fields, b->count, b->capacity);
    nl_field *field = &b->fields[b->count++];
    field->name = name;
    return field;
}

static nl_field *add_bad_name(builder *b, nl_string name, sink *s)
{
    sink_lose(s, LOSS_NAMES);
    return builder_add_good_name(b, make_valid_name(b, name));
}

nl_field *builder_add_name(builder *b, nl_string name, sink *s)
{
    return nl_is_name(name) ? builder_add_good_name(b, name) : add_bad_name(b, name, s);
}

nl_field *builder_add(builder *b, nl_string key, sink *s)
{
    bool repeated;
    return builder_add_name(b, key_name(key, &repeated), s);
}

builder_key builder_key_of(nl_string text)
{
    bool repeated;
    nl_string name = key_name(text, &repeated);
    return (builder_key){.text = text, .name = name, .member = member_of(text), .is_name = nl_is_name(name)};
}

nl_field *builder_add_key(builder *b, const builder_key *key, sink *s)
{
    return key->is_name ? builder_add_good_name(b, key->name) : add_bad_name(b, key->name, s);
}

void builder_add_text(builder *b, nl_string key, nl_string value, sink *s)
{
    nl_field *field = builder_add(b, key, s);
    field->type = NL_TYPE_STRING;
    field->string = value;
}

/* ---- times in other fields ---- */

/*
 * Converts a number of seconds, milliseconds, microseconds or nanoseconds since 1970 to nanoseconds. The magnitude of
 * the number shows its unit. Returns false if the result does not fit.
 */
static bool number_as_time(double number, int64_t *time_ns)
{
    enum { THOUSAND = 1000 };
    double size = fabs(number), unit_ns = NL_NS_PER_SECOND;
    for (double limit = 1e11; unit_ns > 1 && size >= limit; limit *= THOUSAND)
        unit_ns /= THOUSAND;
    if (!(size * unit_ns < 9.2e18))
        return false;
    *time_ns = (int64_t)llround(number * unit_ns);
    return true;
}

static bool integer_as_time(int64_t number, int64_t *time_ns)
{
    int64_t unit_ns = NL_NS_PER_SECOND;
    for (int64_t left = number / 100000000000; unit_ns > 1 && left != 0; left /= 1000)
        unit_ns /= 1000;
    return !__builtin_mul_overflow(number, unit_ns, time_ns);
}

static bool builder_field_as_time(builder *b, const nl_field *field, int64_t *time_ns)
{
    enum { CALENDAR_DIGITS = 14 }; /* YYYYMMDDhhmmss */
    double number;
    if (field->type == NL_TYPE_INT)
        return integer_as_time(field->int_value, time_ns);
    if (field->type != NL_TYPE_STRING)
        return nl_field_double(field, &number) && number_as_time(number, time_ns);
    nl_field typed = {0};
    if (field->string.size > CALENDAR_DIGITS - 2 && field->string.size != CALENDAR_DIGITS &&
        nl_field_int(field, &typed.int_value))
        return integer_as_time(typed.int_value, time_ns);
    return read_time(b, field->string, time_ns);
}

/* Returns whether a field has this name with "_" instead of invalid bytes. */
static bool has_name(const nl_field *field, const char *name, size_t size)
{
    if (field->name.size != size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (field->name.data[i] != (nl_name_may_have(name[i], i) ? name[i] : '_'))
            return false;
    return true;
}

/*
 * Sets the record's time from the first field with this name that contains a time, and removes the field. Returns false
 * if there is no such field.
 */
static bool take_time(builder *b, const char *name, size_t size)
{
    for (size_t i = 0; i < b->count; i++) {
        const nl_field *field = &b->fields[i];
        if (!has_name(field, name, size) || !builder_field_as_time(b, field, &b->record->time_ns))
            continue;
        memmove(&b->fields[i], &b->fields[i + 1], (--b->count - i) * sizeof *b->fields);
        return true;
    }
    return false;
}

/*
 * Sets the record's time from the field that the user named. If the record also has a standard time, the standard time
 * becomes the field ts. Returns false and sets the error if the field is missing or is not a time.
 */
static bool take_named_time(builder *b, const char *name)
{
    static const char ts[] = "ts";
    const size_t size = strlen(name);
    const bool is_standard = member_of((nl_string){name, size}) == MEMBER_TIME;
    if (is_standard ? (b->seen & 1u << MEMBER_TIME) == 0 : !take_time(b, name, size))
        return nl_error_false(NL_ERROR_INVALID, "no field %s that contains a time", name);
    if (!is_standard && b->time.data != NULL) {
        nl_field *field = builder_add_good_name(b, (nl_string){ts, sizeof ts - 1});
        field->type = NL_TYPE_STRING;
        field->string = b->time;
    }
    return true;
}

/*
 * Sets the time of a record without a standard time from the field time, timestamp or @timestamp. Returns false and
 * sets the error if none of these fields contains a time.
 */
static bool take_usual_time(builder *b, sink *s)
{
    if (take_time(b, "time", 4) || take_time(b, "timestamp", 9))
        return true;
    if (!take_time(b, "_timestamp", 10))
        return nl_error_false(NL_ERROR_INVALID,
                              "no ts, time, timestamp or @timestamp field; name the time field with --time-field");
    if (s->losses[LOSS_NAMES] > 0)
        s->losses[LOSS_NAMES]--; /* builder_add counted the name @timestamp as a loss, but this field is not in the
                                    output */
    return true;
}

bool builder_find_time(builder *b, sink *s)
{
    const char *time_field = s->about != NULL ? s->about->time_field : NULL;
    if (time_field != NULL)
        return take_named_time(b, time_field);
    return (b->seen & 1u << MEMBER_TIME) != 0 || take_usual_time(b, s);
}

void builder_use_common_names(builder *b)
{
    b->record->fields = b->fields;
    b->record->field_count = b->count;
    nl_record_use_common_names(b->record);
}

void builder_put(builder *b, bool typed, sink *s)
{
    b->record->fields = b->fields;
    b->record->field_count = b->count;
    if (s->about != NULL && s->about->host != NULL && b->record->host.data == NULL)
        b->record->host = nl_string_of(s->about->host);
    sink_put(s, b->record, typed);
}

bool builder_finish(builder *b, bool typed, sink *s)
{
    if (!builder_find_time(b, s))
        return false;
    builder_put(b, typed, s);
    return true;
}
