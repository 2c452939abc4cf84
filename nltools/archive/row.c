#include "config.h"

#include "archive/row.h"

#include "convert/json_text.h"
#include "record/format.h"

#include <string.h>

/* Returns `text` if it is valid UTF-8 without NUL. Otherwise, returns a copy in `copy`, in which U+FFFD replaces
 * invalid bytes and NUL. */
static nl_string clean(nl_string text, nl_buffer *copy)
{
    copy->size = 0;
    if (text.data == NULL)
        return text;
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.size, *good = at;
    while (at < end) {
        size_t size = *at == 0 ? 0 : *at < 0x80 ? 1 : utf8_size(at, end);
        if (size > 0) {
            at += size;
            continue;
        }
        nl_buffer_append(copy, (const char *)good, (size_t)(at - good));
        nl_buffer_append(copy, "\xef\xbf\xbd", 3);
        good = ++at;
    }
    if (copy->size == 0)
        return text;
    nl_buffer_append(copy, (const char *)good, (size_t)(end - good));
    return (nl_string){copy->data, copy->size};
}

static void make_fields(row_maker *m, const nl_record *record, bool typed)
{
    nl_buffer *out = &m->fields;
    out->size = 0;
    JSON_PUT(out, "{");
    keys_begin(&m->keys, record->field_count);
    for (size_t i = 0; i < record->field_count; i++) {
        if (i > 0)
            JSON_PUT(out, ",");
        JSON_PUT(out, "\"");
        keys_put(&m->keys, record->fields[i].name, out);
        JSON_PUT(out, "\":");
        json_put_value(out, &record->fields[i], typed, &m->unused);
    }
    JSON_PUT(out, "}");
}

bool row_make(row_maker *m, const nl_record *record, row *out)
{
    bool typed = record->raw.data == NULL && record->raw_format == NL_FORMAT_UNKNOWN;
    nl_string level = record->level_text;
    if (record->level != NL_LEVEL_NONE)
        level = (nl_string){nl_level_name(record->level), strlen(nl_level_name(record->level))};
    m->packed.size = 0;
    nl_buffer_append(&m->packed, typed ? "T" : "t", 1);
    if (!nl_record_pack(record, &m->packed))
        return false;
    make_fields(m, record, typed);
    *out = (row){.time_ns = record->time_ns,
                 .host = clean(record->host, &m->texts[0]),
                 .prog = clean(record->prog, &m->texts[1]),
                 .level = clean(level, &m->texts[2]),
                 .event = clean(record->event, &m->texts[3]),
                 .fields = {m->fields.data, m->fields.size},
                 .packed = {m->packed.data, m->packed.size}};
    return true;
}

void row_maker_free(row_maker *m)
{
    keys_free(&m->keys);
    nl_buffer_free(&m->fields);
    nl_buffer_free(&m->packed);
    for (int i = 0; i < 4; i++)
        nl_buffer_free(&m->texts[i]);
}

nl_status row_unpack(nl_record *record, nl_string packed, bool *typed)
{
    *typed = packed.size > 0 && packed.data[0] == 'T';
    return nl_record_unpack(record, packed.size > 0 ? packed.data + 1 : "", packed.size > 0 ? packed.size - 1 : 0);
}
