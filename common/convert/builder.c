#include "config.h"

#include "convert/builder.h"

#include "record/field_name.h"
#include "base/buffer.h"
#include "base/memory.h"

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

/* Consecutive times are often in the same second, so usually only the fraction must be parsed. */
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
    char *mended = name.size > 0 ? builder_bytes(b, name.size) : NULL;
    if (mended == NULL)
        return (nl_string){none, 1};
    memcpy(mended, name.data, name.size);
    nl_name_make_valid(mended, name.size);
    return (nl_string){mended, name.size};
}

nl_field *builder_add_good_name(builder *b, nl_string name)
{
    if (b->count == b->capacity) {
        b->capacity = b->capacity == 0 ? 32 : 2 * b->capacity;
        b->fields = nl_memory_check(reallocarray(b->fields, b->capacity, sizeof *b->fields));
    }
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

bool builder_finish(builder *b, bool typed, sink *s)
{
    if ((b->seen & 1u << MEMBER_TIME) == 0)
        return false;
    b->record->fields = b->fields;
    b->record->field_count = b->count;
    if (s->about != NULL && s->about->host != NULL && b->record->host.data == NULL)
        b->record->host = (nl_string){s->about->host, strlen(s->about->host)};
    sink_put(s, b->record, typed);
    return true;
}
