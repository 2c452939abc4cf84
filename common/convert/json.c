/*
 * JSON lines. A record is an object on one line,
 *
 *   {"ts":"2000-03-30T11:23:20.957943Z","event":"WriteData","level":"Info","host":"h","prog":"p","SEND.SZ":49332}
 *
 * with the keys of keys.h and the values of json_text.h. The reader also accepts ULM's names of standard fields (such
 * as DATE for ts), and a time in seconds since 1970. A nested object becomes fields OUTER.INNER, and an array becomes
 * text. The reader ignores null.
 */
#include "config.h"

#include "base/error.h"
#include "convert/json_fields.h"
#include "convert/json_text.h"

#include <string.h>

/* ---- writing ---- */

typedef struct json_writer {
    exporter base;
    keys keys;
    time_text time;
} json_writer;

static void json_close_writer(exporter *base)
{
    json_writer *w = (json_writer *)base;
    keys_free(&w->keys);
}

static void put_member(nl_buffer *out, const char *before, size_t before_size, nl_string text)
{
    if (text.data == NULL)
        return;
    json_put(out, before, before_size);
    json_put_text(out, text);
}
#define PUT_MEMBER(out, name, text) put_member(out, ",\"" name "\":", sizeof(name) + 3, text)

static void convert_json_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    json_writer *w = (json_writer *)base;
    nl_buffer *out = &s->bytes;
    JSON_PUT(out, "{\"ts\":\"");
    time_text_put(&w->time, record->time_ns, out);
    JSON_PUT(out, "\"");
    PUT_MEMBER(out, "event", record->event);
    PUT_MEMBER(out, "level", level_as_text(record));
    PUT_MEMBER(out, "host", record->host);
    PUT_MEMBER(out, "prog", record->prog);
    keys_begin(&w->keys, record->field_count);
    for (size_t i = 0; i < record->field_count; i++) {
        JSON_PUT(out, ",\"");
        keys_put(&w->keys, record->fields[i].name, out);
        JSON_PUT(out, "\":");
        json_put_value(out, &record->fields[i], typed, s);
    }
    JSON_PUT(out, "}\n");
}

const exporter_kind json_exporter = {
    .name = "json",
    .what = "JSON lines, one object per record",
    .size = sizeof(json_writer),
    .close = json_close_writer,
    .put = convert_json_put,
};

/* ---- reading ---- */

typedef struct json_reader {
    importer base;
    builder builder;
    json_fields fields;
    sink *s;
} json_reader;

static void json_close_reader(importer *base)
{
    json_reader *r = (json_reader *)base;
    builder_free(&r->builder);
}

static bool json_take_line(json_fields *r)
{
    json_scan *j = &r->scan;
    if (!json_take_members(r))
        return false;
    json_blank(j);
    if (j->at != j->end)
        return json_fail(j, "unexpected text after the object");
    if (!builder_find_time(r->builder, r->s))
        return json_fail(j, nl_error_message());
    builder_use_common_names(r->builder);
    builder_put(r->builder, true, r->s);
    return true;
}

static bool is_blank(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at == end;
}

static void read_line(json_reader *r, const char *line, const char *end, uint64_t number, uint64_t offset)
{
    json_fields *fields = &r->fields;
    if (is_blank(line, end))
        return;
    json_fields_begin(fields, &r->builder, line, end, r->s);
    if (!json_take_line(fields))
        sink_malformed(r->s, number, offset, fields->scan.error, line, (size_t)(end - line));
}

static void read_lines(importer *base, const char *data, size_t size, sink *s)
{
    json_reader *r = (json_reader *)base;
    r->s = s;
    uint64_t number = 1;
    for (const char *at = data, *end = data + size; at < end && !s->stopped; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        read_line(r, at, newline != NULL ? newline : end, number, (uint64_t)(at - data));
        at = newline != NULL ? newline + 1 : end;
    }
}

static bool json_detect(const char *data, size_t size)
{
    const char *at = data, *end = data + size;
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at < end && *at == '{';
}

const importer_kind json_importer = {
    .name = "json",
    .what = "JSON lines, one object per record",
    .detect = json_detect,
    .size = sizeof(json_reader),
    .close = json_close_reader,
    .read = read_lines,
};
