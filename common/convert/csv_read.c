/*
 * Reads CSV; csv_write.c describes the format.
 *
 * A row ends at the first LF or CRLF outside quotes. A quote that does not begin a cell is an ordinary character. If a
 * quoted cell does not end within 1 MiB, its row is malformed and ends with its line.
 */
#include "config.h"

#include "convert/builder.h"
#include "convert/csv.h"
#include "convert/lines.h"
#include "record/field_name.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <string.h>

enum { QUOTED_LIMIT = 1 << 20 };

static const char order_name[] = CSV_ORDER;

/*
 * Returns the end of a cell, which is a comma, the end of the row, or `end`. Returns NULL if there is no closing quote
 * before `end`. Sets *quoted to whether the cell begins with a quote and has a closing quote within QUOTED_LIMIT bytes.
 * If so, sets *close to the closing quote. The cell is malformed if other bytes follow this quote.
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

/* Returns the last newline in [at, end), or `before` if the range has none. */
static const char *later_newline(const char *at, const char *end, const char *before)
{
    const char *newline = at < end ? memrchr(at, '\n', (size_t)(end - at)) : NULL;
    return newline != NULL ? newline : before;
}

/* Returns the size of the whole rows in bytes. */
static size_t csv_cut_rows(const char *data, size_t size)
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

typedef struct column {
    nl_string key; /* the text in the first row */
    nl_string name;
    bool is_replaced; /* the key is not a valid name */
} column;

typedef struct header {
    column *columns;
    size_t count;
    size_t *fields; /* indexes of the columns that are not standard fields */
    size_t field_count;
    size_t *members; /* indexes of the columns with names of standard fields */
    size_t member_count;
    size_t order;   /* index of the column "#order"; SIZE_MAX: no such column */
    nl_buffer text; /* bytes of the names */
    bool has_time;
} header;

typedef struct cell {
    nl_string text;
    bool present;
} cell;

typedef struct row_reader {
    importer base;
    const header *header;
    builder builder;
    cell *cells;
    size_t count, capacity;
    bool malformed; /* the row is malformed; the thread's error has the reason */
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

static void add_cell(row_reader *r, nl_string text, bool present)
{
    NL_ARRAY_GROW(r->cells, r->count, r->capacity);
    r->cells[r->count++] = (cell){text, present};
}

/* Reads the row at `at` into r->cells. Returns the end of the row, which is its newline or `end`. */
static const char *read_cells(row_reader *r, const char *at, const char *end)
{
    r->count = 0;
    r->malformed = false;
    for (;; at++) {
        bool quoted;
        const char *close, *stop = cell_end(at, end, &quoted, &close);
        nl_string text;
        if (stop == NULL || (!quoted && at < end && *at == '"')) {
            r->malformed = true;
            nl_error_set(NL_ERROR_INVALID, "a quoted cell has no closing quote");
            quoted = false;
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the loop does not run if at is NULL */
            for (stop = at; stop < end && *stop != '\n'; stop++)
                ;
        }
        if (quoted) {
            text = (nl_string){at + 1, (size_t)(close - at - 1)};
            const char *rest = close + 1;
            rest += rest < stop && *rest == '\r' && (stop == end || *stop == '\n');
            if (rest != stop) {
                r->malformed = true;
                nl_error_set(NL_ERROR_INVALID, "text follows the closing quote of a cell");
            }
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

/* Returns whether a column that is not a standard field may contain the times of records. */
static bool is_time_column(nl_string key, const char *time_field)
{
    if (time_field != NULL)
        return nl_string_is(key, time_field);
    return nl_string_is(key, "time") || nl_string_is(key, "timestamp") || nl_string_is(key, "@timestamp");
}

/* Divides the columns into the first column of each standard field, and all other columns. */
static void sort_columns(header *h, const char *time_field)
{
    unsigned seen = 0;
    h->fields = nl_memory_check(calloc(h->count + 1, sizeof *h->fields));
    h->members = nl_memory_check(calloc(h->count + 1, sizeof *h->members));
    h->order = SIZE_MAX;
    for (size_t i = 0; i < h->count; i++) {
        nl_string key = h->columns[i].key;
        member m = member_of(key);
        if (m != MEMBER_NONE)
            h->members[h->member_count++] = i;
        if (nl_string_is(key, order_name))
            h->order = i;
        else if (m == MEMBER_NONE || (seen & 1u << m) != 0)
            h->fields[h->field_count++] = i;
        seen |= 1u << m;
    }
    h->has_time = (seen & 1u << MEMBER_TIME) != 0;
    for (size_t i = 0; i < h->field_count && !h->has_time; i++)
        h->has_time = is_time_column(h->columns[h->fields[i]].key, time_field);
}

static nl_string copy_text(header *h, nl_string text)
{
    char *copy = h->text.data + h->text.size;
    nl_buffer_append(&h->text, text.data, text.size);
    return (nl_string){copy, text.size};
}

static header *make_header(const cell *cells, size_t count, const char *time_field)
{
    static const nl_string none = {"_", 1};
    header *h = nl_memory_check(calloc(1, sizeof *h));
    size_t needed = 0;
    h->columns = nl_memory_check(calloc(count + 1, sizeof *h->columns));
    for (size_t i = 0; i < count; i++)
        needed += 2 * cells[i].text.size + none.size;
    nl_buffer_reserve(&h->text, needed); /* the names point into this buffer */
    for (; h->count < count; h->count++) {
        column *c = &h->columns[h->count];
        bool repeated;
        c->key = copy_text(h, cells[h->count].text);
        nl_string name = key_name(c->key, &repeated);
        c->is_replaced = name.size == 0;
        c->name = copy_text(h, c->is_replaced ? none : name);
        c->is_replaced = nl_name_make_valid((char *)c->name.data, c->name.size) || c->is_replaced;
    }
    sort_columns(h, time_field);
    return h;
}

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
    if (all || (stop < end && !r.malformed) || size > QUOTED_LIMIT) {
        h = make_header(r.cells, r.count, s->about != NULL ? s->about->time_field : NULL);
        if (!h->has_time && size > 0)
            sink_malformed(s, 1, 0,
                           "the first row has no ts, DATE, time, timestamp or @timestamp column; name the time column "
                           "with --time-field",
                           data, (size_t)(stop - data));
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
    free(h->columns);
    free(h->members);
    free(h->fields);
    free(h);
}

static void csv_read_open_reader(importer *base)
{
    row_reader *r = (row_reader *)base;
    r->header = base->shared;
}

static void csv_read_close_reader(importer *base)
{
    row_reader *r = (row_reader *)base;
    builder_free(&r->builder);
    free(r->cells);
}

static void csv_add_field(row_reader *r, size_t column, sink *s)
{
    if (column >= r->count || !r->cells[column].present)
        return;
    nl_field *field = builder_add_good_name(&r->builder, r->header->columns[column].name);
    field->type = NL_TYPE_STRING;
    field->string = r->cells[column].text;
    if (r->header->columns[column].is_replaced)
        sink_lose(s, LOSS_NAMES);
}

/*
 * Adds the fields in the order that the "#order" cell states. Returns false if the cell is malformed.
 */
static bool csv_add_in_order(row_reader *r, nl_string order, sink *s)
{
    const char *at = order.data, *end = at + order.size;
    while (at < end) {
        size_t number = 0;
        for (; at < end && *at >= '0' && *at <= '9' && number <= CSV_COLUMN_LIMIT; at++)
            number = 10 * number + (size_t)(*at - '0');
        if ((at < end && *at++ != ' ') || number == 0 || number > r->header->field_count)
            return false;
        csv_add_field(r, r->header->fields[number - 1], s);
    }
    return true;
}

/* Builds a record from the cells. Returns false and sets the error if the row is malformed. */
static bool csv_make_record(row_reader *r, sink *s)
{
    const header *h = r->header;
    if (r->malformed)
        return false;
    if (r->count > h->count)
        return nl_error_false(NL_ERROR_INVALID, "more cells than columns");
    for (size_t i = 0; i < h->member_count; i++) {
        size_t at = h->members[i];
        member m = at < r->count && r->cells[at].present ? member_of(h->columns[at].key) : MEMBER_NONE;
        m = builder_member(&r->builder, m);
        if (m != MEMBER_NONE && !builder_set(&r->builder, m, r->cells[at].text))
            return nl_error_false(NL_ERROR_INVALID, "invalid time");
    }
    if (h->order < r->count && r->cells[h->order].present) {
        if (!csv_add_in_order(r, r->cells[h->order].text, s))
            return nl_error_false(NL_ERROR_INVALID, "#order names a column that does not exist");
    } else {
        for (size_t i = 0; i < h->field_count; i++)
            csv_add_field(r, h->fields[i], s);
    }
    return builder_finish(&r->builder, false, s);
}

static void read_rows(importer *base, const char *data, size_t size, sink *s)
{
    row_reader *r = (row_reader *)base;
    uint64_t line = 1;
    if (r->header == NULL || !r->header->has_time)
        return;
    for (const char *at = data, *end = data + size; at < end && !s->stopped;) {
        builder_begin(&r->builder, size);
        const char *stop = read_cells(r, at, end);
        bool is_blank = r->count == 1 && !r->cells[0].present;
        if (!is_blank && !csv_make_record(r, s))
            sink_malformed(s, line, (uint64_t)(at - data), nl_error_message(), at, (size_t)(stop - at));
        for (; at < stop; at++)
            line += *at == '\n';
        line++;
        at = stop < end ? stop + 1 : end;
    }
}

static bool csv_read_detect(const char *data, size_t size)
{
    row_reader r = {0};
    builder_begin(&r.builder, size);
    const char *stop = read_cells(&r, data, data + size);
    bool found = false;
    for (size_t i = 0; i < r.count && !r.malformed && r.count > 1 && stop < data + size; i++)
        found = found || member_of(r.cells[i].text) == MEMBER_TIME || is_time_column(r.cells[i].text, NULL);
    builder_free(&r.builder);
    free(r.cells);
    return found;
}

const importer_kind csv_importer = {
    .name = "csv",
    .what = "CSV (RFC 4180) whose first row names the columns; one column must have the time",
    .detect = csv_read_detect,
    .head = read_header,
    .unshare = free_header,
    .cut = csv_cut_rows,
    .size = sizeof(row_reader),
    .open = csv_read_open_reader,
    .close = csv_read_close_reader,
    .read = read_rows,
};
