#include "config.h"

#include "model/waterfall.h"

#include "model/request_lines.h"
#include "requests/printable.h"
#include "requests/request_reader.h"

#include <string.h>

#define ARROW "\342\206\222"

static void clear_row(gpointer data)
{
    waterfall_row *r = data;
    g_free(r->name);
    g_free(r->place);
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
    g_array_free(w->rows, TRUE);
    g_array_free(w->path, TRUE);
    g_array_free(w->records, TRUE);
    g_free(w);
}

/* ---- the order of the tree ---- */

/* A span or a wait of the graph. */
typedef struct tree_node {
    uint32_t span;   /* index of a span, or REQUEST_NONE for a wait */
    uint32_t step;   /* for a wait, the index of the step of the critical path */
    uint32_t parent; /* index of the parent span, or REQUEST_NONE */
    uint32_t depth;
    int64_t begin_ns;
} tree_node;

/* Returns the parent of a wait: the span that encloses both ends of the wait. This span is the parent of the span that
 * begins after the wait, or of the span that ended before the wait. */
static uint32_t parent_of_wait(const request_graph *g, const uint32_t *span_of, const request_step *step)
{
    const uint32_t after = step->to != REQUEST_NONE ? span_of[step->to] : REQUEST_NONE,
                   before = step->from != REQUEST_NONE ? span_of[step->from] : REQUEST_NONE;
    if (after != REQUEST_NONE && g->spans[after].begin == step->to)
        return g->spans[after].parent;
    if (before != REQUEST_NONE && g->spans[before].end == step->from)
        return g->spans[before].parent;
    return REQUEST_NONE;
}

/* For each event, returns the index of the span that the event begins or ends, or REQUEST_NONE. The caller frees the
 * array. */
static uint32_t *spans_of_events(const request_graph *g)
{
    uint32_t *span_of = g_new(uint32_t, g->event_count);
    for (size_t i = 0; i < g->event_count; i++)
        span_of[i] = REQUEST_NONE;
    for (uint32_t i = 0; i < g->span_count; i++) {
        if (g->spans[i].begin != REQUEST_NONE)
            span_of[g->spans[i].begin] = i;
        if (g->spans[i].end != REQUEST_NONE)
            span_of[g->spans[i].end] = i;
    }
    return span_of;
}

/* Returns the spans and the waits (tree_node). Node i is span i while i is below the number of spans. */
static GArray *find_nodes(const request_graph *g)
{
    GArray *nodes = g_array_new(FALSE, FALSE, sizeof(tree_node));
    uint32_t *span_of = spans_of_events(g);
    const int64_t wait_min_ns = (g->to_ns - g->from_ns) / WATERFALL_WAITS_MAX;
    for (uint32_t i = 0; i < g->span_count; i++) {
        const request_span *s = &g->spans[i];
        const uint32_t parent = s->parent < g->span_count ? s->parent : REQUEST_NONE;
        g_array_append_val(nodes, ((tree_node){i, 0, parent, s->depth, s->begin_ns}));
    }
    for (uint32_t i = 0; i < g->path_count; i++) {
        const request_step *step = &g->path[i];
        if (step->kind == REQUEST_SELF || step->to_ns - step->from_ns < wait_min_ns)
            continue;
        const uint32_t parent = parent_of_wait(g, span_of, step),
                       depth = parent != REQUEST_NONE ? g->spans[parent].depth + 1 : 0;
        g_array_append_val(nodes, ((tree_node){REQUEST_NONE, i, parent, depth, step->from_ns}));
    }
    g_free(span_of);
    return nodes;
}

static gint compare_begins(gconstpointer a, gconstpointer b, gpointer user)
{
    const tree_node *nodes = user, *x = &nodes[*(const uint32_t *)a], *y = &nodes[*(const uint32_t *)b];
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return x->depth < y->depth ? -1 : x->depth > y->depth;
}

/*
 * Returns the indices of the nodes in tree order: each span comes before its children, and the children of a span are
 * in the order of their starts. The caller frees the array.
 */
static uint32_t *order_of_tree(const GArray *all)
{
    const uint32_t count = all->len;
    const tree_node *nodes = (const tree_node *)(const void *)all->data;
    uint32_t *begins = g_new(uint32_t, count), *next = g_new(uint32_t, count), *first = g_new(uint32_t, count + 1),
             *order = g_new(uint32_t, count), *stack = g_new(uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        begins[i] = i;
        first[i] = REQUEST_NONE;
    }
    first[count] = REQUEST_NONE; /* the nodes without a parent */
    g_qsort_with_data(begins, (gint)count, sizeof *begins, compare_begins, (gpointer)nodes);
    for (size_t i = 0; i < count; i++) { /* make lists with the latest start first, as the stack requires */
        const uint32_t parent = nodes[begins[i]].parent, list = parent != REQUEST_NONE ? parent : count;
        next[begins[i]] = first[list];
        first[list] = begins[i];
    }
    size_t depth = 0, done = 0;
    for (uint32_t n = first[count]; n != REQUEST_NONE; n = next[n])
        stack[depth++] = n;
    while (depth > 0) {
        const uint32_t at = stack[--depth];
        order[done++] = at;
        for (uint32_t n = first[at]; n != REQUEST_NONE && depth < count; n = next[n])
            stack[depth++] = n;
    }
    g_free(begins);
    g_free(next);
    g_free(first);
    g_free(stack);
    for (; done < count; done++) /* append spans in cycles, which request_graph_build usually breaks */
        order[done] = (uint32_t)done;
    return order;
}

/* ---- copies ---- */

static char *place_of(const char *host, const char *program)
{
    char *both = g_strdup_printf("%s%s%s", host, *host != '\0' && *program != '\0' ? " " : "", program),
         *place = printable(both);
    g_free(both);
    return place;
}

/* Copies of the rows of a graph. */
typedef struct copying {
    waterfall *w;
    const request_graph *g;
    request_reader *reader;
    const tree_node *nodes;
    const unsigned *rows; /* by node: the index of its row, or G_MAXUINT */
    const model *m;
} copying;

static char *place_of_event(const copying *c, uint32_t event)
{
    if (event == REQUEST_NONE)
        return g_strdup("");
    const request_event *e = &c->g->events[event];
    return place_of(request_reader_host(c->reader, e->host), request_reader_program(c->reader, e->program));
}

static char *name_of_event(const copying *c, uint32_t event)
{
    if (event == REQUEST_NONE)
        return g_strdup("?");
    return printable(event_names_text(request_reader_names(c->reader), c->g->events[event].name));
}

static waterfall_row row_of_wait(const copying *c, const tree_node *n)
{
    const request_step *s = &c->g->path[n->step];
    char *from = name_of_event(c, s->from), *to = name_of_event(c, s->to), *from_place = place_of_event(c, s->from),
         *to_place = place_of_event(c, s->to);
    const bool is_message = s->from != REQUEST_NONE && s->to != REQUEST_NONE && strcmp(from_place, to_place) != 0;
    const waterfall_row row = {
        .is_wait = true,
        .name = g_strdup_printf("%s " ARROW " %s", from, to),
        .place = is_message ? g_strdup_printf("%s " ARROW " %s", from_place, to_place)
                            : g_strdup(s->to != REQUEST_NONE ? to_place : from_place),
        .begin_ns = s->from_ns - c->g->from_ns,
        .end_ns = s->to_ns - c->g->from_ns,
        .path_ns = s->to_ns - s->from_ns,
        .certainty = s->certainty,
        .inferred = s->inferred,
    };
    g_free(from);
    g_free(to);
    g_free(from_place);
    g_free(to_place);
    return row;
}

/* Returns the color of a host in the picture. Hosts without a color in the picture get the next numbers, so that each
 * host has the same color in all waterfalls. */
static unsigned color_of_host(const model *m, const char *name)
{
    const uint16_t host = names_find(model_store(m)->names.hosts, name);
    return host == NAMES_NONE              ? 0
           : model_has_host_color(m, host) ? model_host_color(m, host)
                                           : (unsigned)model_color_count(m) + host;
}

static waterfall_row row_of_span(const copying *c, const request_span *s)
{
    const char *host = request_reader_host(c->reader, s->host),
               *program = request_reader_program(c->reader, s->program);
    return (waterfall_row){
        .name = printable(event_names_text(request_reader_names(c->reader), s->name)),
        .place = place_of(host, program),
        .color = color_of_host(c->m, host),
        .begin_ns = s->begin_ns - c->g->from_ns,
        .end_ns = s->end_ns - c->g->from_ns,
        .path_ns = s->path_ns,
        .certainty = 1,
        .failed = s->failed,
        .incomplete = s->incomplete,
    };
}

static void copy_node(const copying *c, const tree_node *n)
{
    waterfall_row row = n->span != REQUEST_NONE ? row_of_span(c, &c->g->spans[n->span]) : row_of_wait(c, n);
    row.depth = n->depth;
    row.parent = n->parent != REQUEST_NONE ? c->rows[n->parent] : G_MAXUINT;
    row.median_ns = -1;
    g_array_append_val(c->w->rows, row);
}

static void copy_path(const copying *c, const GArray *nodes)
{
    uint32_t wait = (uint32_t)c->g->span_count; /* the next wait; waits are in the order of the path */
    for (uint32_t i = 0; i < c->g->path_count; i++) {
        const request_step *s = &c->g->path[i];
        waterfall_step step = {
            .row = G_MAXUINT, .from_ns = s->from_ns - c->g->from_ns, .to_ns = s->to_ns - c->g->from_ns};
        if (s->kind == REQUEST_SELF)
            step.row = c->rows[s->span];
        else if (wait < nodes->len && c->nodes[wait].step == i)
            step.row = c->rows[wait++];
        g_array_append_val(c->w->path, step);
    }
}

static void copy_graph(waterfall *w, const model *m, size_t lifeline, const request_graph *g, request_reader *reader)
{
    GArray *nodes = find_nodes(g);
    uint32_t *order = order_of_tree(nodes);
    const guint count = MIN(nodes->len, WATERFALL_ROWS_MAX);
    unsigned *rows = g_new(unsigned, MAX(nodes->len, 1));
    uint64_t *kinds = g_new(uint64_t, MAX(count, 1));
    copying c = {.w = w, .g = g, .reader = reader, .rows = rows, .m = m};
    c.nodes = (const tree_node *)(const void *)nodes->data;
    w->length_ns = g->to_ns - g->from_ns;
    w->left_out = nodes->len - count;
    for (guint i = 0; i < nodes->len; i++)
        rows[order[i]] = i < count ? i : G_MAXUINT;
    for (guint i = 0; i < count; i++) {
        const tree_node *n = &c.nodes[order[i]];
        copy_node(&c, n);
        kinds[i] = n->span != REQUEST_NONE ? request_lines_span_kind(&g->spans[n->span])
                                           : request_lines_edge_kind(g, &g->path[n->step]);
    }
    copy_path(&c, nodes);
    for (guint i = 0; i < count; i++) /* last, because request_lines_median makes the graph invalid */
        g_array_index(w->rows, waterfall_row, i).median_ns = request_lines_median(m, lifeline, kinds[i]);
    g_free(kinds);
    g_free(rows);
    g_free(order);
    g_array_free(nodes, TRUE);
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
    w->rows = g_array_new(FALSE, FALSE, sizeof(waterfall_row));
    w->path = g_array_new(FALSE, FALSE, sizeof(waterfall_step));
    w->records = g_array_new(FALSE, FALSE, sizeof(waterfall_record));
    g_array_set_clear_func(w->rows, clear_row);
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
    if (g != NULL)
        copy_graph(w, m, lifeline, g, reader);
    if (w->rows->len == 0)
        w->reason = "This request has only one record, which has no duration.";
    return w;
}
