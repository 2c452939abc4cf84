/*
 * CSV (RFC 4180): a row for each record, a column for each field that occurs, named in the first row by the keys of
 * keys.h.
 *
 * A cell with nothing in it is a field that is not there; "" in quotes is one that is empty. Where the fields of a
 * record are not in the order of the columns, the column "#order" says which come in which order: their columns'
 * numbers, counted from 1. To know the columns the input is gone through twice.
 *
 * Reading. A row ends with the first newline outside of quotes; CRLF or LF. A quote that does not begin a cell stands
 * for itself. A cell in quotes that does not end within a megabyte is no cell: its row ends with its line.
 */
#include "config.h"

#include "convert/builder.h"
#include "convert/json_text.h"

#include <stdlib.h>
#include <string.h>

enum {
    COLUMN_LIMIT = 16384,
    QUOTED_LIMIT = 1 << 20,
    MEMBERS = 5, /* the columns of the standard fields come first */
};

static const char *const member_names[MEMBERS] = {"ts", "event", "level", "host", "prog"};
static const char order_name[] = "#order";

static void *or_die(void *memory)
{
    if (memory == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return memory;
}

/* ---- a set of texts, numbered as they come ---- */

typedef struct text_set {
    nl_string *texts;
    size_t count, capacity;
    uint32_t *slots; /* number + 1; 0: free */
    size_t slot_count;
} text_set;

static uint64_t hash(nl_string text)
{
    uint64_t h = text.size, part;
    size_t at = 0;
    for (; at + 8 <= text.size; at += 8) {
        memcpy(&part, text.data + at, 8);
        h = (h ^ part) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    part = 0;
    if (at < text.size)
        memcpy(&part, text.data + at, text.size - at);
    h = (h ^ part) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

/* The slot of a text, or the free one where it belongs. */
static uint32_t *find_slot(const text_set *set, nl_string text)
{
    for (size_t at = hash(text);; at++) {
        uint32_t *slot = &set->slots[at & (set->slot_count - 1)];
        if (*slot == 0)
            return slot;
        nl_string known = set->texts[*slot - 1];
        if (known.size == text.size && memcmp(known.data, text.data, text.size) == 0)
            return slot;
    }
}

static void grow(text_set *set)
{
    set->capacity = set->capacity == 0 ? 64 : 2 * set->capacity;
    set->texts = or_die(reallocarray(set->texts, set->capacity, sizeof *set->texts));
    free(set->slots);
    set->slot_count = 2 * set->capacity;
    set->slots = or_die(calloc(set->slot_count, sizeof *set->slots));
    for (size_t i = 0; i < set->count; i++)
        *find_slot(set, set->texts[i]) = (uint32_t)i + 1;
}

/* The number of a text; SIZE_MAX when it is not there. */
static size_t text_set_find(const text_set *set, nl_string text)
{
    uint32_t *slot = set->slot_count > 0 ? find_slot(set, text) : NULL;
    return slot != NULL && *slot != 0 ? *slot - 1 : SIZE_MAX;
}

/* The number of a text, which is added, copied, when it is not there. */
static size_t text_set_add(text_set *set, nl_string text, bool *added)
{
    if (set->count == set->capacity)
        grow(set);
    uint32_t *slot = find_slot(set, text);
    *added = *slot == 0;
    if (*added) {
        char *copy = or_die(malloc(text.size + 1));
        if (text.size > 0)
            memcpy(copy, text.data, text.size);
        set->texts[set->count++] = (nl_string){copy, text.size};
        *slot = (uint32_t)set->count;
    }
    return *slot - 1;
}

static void text_set_clear(text_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free((char *)set->texts[i].data);
    set->count = 0;
    if (set->slot_count > 0)
        memset(set->slots, 0, set->slot_count * sizeof *set->slots);
}

static void text_set_free(text_set *set)
{
    text_set_clear(set);
    free(set->texts);
    free(set->slots);
}

/* ---- writing: the first pass, which finds the columns ---- */

typedef struct columns {
    text_set keys;
    bool ordered; /* all records so far have their fields in the columns' order */
} columns;

static void *share_columns(const char *drawing_path)
{
    (void)drawing_path;
    columns *c = or_die(calloc(1, sizeof *c));
    c->ordered = true;
    return c;
}

static void unshare_columns(void *shared)
{
    columns *c = shared;
    text_set_free(&c->keys);
    free(c);
}

/* Gathers the shapes of a chunk's records: their fields' keys, each with a '\n'. */
typedef struct shape_writer {
    exporter base;
    keys keys;
    text_set shapes; /* of this chunk */
    nl_buffer shape;
} shape_writer;

static const exporter_kind shape_exporter;

static exporter *open_shapes(void *shared)
{
    (void)shared;
    shape_writer *w = or_die(calloc(1, sizeof *w));
    w->base.kind = &shape_exporter;
    return &w->base;
}

static void close_shapes(exporter *base)
{
    shape_writer *w = (shape_writer *)base;
    keys_free(&w->keys);
    text_set_free(&w->shapes);
    nl_buffer_free(&w->shape);
    free(w);
}

static void put_shape(exporter *base, const nl_record *record, bool typed, sink *s)
{
    (void)typed;
    shape_writer *w = (shape_writer *)base;
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
        if (added && c->keys.count > COLUMN_LIMIT) {
            program_error("csv: there are more than %d different fields, too many for a table", COLUMN_LIMIT);
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
    .open = open_shapes,
    .close = close_shapes,
    .put = put_shape,
    .flush = flush_shapes,
};

/* ---- writing: rows ---- */

typedef struct row_writer {
    exporter base;
    const columns *columns;
    keys keys;
    time_text time;
    const nl_field **cells; /* of the record, by column; NULL: none */
    nl_buffer key, order;
} row_writer;

static exporter *open_rows(void *shared)
{
    row_writer *w = or_die(calloc(1, sizeof *w));
    w->base.kind = &csv_exporter;
    w->columns = shared;
    w->cells = or_die(calloc(w->columns->keys.count + 1, sizeof *w->cells));
    return &w->base;
}

static void close_rows(exporter *base)
{
    row_writer *w = (row_writer *)base;
    keys_free(&w->keys);
    nl_buffer_free(&w->key);
    nl_buffer_free(&w->order);
    free(w->cells);
    free(w);
}

static bool needs_quotes(nl_string text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == ',' || text.data[i] == '"' || text.data[i] == '\n' || text.data[i] == '\r')
            return true;
    return text.size == 0;
}

static void put_cell(nl_buffer *out, nl_string text)
{
    if (!needs_quotes(text)) {
        nl_buffer_append(out, text.data, text.size);
        return;
    }
    nl_buffer_reserve(out, 2 * text.size + 2);
    char *to = out->data + out->size;
    *to++ = '"';
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"')
            *to++ = '"';
        *to++ = text.data[i];
    }
    *to++ = '"';
    out->size = (size_t)(to - out->data);
}

static void put_optional(nl_buffer *out, nl_string text)
{
    nl_buffer_append(out, ",", 1);
    if (text.data != NULL)
        put_cell(out, text);
}

static void begin_table(exporter *base, sink *s)
{
    const columns *c = ((row_writer *)base)->columns;
    nl_buffer *out = &s->bytes;
    for (size_t i = 0; i < MEMBERS; i++) {
        if (i > 0)
            nl_buffer_append(out, ",", 1);
        nl_buffer_append(out, member_names[i], strlen(member_names[i]));
    }
    for (size_t i = 0; i < c->keys.count; i++)
        put_optional(out, c->keys.texts[i]);
    if (!c->ordered)
        put_optional(out, (nl_string){order_name, strlen(order_name)});
    nl_buffer_append(out, "\r\n", 2);
}

/* Puts the record's fields into their columns. Whether they are in the columns' order; if not, it is in w->order. */
static bool place_fields(row_writer *w, const nl_record *record)
{
    bool ordered = true;
    size_t latest = 0;
    w->order.size = 0;
    keys_begin(&w->keys, record->field_count);
    for (size_t i = 0; i < record->field_count; i++) {
        w->key.size = 0;
        keys_put(&w->keys, record->fields[i].name, &w->key);
        size_t column = text_set_find(&w->columns->keys, (nl_string){w->key.data, w->key.size});
        if (column == SIZE_MAX) /* the input has grown since the first pass */
            continue;
        w->cells[column] = &record->fields[i];
        ordered = ordered && column + 1 > latest;
        latest = column + 1;
        nl_buffer_reserve(&w->order, 16);
        w->order.size += (size_t)snprintf(w->order.data + w->order.size, 16, i == 0 ? "%zu" : " %zu", column + 1);
    }
    return ordered;
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
    bool ordered = place_fields(w, record);
    for (size_t i = 0; i < w->columns->keys.count; i++) {
        char scratch[NL_FIELD_TEXT_SIZE];
        nl_buffer_append(out, ",", 1);
        if (w->cells[i] != NULL)
            put_cell(out, nl_field_text(w->cells[i], scratch));
        w->cells[i] = NULL;
    }
    if (!w->columns->ordered)
        put_optional(out, ordered ? (nl_string){NULL, 0} : (nl_string){w->order.data, w->order.size});
    nl_buffer_append(out, "\r\n", 2);
}

const exporter_kind csv_exporter = {
    .name = "csv",
    .what = "CSV (RFC 4180), a column for each field",
    .text_only = true,
    .share = share_columns,
    .unshare = unshare_columns,
    .first_pass = &shape_exporter,
    .open = open_rows,
    .close = close_rows,
    .begin = begin_table,
    .put = put_row,
};

/* ---- reading ---- */

/*
 * Finds where a cell ends: at a comma, at a row's end, or at end. quoted is whether it is in quotes. What follows the
 * closing quote belongs to the cell, but makes it a bad one. NULL when the quotes do not end before end.
 */
static const char *cell_end(const char *at, const char *end, bool *quoted, const char **close)
{
    *quoted = at < end && *at == '"';
    if (*quoted) {
        const char *limit = end - at > QUOTED_LIMIT ? at + QUOTED_LIMIT : end;
        for (*close = at + 1;; *close += 2) {
            *close = *close < limit ? memchr(*close, '"', (size_t)(limit - *close)) : NULL;
            if (*close == NULL) {
                if (limit == end)
                    return NULL;
                *quoted = false;
                break;
            }
            if (*close + 1 == end || (*close)[1] != '"')
                break;
        }
        if (*quoted)
            at = *close + 1;
    }
    while (at < end && *at != ',' && *at != '\n')
        at++;
    return at;
}

/* The later of a newline in [at, end) and what was found before. */
static const char *later_newline(const char *at, const char *end, const char *before)
{
    const char *newline = at < end ? memrchr(at, '\n', (size_t)(end - at)) : NULL;
    return newline != NULL ? newline : before;
}

/* Rows that are whole. Only quotes are looked for: a newline that is not between them ends a row. */
static size_t cut_rows(const char *data, size_t size)
{
    const char *outside = data, *end = data + size, *newline = NULL, *quote, *close;
    bool quoted;
    while (outside < end && (quote = memchr(outside, '"', (size_t)(end - outside))) != NULL) {
        newline = later_newline(outside, quote, newline);
        outside = quote + 1;
        if (quote > data && quote[-1] != ',' && quote[-1] != '\n')
            continue;
        if (cell_end(quote, end, &quoted, &close) == NULL)
            return newline != NULL ? (size_t)(newline + 1 - data) : 0;
        if (quoted)
            outside = close + 1;
    }
    newline = later_newline(outside, end, newline);
    return newline != NULL ? (size_t)(newline + 1 - data) : 0;
}

typedef struct header {
    nl_string *keys; /* of each column */
    size_t count, capacity;
    size_t *fields; /* which of them are no standard fields, in order */
    size_t field_count;
    size_t order; /* the column "#order"; SIZE_MAX when there is none */
    nl_buffer text;
    bool is_good;
} header;

/* A cell of the row being read. */
typedef struct cell {
    nl_string text;
    bool there;
} cell;

typedef struct row_reader {
    importer base;
    const header *header;
    builder builder;
    cell *cells;
    size_t count, capacity;
    const char *bad; /* what is wrong with the row */
} row_reader;

static void unescape_quotes(builder *b, nl_string *text)
{
    char *bytes = memchr(text->data, '"', text->size) != NULL ? builder_bytes(b, text->size) : NULL;
    if (bytes == NULL)
        return;
    size_t size = 0;
    for (size_t i = 0; i < text->size; i++) {
        i += text->data[i] == '"';
        bytes[size++] = text->data[i];
    }
    *text = (nl_string){bytes, size};
}

static void add_cell(row_reader *r, nl_string text, bool there)
{
    if (r->count == r->capacity) {
        r->capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
        r->cells = or_die(reallocarray(r->cells, r->capacity, sizeof *r->cells));
    }
    r->cells[r->count++] = (cell){text, there};
}

/* Reads the cells of the row at at; returns where it ends: at its newline, or at end. */
static const char *read_cells(row_reader *r, const char *at, const char *end)
{
    r->count = 0;
    r->bad = NULL;
    for (;; at++) {
        bool quoted;
        const char *close, *stop = cell_end(at, end, &quoted, &close);
        nl_string text;
        if (stop == NULL || (!quoted && at < end && *at == '"')) {
            r->bad = "a cell's quotes do not end";
            quoted = false;
            for (stop = at; stop < end && *stop != '\n'; stop++)
                ;
        }
        if (quoted) {
            text = (nl_string){at + 1, (size_t)(close - at - 1)};
            const char *rest = close + 1;
            rest += rest < stop && *rest == '\r' && (stop == end || *stop == '\n');
            if (rest != stop)
                r->bad = "something follows the quotes that end a cell";
            unescape_quotes(&r->builder, &text);
        } else {
            text = (nl_string){at, (size_t)(stop - at)};
            if (text.size > 0 && text.data[text.size - 1] == '\r' && (stop == end || *stop == '\n'))
                text.size--;
        }
        add_cell(r, text, quoted || text.size > 0);
        at = stop;
        if (at == end || *at == '\n')
            return at;
    }
}

/* Fields, and the standard ones where they come first. */
static void sort_columns(header *h)
{
    unsigned seen = 0;
    h->fields = or_die(calloc(h->count + 1, sizeof *h->fields));
    h->order = SIZE_MAX;
    for (size_t i = 0; i < h->count; i++) {
        member m = member_of(h->keys[i]);
        if (h->keys[i].size == strlen(order_name) && memcmp(h->keys[i].data, order_name, h->keys[i].size) == 0)
            h->order = i;
        else if (m == MEMBER_NONE || (seen & 1u << m) != 0)
            h->fields[h->field_count++] = i;
        seen |= 1u << m;
    }
    h->is_good = (seen & 1u << MEMBER_TIME) != 0;
}

/* The first row. */
static size_t read_header(const char *data, size_t size, bool all, void **shared, sink *s)
{
    row_reader r = {0};
    static const char mark[] = "\xef\xbb\xbf";
    const char *at = data, *end = data + size;
    if (size >= 3 && memcmp(at, mark, 3) == 0)
        at += 3;
    builder_begin(&r.builder, size);
    const char *stop = read_cells(&r, at, end);
    header *h = NULL;
    if (all || (stop < end && r.bad == NULL) || size > QUOTED_LIMIT) {
        h = or_die(calloc(1, sizeof *h));
        h->keys = or_die(calloc(r.count, sizeof *h->keys));
        nl_buffer_reserve(&h->text, size + 1);
        for (; h->count < r.count; h->count++) {
            nl_string text = r.cells[h->count].text;
            h->keys[h->count] = (nl_string){h->text.data + h->text.size, text.size};
            nl_buffer_append(&h->text, text.data, text.size);
        }
        sort_columns(h);
        if (!h->is_good && size > 0)
            sink_malformed(s, 1, 0, "the first row names no column ts or DATE", data, (size_t)(stop - data));
        *shared = h;
    }
    builder_free(&r.builder);
    free(r.cells);
    return h == NULL ? 0 : stop < end ? (size_t)(stop + 1 - data) : size;
}

static void free_header(void *shared)
{
    header *h = shared;
    nl_buffer_free(&h->text);
    free(h->keys);
    free(h->fields);
    free(h);
}

static importer *open_reader(void *shared)
{
    row_reader *r = or_die(calloc(1, sizeof *r));
    r->base.kind = &csv_importer;
    r->header = shared;
    return &r->base;
}

static void close_reader(importer *base)
{
    row_reader *r = (row_reader *)base;
    builder_free(&r->builder);
    free(r->cells);
    free(r);
}

static void take_field(row_reader *r, size_t column, sink *s)
{
    if (column < r->count && r->cells[column].there)
        builder_add_text(&r->builder, r->header->keys[column], r->cells[column].text, s);
}

/* The fields in the order that the cell says. */
static bool take_in_order(row_reader *r, nl_string order, sink *s)
{
    const char *at = order.data, *end = at + order.size;
    while (at < end) {
        size_t number = 0;
        for (; at < end && *at >= '0' && *at <= '9' && number <= COLUMN_LIMIT; at++)
            number = 10 * number + (size_t)(*at - '0');
        if ((at < end && *at++ != ' ') || number == 0 || number > r->header->field_count)
            return false;
        take_field(r, r->header->fields[number - 1], s);
    }
    return true;
}

/* What is wrong with the row; NULL when it was taken. */
static const char *take_row(row_reader *r, sink *s)
{
    const header *h = r->header;
    if (r->bad != NULL)
        return r->bad;
    if (r->count > h->count)
        return "there are more cells than columns";
    for (size_t i = 0; i < r->count; i++) {
        member m = builder_member(&r->builder, h->keys[i]);
        if (m != MEMBER_NONE && r->cells[i].there && !builder_set(&r->builder, m, r->cells[i].text))
            return "the time can't be read";
    }
    if (h->order < r->count && r->cells[h->order].there) {
        if (!take_in_order(r, r->cells[h->order].text, s))
            return "#order names a column that is none";
    } else {
        for (size_t i = 0; i < h->field_count; i++)
            take_field(r, h->fields[i], s);
    }
    return builder_finish(&r->builder, false, s) ? NULL : "there is no time";
}

static void read_rows(importer *base, const char *data, size_t size, sink *s)
{
    row_reader *r = (row_reader *)base;
    uint64_t line = 1;
    if (r->header == NULL || !r->header->is_good)
        return;
    for (const char *at = data, *end = data + size; at < end && !s->stopped;) {
        builder_begin(&r->builder, size);
        const char *stop = read_cells(r, at, end);
        bool is_blank = r->count == 1 && !r->cells[0].there;
        const char *why = is_blank ? NULL : take_row(r, s);
        if (why != NULL)
            sink_malformed(s, line, (uint64_t)(at - data), why, at, (size_t)(stop - at));
        for (; at < stop; at++)
            line += *at == '\n';
        line++;
        at = stop < end ? stop + 1 : end;
    }
}

static bool detect(const char *data, size_t size)
{
    row_reader r = {0};
    builder_begin(&r.builder, size);
    const char *stop = read_cells(&r, data, data + size);
    bool found = false;
    for (size_t i = 0; i < r.count && r.bad == NULL && r.count > 1 && stop < data + size; i++)
        found = found || member_of(r.cells[i].text) == MEMBER_TIME;
    builder_free(&r.builder);
    free(r.cells);
    return found;
}

const importer_kind csv_importer = {
    .name = "csv",
    .what = "CSV (RFC 4180) whose first row names the columns, one of them ts or DATE",
    .detect = detect,
    .head = read_header,
    .unshare = free_header,
    .cut = cut_rows,
    .open = open_reader,
    .close = close_reader,
    .read = read_rows,
};
