/*
 * JSON lines: a record is an object on a line of its own,
 *
 *   {"ts":"2000-03-30T11:23:20.957943Z","event":"WriteData","level":"Info","host":"h","prog":"p","SEND.SZ":49332}
 *
 * with the keys of keys.h and the values of json_text.h. What others write is read too: DATE for ts and so on, seconds
 * since 1970 for a time, objects within the object (their members are fields OUTER.INNER), arrays (as the text that
 * they are); null is a field that is not there.
 */
#include "config.h"

#include "convert/builder.h"
#include "convert/json_scan.h"
#include "convert/json_text.h"

#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

typedef struct json_writer {
    exporter base;
    keys keys;
    time_text time;
} json_writer;

static exporter *open_writer(void *shared)
{
    (void)shared;
    json_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    w->base.kind = &json_exporter;
    return &w->base;
}

static void close_writer(exporter *base)
{
    json_writer *w = (json_writer *)base;
    keys_free(&w->keys);
    free(w);
}

static void put_member(nl_buffer *out, const char *before, size_t before_size, nl_string text)
{
    if (text.data == NULL)
        return;
    json_put(out, before, before_size);
    json_put_text(out, text);
}
#define PUT_MEMBER(out, name, text) put_member(out, ",\"" name "\":", sizeof name + 3, text)

static void put(exporter *base, const nl_record *record, bool typed, sink *s)
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
    .what = "JSON lines, an object for each record",
    .open = open_writer,
    .close = close_writer,
    .put = put,
};

/* ---- reading ---- */

typedef struct json_reader {
    importer base;
    builder builder;
    json_scan scan;
    sink *s;
} json_reader;

static importer *open_reader(void *shared)
{
    (void)shared;
    json_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    r->base.kind = &json_importer;
    return &r->base;
}

static void close_reader(importer *base)
{
    json_reader *r = (json_reader *)base;
    builder_free(&r->builder);
    free(r);
}

static char *allocate(void *user, size_t size)
{
    return builder_bytes(user, size);
}

/* A value that is text, whatever it was. */
static bool take_text(json_reader *r, nl_string key, nl_string text)
{
    if (builder_take(&r->builder, key, text, r->s))
        return true;
    return json_fail(&r->scan, "the time can't be read");
}

static bool take_number(json_reader *r, nl_string key)
{
    nl_string text;
    if (!json_number(&r->scan, &text))
        return false;
    if (builder_member(&r->builder, key) != MEMBER_NONE)
        return take_text(r, key, text);
    json_number_value(text, builder_add(&r->builder, key, r->s));
    return true;
}

static bool take_truth(json_reader *r, nl_string key, const char *word, bool value)
{
    if (!json_word(&r->scan, word))
        return false;
    if (builder_member(&r->builder, key) != MEMBER_NONE)
        return take_text(r, key, (nl_string){word, strlen(word)});
    nl_field *field = builder_add(&r->builder, key, r->s);
    field->type = NL_TYPE_BOOL;
    field->bool_value = value;
    return true;
}

static bool equals(nl_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* OUTER.INNER */
static bool join(json_reader *r, nl_string outer, nl_string inner, nl_string *name)
{
    char *bytes = builder_bytes(&r->builder, outer.size + 1 + inner.size);
    if (bytes == NULL)
        return json_fail(&r->scan, "the names of objects within one another take too much room");
    memcpy(bytes, outer.data, outer.size);
    bytes[outer.size] = '.';
    memcpy(bytes + outer.size + 1, inner.data, inner.size);
    *name = (nl_string){bytes, outer.size + 1 + inner.size};
    return true;
}

static bool take_value(json_reader *r, nl_string key, int depth);

/* {"$bytes": ...} or {"$double": ...}, what JSON has no values for. */
static bool take_special(json_reader *r, nl_string key, nl_string kind)
{
    nl_string text;
    if (!json_string(&r->scan, &text))
        return false;
    if (equals(kind, "$bytes")) {
        char *bytes = builder_bytes(&r->builder, text.size);
        size_t size = bytes != NULL ? json_base64(text, bytes) : SIZE_MAX;
        return size != SIZE_MAX ? take_text(r, key, (nl_string){bytes, size})
                                : json_fail(&r->scan, "$bytes is no base64");
    }
    nl_field number = {.type = NL_TYPE_STRING, .string = text};
    double value;
    if (!nl_field_double(&number, &value))
        return json_fail(&r->scan, "$double is no number");
    nl_field *field = builder_add(&r->builder, key, r->s);
    field->type = NL_TYPE_DOUBLE;
    field->double_value = value;
    return true;
}

/* An object within the object, whose { was taken. */
static bool take_object(json_reader *r, nl_string key, int depth)
{
    bool first = true;
    nl_string inner, name;
    if (depth == JSON_DEPTH)
        return json_fail(&r->scan, "objects are too deep within one another");
    while (json_next(&r->scan, '}', &first)) {
        if (!json_key(&r->scan, &inner))
            return false;
        if (json_peek(&r->scan) == '"' && (equals(inner, "$bytes") || equals(inner, "$double"))) {
            if (!take_special(r, key, inner))
                return false;
        } else if (!join(r, key, inner, &name) || !take_value(r, name, depth + 1)) {
            return false;
        }
    }
    return r->scan.error == NULL;
}

static bool take_value(json_reader *r, nl_string key, int depth)
{
    nl_string text;
    switch (json_peek(&r->scan)) {
    case '"':
        return json_string(&r->scan, &text) && take_text(r, key, text);
    case '{':
        r->scan.at++;
        return take_object(r, key, depth);
    case '[':
        return json_any(&r->scan, &text) && take_text(r, key, text);
    case 't':
        return take_truth(r, key, "true", true);
    case 'f':
        return take_truth(r, key, "false", false);
    case 'n':
        return json_word(&r->scan, "null");
    default:
        return take_number(r, key);
    }
}

/* The object on a line. */
static bool take_line(json_reader *r)
{
    json_scan *j = &r->scan;
    bool first = true;
    nl_string key;
    if (!json_take(j, '{'))
        return json_fail(j, "no object begins the line");
    while (json_next(j, '}', &first))
        if (!json_key(j, &key) || !take_value(r, key, 1))
            return false;
    if (j->error != NULL)
        return false;
    json_blank(j);
    if (j->at != j->end)
        return json_fail(j, "something follows the object");
    return builder_finish(&r->builder, true, r->s) || json_fail(j, "there is no ts");
}

static void read_line(json_reader *r, const char *line, const char *end, uint64_t number, uint64_t offset)
{
    enum { ROOM_LEAST = 4096, ROOM_TIMES = 3 };
    r->scan = (json_scan){.at = line, .end = end, .allocate = allocate, .user = &r->builder};
    json_blank(&r->scan);
    if (r->scan.at == end)
        return;
    size_t size = (size_t)(end - line);
    builder_begin(&r->builder, ROOM_TIMES * size + ROOM_LEAST);
    if (!take_line(r))
        sink_malformed(r->s, number, offset, r->scan.error, line, size);
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

static bool detect(const char *data, size_t size)
{
    const char *at = data, *end = data + size;
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at < end && *at == '{';
}

const importer_kind json_importer = {
    .name = "json",
    .what = "JSON lines, an object for each record",
    .detect = detect,
    .open = open_reader,
    .close = close_reader,
    .read = read_lines,
};
