#include "config.h"

#include "log/payload.h"

#include "record/field_name.h"
#include "record/record_internal.h"

#include <string.h>

static const uint32_t ABSENT = UINT32_MAX;

/* The numbers of a record, which come first in its payload. */
typedef struct payload_head {
    int64_t time_ns;
    uint32_t level;
    uint32_t field_count;
} payload_head;

static size_t cut(nl_string string)
{
    return string.data == NULL ? 0 : string.size < NL_PAYLOAD_STRING_MAX ? string.size : NL_PAYLOAD_STRING_MAX;
}

static size_t string_size(nl_string string)
{
    return sizeof(uint32_t) + cut(string);
}

size_t nl_payload_size(const nl_record *record)
{
    size_t size = sizeof(payload_head) + string_size(record->host) + string_size(record->prog) +
                  string_size(record->level_text) + string_size(record->event);
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        size += 1 + string_size(field->name) +
                (field->type == NL_TYPE_STRING ? string_size(field->string) : sizeof field->int_value);
    }
    return size;
}

size_t nl_payload_longest(const nl_record *record)
{
    size_t longest = 0;
    for (size_t i = 0; i < record->field_count; i++)
        if (record->fields[i].type == NL_TYPE_STRING && record->fields[i].string.size > longest)
            longest = record->fields[i].string.size;
    return longest;
}

static char *put_string(char *at, nl_string string)
{
    uint32_t size = (uint32_t)cut(string), mark = string.data == NULL ? ABSENT : size;
    memcpy(at, &mark, sizeof mark);
    if (size > 0)
        memcpy(at + sizeof mark, string.data, size);
    return at + sizeof mark + size;
}

void nl_payload_put(char *at, const nl_record *record)
{
    payload_head head = {record->time_ns, (uint32_t)record->level, (uint32_t)record->field_count};
    memcpy(at, &head, sizeof head);
    at = put_string(at + sizeof head, record->host);
    at = put_string(at, record->prog);
    at = put_string(at, record->level_text);
    at = put_string(at, record->event);
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        *at++ = (char)field->type;
        at = put_string(at, field->name);
        if (field->type == NL_TYPE_STRING) {
            at = put_string(at, field->string);
        } else {
            uint64_t bits = field->type == NL_TYPE_BOOL ? field->bool_value : field->uint_value;
            memcpy(at, &bits, sizeof bits);
            at += sizeof bits;
        }
    }
}

static bool get_string(const char **at, const char *end, nl_string *string)
{
    uint32_t size;
    if (end - *at < (ptrdiff_t)sizeof size)
        return false;
    memcpy(&size, *at, sizeof size);
    *at += sizeof size;
    if (size == ABSENT) {
        *string = (nl_string){NULL, 0};
        return true;
    }
    if ((size_t)(end - *at) < size)
        return false;
    *string = (nl_string){*at, size};
    *at += size;
    return true;
}

static bool get_field(const char **at, const char *end, nl_field *field)
{
    if (field == NULL || *at == end)
        return false;
    field->type = (nl_type)(unsigned char)*(*at)++;
    if (field->type > NL_TYPE_BOOL || !get_string(at, end, &field->name) || !nl_is_name(field->name))
        return false;
    if (field->type == NL_TYPE_STRING)
        return get_string(at, end, &field->string);
    uint64_t bits;
    if (end - *at < (ptrdiff_t)sizeof bits)
        return false;
    memcpy(&bits, *at, sizeof bits);
    *at += sizeof bits;
    if (field->type == NL_TYPE_BOOL)
        field->bool_value = bits != 0;
    else
        field->uint_value = bits;
    return true;
}

bool nl_payload_get(const char *at, size_t size, nl_record *record)
{
    const char *end = at + size;
    payload_head head;
    if (size < sizeof head)
        return false;
    memcpy(&head, at, sizeof head);
    if (head.level > NL_DEBUG)
        return false;
    at += sizeof head;
    record->time_ns = head.time_ns;
    record->level = (nl_level)head.level;
    if (!get_string(&at, end, &record->host) || !get_string(&at, end, &record->prog) ||
        !get_string(&at, end, &record->level_text) || !get_string(&at, end, &record->event))
        return false;
    for (uint32_t i = 0; i < head.field_count; i++)
        if (!get_field(&at, end, nl_record_append(record)))
            return false;
    return at == end;
}
