/*
 * Writes CSV (RFC 4180), with a row for each record and a column for each field name. The first row has the keys of
 * keys.h.
 *
 * An empty cell means that the record does not have the field; "" is an empty field. If the fields of a record are not
 * in the order of the columns, the "#order" column has the numbers of their columns, beginning with 1. A first pass
 * over the input finds the columns.
 */
#include "config.h"

#include "convert/csv.h"
#include "convert/json_text.h"
#include "convert/keys.h"
#include "convert/text_set.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"

#include <string.h>

enum { MEMBERS = 5 }; /* the columns of the standard fields come first */

static const char *const member_names[MEMBERS] = {"ts", "event", "level", "host", "prog"};

/* ---- the names of the previous record; most records have the same names ---- */

typedef struct known_names {
    nl_buffer names; /* for each name, its length (size_t) and its bytes */
    size_t count;
} known_names;

static bool are_known(const known_names *k, const nl_record *record)
{
    const char *at = k->names.data;
    if (k->count != record->field_count)
        return false;
    for (size_t i = 0; i < k->count; i++) {
        nl_string name = record->fields[i].name;
        size_t size;
        memcpy(&size, at, sizeof size);
        if (size != name.size || memcmp(at + sizeof size, name.data, size) != 0)
            return false;
        at += sizeof size + size;
    }
    return true;
}

static void know_names(known_names *k, const nl_record *record)
{
    k->names.size = 0;
    k->count = record->field_count;
    for (size_t i = 0; i < k->count; i++) {
        nl_string name = record->fields[i].name;
        nl_buffer_append(&k->names, &name.size, sizeof name.size);
        nl_buffer_append(&k->names, name.data, name.size);
    }
}

/* ---- the first pass, which finds the columns ---- */

typedef struct columns {
    text_set keys;
    bool ordered; /* every record so far has its fields in the order of the columns */
} columns;

static void *share_columns(const char *drawing_path)
{
    (void)drawing_path;
    columns *c = nl_memory_check(calloc(1, sizeof *c));
    c->ordered = true;
    return c;
}

static void unshare_columns(void *shared)
{
    columns *c = shared;
    text_set_free(&c->keys);
    free(c);
}

/*
 * Writes each distinct list of keys once. A list (shape) has the keys of a record's fields, each followed by a newline.
 */
typedef struct shape_writer {
    exporter base;
    keys keys;
    text_set shapes; /* the shapes that were written for this piece */
    nl_buffer shape;
    known_names known; /* names of the previous record, whose shape was already written */
} shape_writer;

static const exporter_kind shape_exporter;

static void close_shapes(exporter *base)
{
    shape_writer *w = (shape_writer *)base;
    keys_free(&w->keys);
    text_set_free(&w->shapes);
    nl_buffer_free(&w->shape);
    nl_buffer_free(&w->known.names);
}

static void put_shape(exporter *base, const nl_record *record, bool typed, sink *s)
{
    (void)typed;
    shape_writer *w = (shape_writer *)base;
    if (are_known(&w->known, record))
        return;
    know_names(&w->known, record);
    w->shape.size = 0;
    keys_begin(&w->keys, record->field_count);
    for (size_t i = 0; i < record->field_count; i++) {
        keys_put(&w->keys, record->fields[i].name, &w->shape);
        nl_buffer_append(&w->shape, "\n", 1);
    }
    bool added;
    text_set_add(&w->shapes, (nl_string){w->shape.data, w->shape.size}, &added);
    if (added) {
        nl_buffer_append(&s->bytes, w->shape.data, w->shape.size);
        nl_buffer_append(&s->bytes, "\n", 1);
    }
}

static void flush_shapes(exporter *base, sink *s)
{
    (void)s;
    text_set_clear(&((shape_writer *)base)->shapes);
}

static bool learn_shapes(void *shared, nl_string bytes)
{
    columns *c = shared;
    size_t latest = 0;
    for (const char *at = bytes.data, *end = at + bytes.size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        nl_string key = {at, (size_t)(newline - at)};
        at = newline + 1;
        if (key.size == 0) {
            latest = 0;
            continue;
        }
        bool added;
        size_t column = text_set_add(&c->keys, key, &added);
        if (added && c->keys.count > CSV_COLUMN_LIMIT) {
            program_error("csv: more than %d different field names; use another format", CSV_COLUMN_LIMIT);
            return false;
        }
        c->ordered = c->ordered && column + 1 > latest;
        latest = column + 1;
    }
    return true;
}

static const exporter_kind shape_exporter = {
    .name = "csv",
    .text_only = true,
    .learn = learn_shapes,
    .size = sizeof(shape_writer),
    .close = close_shapes,
    .put = put_shape,
    .flush = flush_shapes,
};

/* ---- rows ---- */

typedef struct row_writer {
    exporter base;
    const columns *columns;
    keys keys;
    time_text time;
    const nl_field **cells; /* fields of the record, indexed by column; NULL if the cell is empty */
    nl_buffer key;
    known_names known;
    size_t *places;  /* the columns of the known names; SIZE_MAX if a name has no column */
    size_t capacity; /* capacity of `places` */
    bool ordered;    /* the known names are in the order of the columns */
    nl_buffer order; /* if ordered is false: the "#order" cell */
} row_writer;

static void open_rows(exporter *base)
{
    row_writer *w = (row_writer *)base;
    w->columns = base->shared;
    w->cells = nl_memory_check(calloc(w->columns->keys.count + 1, sizeof *w->cells));
}

static void close_rows(exporter *base)
{
    row_writer *w = (row_writer *)base;
    keys_free(&w->keys);
    nl_buffer_free(&w->key);
    nl_buffer_free(&w->order);
    nl_buffer_free(&w->known.names);
    free(w->places);
    free(w->cells);
}

static bool needs_quotes(nl_string text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == ',' || text.data[i] == '"' || text.data[i] == '\n' || text.data[i] == '\r')
            return true;
    return text.size == 0;
}

static char *put_quoted(char *to, nl_string text)
{
    *to++ = '"';
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"')
            *to++ = '"';
        *to++ = text.data[i];
    }
    *to++ = '"';
    return to;
}

/* Writes a comma and a cell. */
static void put_cell(nl_buffer *out, nl_string text)
{
    bool quoted = needs_quotes(text);
    nl_buffer_reserve(out, quoted ? 2 * text.size + 3 : text.size + 1);
    char *to = out->data + out->size;
    *to++ = ',';
    if (quoted) {
        to = put_quoted(to, text);
    } else {
        memcpy(to, text.data, text.size);
        to += text.size;
    }
    out->size = (size_t)(to - out->data);
}

static void put_optional(nl_buffer *out, nl_string text)
{
    if (text.data != NULL)
        put_cell(out, text);
    else
        nl_buffer_append(out, ",", 1);
}

static void begin_table(exporter *base, sink *s)
{
    const columns *c = ((row_writer *)base)->columns;
    nl_buffer *out = &s->bytes;
    for (size_t i = 0; i < MEMBERS; i++) {
        if (i > 0)
            nl_buffer_append(out, ",", 1);
        nl_buffer_append_text(out, member_names[i]);
    }
    for (size_t i = 0; i < c->keys.count; i++)
        put_optional(out, c->keys.texts[i]);
    if (!c->ordered)
        put_optional(out, nl_string_of(CSV_ORDER));
    nl_buffer_append(out, "\r\n", 2);
}

static void find_places(row_writer *w, const nl_record *record)
{
    size_t latest = 0;
    know_names(&w->known, record);
    if (w->capacity < record->field_count) {
        w->capacity = 2 * record->field_count;
        w->places = nl_memory_check(reallocarray(w->places, w->capacity, sizeof *w->places));
    }
    w->ordered = true;
    w->order.size = 0;
    keys_begin(&w->keys, record->field_count);
    for (size_t i = 0; i < record->field_count; i++) {
        w->key.size = 0;
        keys_put(&w->keys, record->fields[i].name, &w->key);
        size_t column = text_set_find(&w->columns->keys, (nl_string){w->key.data, w->key.size});
        w->places[i] = column;
        if (column == SIZE_MAX) /* the first pass did not see this name, because the input has grown */
            continue;
        w->ordered = w->ordered && column + 1 > latest;
        latest = column + 1;
        nl_buffer_reserve(&w->order, 24);
        w->order.size += (size_t)snprintf(w->order.data + w->order.size, 24, i == 0 ? "%zu" : " %zu", column + 1);
    }
}

static void place_fields(row_writer *w, const nl_record *record)
{
    if (!are_known(&w->known, record))
        find_places(w, record);
    for (size_t i = 0; i < record->field_count; i++)
        if (w->places[i] != SIZE_MAX)
            w->cells[w->places[i]] = &record->fields[i];
}

static void put_row(exporter *base, const nl_record *record, bool typed, sink *s)
{
    (void)typed;
    row_writer *w = (row_writer *)base;
    nl_buffer *out = &s->bytes;
    time_text_put(&w->time, record->time_ns, out);
    put_optional(out, record->event);
    put_optional(out, level_as_text(record));
    put_optional(out, record->host);
    put_optional(out, record->prog);
    place_fields(w, record);
    for (size_t i = 0; i < w->columns->keys.count; i++) {
        char scratch[NL_FIELD_TEXT_SIZE];
        if (w->cells[i] != NULL)
            put_cell(out, nl_field_text(w->cells[i], scratch));
        else
            nl_buffer_append(out, ",", 1);
        w->cells[i] = NULL;
    }
    if (!w->columns->ordered)
        put_optional(out, w->ordered || record->field_count == 0 ? (nl_string){NULL, 0}
                                                                 : (nl_string){w->order.data, w->order.size});
    nl_buffer_append(out, "\r\n", 2);
}

const exporter_kind csv_exporter = {
    .name = "csv",
    .what = "CSV (RFC 4180) with a column for each field name",
    .text_only = true,
    .share = share_columns,
    .unshare = unshare_columns,
    .first_pass = &shape_exporter,
    .size = sizeof(row_writer),
    .open = open_rows,
    .close = close_rows,
    .begin = begin_table,
    .put = put_row,
};
