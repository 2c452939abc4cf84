#include "config.h"

#include "model/waterfall.h"

#include "model/request_lines.h"
#include "requests/printable.h"
#include "requests/request_reader.h"

#include <string.h>

static void clear_span(gpointer data)
{
    waterfall_span *s = data;
    g_free(s->name);
    g_free(s->place);
}

static void clear_record(gpointer data)
{
    waterfall_record *r = data;
    g_free(r->event);
    g_free(r->place);
    g_free(r->fields);
}

void waterfall_free(waterfall *w)
{
    if (w == NULL)
        return;
    g_array_free(w->spans, TRUE);
    g_array_free(w->path, TRUE);
    g_array_free(w->records, TRUE);
    g_free(w);
}

/* ---- the order of the tree ---- */

static gint compare_begins(gconstpointer a, gconstpointer b, gpointer user)
{
    const request_graph *g = user;
    const request_span *x = &g->spans[*(const uint32_t *)a], *y = &g->spans[*(const uint32_t *)b];
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return x->depth < y->depth ? -1 : x->depth > y->depth;
}

/*
 * Returns the spans in tree order: each span comes before its children, and the children of a span are in the order of
 * their starts.
 */
static uint32_t *order_of_tree(const request_graph *g)
{
    const size_t count = g->span_count;
    uint32_t *begins = g_new(uint32_t, count), *next = g_new(uint32_t, count), *first = g_new(uint32_t, count + 1),
             *order = g_new(uint32_t, count), *stack = g_new(uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        begins[i] = i;
        first[i] = REQUEST_NONE;
    }
    first[count] = REQUEST_NONE; /* the spans without a parent */
    g_qsort_with_data(begins, (gint)count, sizeof *begins, compare_begins, (gpointer)g);
    for (size_t i = 0; i < count; i++) { /* make lists with the latest start first, as the stack requires */
        const uint32_t parent = g->spans[begins[i]].parent, list = parent < count ? parent : (uint32_t)count;
        next[begins[i]] = first[list];
        first[list] = begins[i];
    }
    size_t depth = 0, done = 0;
    for (uint32_t s = first[count]; s != REQUEST_NONE; s = next[s])
        stack[depth++] = s;
    while (depth > 0) {
        const uint32_t at = stack[--depth];
        order[done++] = at;
        for (uint32_t s = first[at]; s != REQUEST_NONE && depth < count; s = next[s])
            stack[depth++] = s;
    }
    g_free(begins);
    g_free(next);
    g_free(first);
    g_free(stack);
    for (; done < count; done++) /* request_graph_build breaks cycles, so usually no span is left */
        order[done] = (uint32_t)done;
    return order;
}

/* ---- copies ---- */

static unsigned number_of_host(GHashTable *hosts, uint32_t host)
{
    gpointer number = NULL;
    if (!g_hash_table_lookup_extended(hosts, GUINT_TO_POINTER(host), NULL, &number)) {
        number = GUINT_TO_POINTER(g_hash_table_size(hosts));
        g_hash_table_insert(hosts, GUINT_TO_POINTER(host), number);
    }
    return GPOINTER_TO_UINT(number);
}

static char *place_of(const char *host, const char *program)
{
    char *both = g_strdup_printf("%s%s%s", host, *host != '\0' && *program != '\0' ? " " : "", program),
         *place = printable(both);
    g_free(both);
    return place;
}

static void copy_spans(waterfall *w, const request_graph *g, request_reader *reader, const uint32_t *order,
                       unsigned *indices)
{
    GHashTable *hosts = g_hash_table_new(NULL, NULL);
    for (size_t i = 0; i < g->span_count; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript): order has an element for each span */
        indices[order[i]] = i < WATERFALL_SPANS_MAX ? (unsigned)i : G_MAXUINT;
    for (size_t i = 0; i < MIN(g->span_count, WATERFALL_SPANS_MAX); i++) {
        const request_span *s = &g->spans[order[i]];
        const char *host = request_reader_host(reader, s->host), *program = request_reader_program(reader, s->program);
        waterfall_span span = {
            .name = printable(event_names_text(request_reader_names(reader), s->name)),
            .place = place_of(host, program),
            .host = number_of_host(hosts, s->host),
            .depth = s->depth,
            .parent = s->parent < g->span_count ? indices[s->parent] : G_MAXUINT,
            .begin_ns = s->begin_ns - g->from_ns,
            .end_ns = s->end_ns - g->from_ns,
            .path_ns = s->path_ns,
            .median_ns = -1,
            .failed = s->failed,
            .incomplete = s->incomplete,
        };
        g_array_append_val(w->spans, span);
    }
    g_hash_table_destroy(hosts);
    w->left_out = (unsigned)g->span_count - w->spans->len;
}

static void copy_path(waterfall *w, const request_graph *g, const unsigned *indices)
{
    for (size_t i = 0; i < g->path_count; i++) {
        const request_step *s = &g->path[i];
        waterfall_step step = {.span = s->kind == REQUEST_SELF ? indices[s->span] : G_MAXUINT,
                               .from_ns = s->from_ns - g->from_ns,
                               .to_ns = s->to_ns - g->from_ns};
        g_array_append_val(w->path, step);
    }
}

typedef struct field_texts {
    GString *text;
    char **ids; /* names of the ID fields, which the text omits */
} field_texts;

static void add_field_texts(void *user, const nl_record *record)
{
    const field_texts *f = user;
    for (size_t i = 0; i < record->field_count; i++) {
        char scratch[NL_FIELD_TEXT_SIZE];
        const nl_string name = record->fields[i].name, value = nl_field_text(&record->fields[i], scratch);
        bool is_id = false;
        for (char **id = f->ids; *id != NULL && !is_id; id++)
            is_id = strlen(*id) == name.size && memcmp(*id, name.data, name.size) == 0;
        if (is_id)
            continue;
        g_string_append_printf(f->text, "%s%.*s=", f->text->len > 0 ? "  " : "", (int)name.size, name.data);
        g_string_append_len(f->text, value.data, (gssize)value.size);
    }
}

static void copy_records(waterfall *w, const model *m, size_t lifeline, const GArray *steps)
{
    const store *s = model_store(m);
    w->more = steps->len > WATERFALL_RECORDS_MAX ? steps->len - WATERFALL_RECORDS_MAX : 0;
    for (guint i = 0; i < steps->len - w->more; i++) {
        const uint32_t record = g_array_index(steps, uint32_t, i);
        field_texts texts = {g_string_new(NULL), model_lifeline(m, lifeline)->ids};
        model_record(m, record, add_field_texts, &texts);
        waterfall_record r = {
            .time_ns = store_time(s, record) - store_time(s, g_array_index(steps, uint32_t, 0)),
            .event = printable(names_text(s->names.events, store_event(s, record))),
            .place = place_of(names_text(s->names.hosts, store_host(s, record)),
                              names_text(s->names.progs, store_prog(s, record))),
            .fields = printable(texts.text->str),
        };
        g_array_append_val(w->records, r);
        g_string_free(texts.text, TRUE);
    }
}

waterfall *waterfall_read(const model *m, size_t lifeline, uint32_t record)
{
    waterfall *w = g_new0(waterfall, 1);
    w->spans = g_array_new(FALSE, FALSE, sizeof(waterfall_span));
    w->path = g_array_new(FALSE, FALSE, sizeof(waterfall_step));
    w->records = g_array_new(FALSE, FALSE, sizeof(waterfall_record));
    g_array_set_clear_func(w->spans, clear_span);
    g_array_set_clear_func(w->records, clear_record);
    if (record == STORE_NONE) {
        w->reason = "A filter hides the records of this request, or they are no longer in memory.";
        return w;
    }
    GArray *steps = request_lines_steps(m, lifeline, record);
    if (steps == NULL) {
        w->reason = "This request has too many records; nlstat --slowest prints it.";
        return w;
    }
    copy_records(w, m, lifeline, steps);
    request_reader *reader;
    const request_graph *g = request_lines_graph(m, lifeline, steps, &reader);
    g_array_free(steps, TRUE);
    if (g == NULL || g->span_count == 0) {
        w->reason = "No record of this request begins or ends a span.";
        return w;
    }
    uint32_t *order = order_of_tree(g);
    unsigned *indices = g_new(unsigned, g->span_count);
    uint64_t *kinds = g_new(uint64_t, MIN(g->span_count, WATERFALL_SPANS_MAX));
    w->length_ns = g->to_ns - g->from_ns;
    copy_spans(w, g, reader, order, indices);
    copy_path(w, g, indices);
    for (guint i = 0; i < w->spans->len; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript): order has an element for each span */
        kinds[i] = request_lines_span_kind(&g->spans[order[i]]);
    for (guint i = 0; i < w->spans->len; i++) /* request_lines_median makes the graph invalid */
        g_array_index(w->spans, waterfall_span, i).median_ns = request_lines_median(m, lifeline, kinds[i]);
    g_free(kinds);
    g_free(indices);
    g_free(order);
    return w;
}
