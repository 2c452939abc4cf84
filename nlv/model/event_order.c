#include "config.h"

#include "model/event_order.h"

#include "clocks/messages.h"
#include "requests/assembler.h"

#include <string.h>

enum { ROWS = DRAWING_ORDERED_MAX, NO_ROW = -1, MEMORY_MAX = 256 << 20 };

/* Minimum share of requests in which an order must hold to be a rule, as in precedence.c. */
static const double rule_share = 0.99;

/* The order of a lifeline's rows, as counted in the requests of a sample. */
typedef struct order_learning {
    const drawing_lifeline *lifeline;
    guint rows;
    const event_names *names;
    GArray *row_of;              /* int32_t: the row of each name of `names`, or NO_ROW */
    uint32_t both[ROWS][ROWS];   /* number of requests with both rows */
    uint32_t local[ROWS][ROWS];  /* number of these requests in which both rows have the same host and program */
    uint32_t before[ROWS][ROWS]; /* number of these requests in which the first row precedes the second */
    uint32_t leads[ROWS][ROWS];  /* number of these requests in which edges lead from the first row to the second */
    uint64_t is_seen;            /* the rows that occur */
    uint64_t parents[ROWS];      /* rows that begin a span that other records name as parent */
    int begin_of[ROWS], end_of[ROWS]; /* see event_order_pairs */
} order_learning;

/* ---- the graphs ---- */

static int find_row(order_learning *o, const request_event *e)
{
    while (o->row_of->len <= e->name) {
        const char *text = event_names_text(o->names, o->row_of->len);
        int32_t row = (int32_t)o->rows - 1;
        while (row >= 0 && strcmp(o->lifeline->events[row], text) != 0)
            row--;
        g_array_append_val(o->row_of, row);
    }
    return g_array_index(o->row_of, int32_t, e->name);
}

/* Returns, for each event, the set of rows from which paths of edges lead to the event. */
static uint64_t *find_earlier_rows(order_learning *o, const request_graph *g)
{
    uint64_t *earlier = g_new0(uint64_t, g->event_count + 1);
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(request_edge));
    guint *next = g_new(guint, g->event_count + 1), *edge_after; /* the edges from each event, as linked lists */
    request_graph_find_edges(g, edges);
    edge_after = g_new(guint, edges->len + 1);
    for (size_t i = 0; i < g->event_count; i++)
        next[i] = G_MAXUINT;
    for (guint i = 0; i < edges->len; i++) {
        uint32_t from = g_array_index(edges, request_edge, i).from;
        edge_after[i] = next[from];
        next[from] = i;
    }
    for (size_t i = 0; i < g->event_count; i++) {
        int row = find_row(o, &g->events[i]);
        uint64_t rows = earlier[i] | (row >= 0 ? UINT64_C(1) << row : 0);
        for (guint edge = next[i]; edge != G_MAXUINT; edge = edge_after[edge]) {
            uint32_t to = g_array_index(edges, request_edge, edge).to;
            earlier[to] |= to > i ? rows : 0; /* ignore a cause that is later than its effect */
        }
    }
    g_array_free(edges, TRUE);
    g_free(next);
    g_free(edge_after);
    return earlier;
}

/* Counts the order of each pair of rows in a request. Considers only the first record of each row. */
static void count_rows(order_learning *o, const request_graph *g)
{
    uint64_t *earlier = find_earlier_rows(o, g), is_found = 0;
    uint32_t places[ROWS];
    for (size_t i = 0; i < g->event_count; i++) {
        int row = find_row(o, &g->events[i]);
        if (row < 0 || is_found >> row & 1)
            continue;
        for (guint other = 0; other < o->rows; other++) {
            if (!(is_found >> other & 1))
                continue;
            bool is_local = places[other] == g->events[i].place;
            o->both[row][other]++;
            o->both[other][row]++;
            o->local[row][other] += is_local;
            o->local[other][row] += is_local;
            o->before[other][row]++;
            o->leads[other][row] += earlier[i] >> other & 1;
        }
        places[row] = g->events[i].place;
        is_found |= UINT64_C(1) << row;
    }
    o->is_seen |= is_found;
    g_free(earlier);
}

/*
 * Sets o->parents: for each row, the rows that begin a span that the row's records name as parent. Ignores spans that a
 * single record describes.
 */
static void learn_parents(order_learning *o, const request_graph *g)
{
    for (size_t i = 0; i < g->span_count; i++) {
        const request_span *child = &g->spans[i],
                           *parent = child->parent != REQUEST_NONE ? &g->spans[child->parent] : NULL;
        if (parent == NULL || !child->names_parent || child->begin == REQUEST_NONE || parent->begin == REQUEST_NONE)
            continue;
        const request_event *begin = &g->events[child->begin], *cause = &g->events[parent->begin];
        int row = find_row(o, begin), parent_row = find_row(o, cause);
        if (row >= 0 && parent_row >= 0 && row != parent_row && begin->role != REQUEST_WHOLE &&
            cause->role != REQUEST_WHOLE)
            o->parents[row] |= UINT64_C(1) << parent_row;
    }
}

static void take_graph(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    (void)name, (void)by;
    if (g->overlaps || cut)
        return;
    count_rows(user, g);
    learn_parents(user, g);
}

static nl_string string_of(const trace *t, uint32_t number)
{
    const char *text = number != TRACE_NONE ? trace_string(t, number) : "";
    return (nl_string){text, strlen(text)};
}

/* Adds a record of the sample to the assembler. `fields` is an array of nl_field, which the function overwrites. */
static void add_record(assembler *a, const trace *t, const trace_record *record, GArray *fields)
{
    const trace_field *own = trace_fields(t, record);
    g_array_set_size(fields, 0);
    for (uint32_t i = 0; i < record->field_count; i++) {
        nl_field field = {
            .type = NL_TYPE_STRING, .name = string_of(t, own[i].name), .string = string_of(t, own[i].value)};
        g_array_append_val(fields, field);
    }
    nl_record full = {.time_ns = record->time_ns,
                      .host = string_of(t, record->host),
                      .prog = string_of(t, record->prog),
                      .event = string_of(t, record->event),
                      .fields = (nl_field *)(void *)fields->data,
                      .field_count = fields->len};
    assembler_add(a, &full);
}

static void learn_sample(order_learning *o, const trace *t, bool untraced, bool splits_unnamed)
{
    const assembler_options options = {.ids = (const char *const *)o->lifeline->ids,
                                       .events = (const char *const *)o->lifeline->events,
                                       .untraced = untraced,
                                       .splits_unnamed = splits_unnamed,
                                       .memory_max = MEMORY_MAX,
                                       .take = take_graph,
                                       .user = o};
    assembler *a = assembler_new(&options);
    GArray *fields = g_array_new(FALSE, FALSE, sizeof(nl_field));
    o->names = request_reader_names(assembler_reader(a));
    o->row_of = g_array_new(FALSE, FALSE, sizeof(int32_t));
    for (size_t i = 0; i < trace_count(t); i++)
        add_record(a, t, trace_get(t, i), fields);
    assembler_finish(a);
    assembler_free(a);
    g_array_free(fields, TRUE);
    g_array_free(o->row_of, TRUE);
}

/* ---- spans ---- */

void event_order_pairs(char *const *events, guint rows, int *begin_of, int *end_of)
{
    event_names *names = event_names_new();
    uint32_t *number = g_new(uint32_t, 2 * rows + 1), *span = number + rows;
    event_side *side = g_malloc((rows + 1) * sizeof *side);
    for (guint row = 0; row < rows; row++)
        number[row] = event_names_add(names, (nl_string){events[row], strlen(events[row])});
    for (guint row = 0; row < rows; row++) {
        begin_of[row] = end_of[row] = EVENT_ORDER_NONE;
        side[row] = event_names_side(names, number[row], &span[row]);
    }
    for (guint begin = 0; begin < rows; begin++)
        for (guint end = 0; end < rows; end++)
            if (side[begin] == EVENT_SIDE_BEGIN && side[end] == EVENT_SIDE_END && span[begin] == span[end] &&
                begin_of[end] == EVENT_ORDER_NONE && end_of[begin] == EVENT_ORDER_NONE) {
                begin_of[end] = (int)begin;
                end_of[begin] = (int)end;
            }
    g_free(number);
    g_free(side);
    event_names_free(names);
}

static bool is_before(const order_learning *o, guint first, guint second)
{
    return o->both[first][second] > 0 && o->before[first][second] >= rule_share * o->both[first][second];
}

static bool is_inside(const order_learning *o, guint row, guint begin, guint end)
{
    return is_before(o, begin, row) && is_before(o, row, end);
}

/* Returns whether two rows usually have the same host and program. */
static bool are_local(const order_learning *o, guint a, guint b)
{
    return 2 * o->local[a][b] >= o->both[a][b];
}

/*
 * Returns whether every span that contains or begins with row `first` also contains or ends with row `second`.
 * Considers spans of one program.
 */
static bool stays_inside(const order_learning *o, guint first, guint second)
{
    for (guint begin = 0; begin < o->rows; begin++) {
        int end = o->end_of[begin];
        if (end == EVENT_ORDER_NONE || !are_local(o, begin, first))
            continue;
        if ((first == begin || is_inside(o, first, begin, (guint)end)) && second != (guint)end &&
            !is_inside(o, second, begin, (guint)end))
            return false;
    }
    return true;
}

/* ---- the order ---- */

static bool comes_before(const order_learning *o, guint first, guint second)
{
    char *const *events = o->lifeline->events;
    if (!(o->is_seen >> first & o->is_seen >> second & 1))
        return first < second;
    if (are_local(o, first, second))
        return o->begin_of[second] == (int)first || (is_before(o, first, second) && stays_inside(o, first, second));
    if (messages_is_pair(events[first], events[second]) || messages_is_pair(events[second], events[first]))
        return messages_is_pair(events[first], events[second]);
    return (o->parents[second] >> first & 1) ||
           (o->both[first][second] > 0 && o->leads[first][second] >= rule_share * o->both[first][second]);
}

static void find_order(const order_learning *o, uint64_t after[ROWS])
{
    for (guint row = 0; row < o->rows; row++)
        for (guint other = 0; other < o->rows; other++)
            if (row != other && comes_before(o, other, row))
                after[row] |= UINT64_C(1) << other;
    for (guint middle = 0; middle < o->rows; middle++)
        for (guint row = 0; row < o->rows && (o->is_seen >> middle & 1); row++)
            if (after[row] >> middle & 1)
                after[row] |= after[middle];
    for (guint row = 0; row < o->rows;
         row++) /* no event precedes itself; if both orders occur, keep the order of the list */
        for (guint other = 0; other < o->rows; other++)
            if (row == other || ((after[row] >> other & 1) && (after[other] >> row & 1) && other > row))
                after[row] &= ~(UINT64_C(1) << other);
}

static bool is_list_order(const uint64_t *after, guint rows)
{
    for (guint row = 0; row < rows; row++)
        if (after[row] != (UINT64_C(1) << row) - 1)
            return false;
    return true;
}

/*
 * Returns the next row for a list in which the rows of each branch are adjacent. Returns `rows` if all rows are in the
 * list. All rows that precede the returned row are already in the list. Prefers a row that follows the last row of the
 * list.
 */
static guint next_row(const uint64_t *after, guint rows, uint64_t placed, guint last)
{
    guint found = rows;
    for (guint row = 0; row < rows; row++)
        if (!(placed >> row & 1) && (after[row] & ~placed) == 0 && (found == rows || (after[row] >> last & 1))) {
            found = row;
            if (placed != 0 && (after[row] >> last & 1))
                break;
        }
    return found;
}

static uint64_t move_rows(uint64_t set, const guint *place, guint rows)
{
    uint64_t moved = 0;
    for (guint row = 0; row < rows; row++)
        moved |= (set >> row & 1) << place[row];
    return moved;
}

/* Reorders the events so that the events of each branch are adjacent. */
static void arrange(drawing_lifeline *l, guint rows)
{
    guint order[ROWS], place[ROWS], last = 0;
    uint64_t placed = 0, after[ROWS], surely[ROWS];
    char *events[ROWS];
    for (guint i = 0; i < rows; i++) {
        last = next_row(l->after, rows, placed, last);
        if (last == rows)
            return;
        placed |= UINT64_C(1) << last;
        order[i] = last;
        place[last] = i;
    }
    for (guint i = 0; i < rows; i++) {
        events[i] = l->events[order[i]];
        after[i] = move_rows(l->after[order[i]], place, rows);
        surely[i] = move_rows(l->surely[order[i]], place, rows);
    }
    memcpy(l->events, events, rows * sizeof *events);
    memcpy(l->after, after, rows * sizeof *after);
    memcpy(l->surely, surely, rows * sizeof *surely);
}

static bool can_learn(const drawing_lifeline *l)
{
    return l->after == NULL && !l->again && g_strv_length(l->events) <= ROWS;
}

static void learn_lifeline(drawing_lifeline *l, const trace *t, bool untraced, bool splits_unnamed, bool arranges)
{
    order_learning *o = g_new0(order_learning, 1);
    o->lifeline = l;
    o->rows = g_strv_length(l->events);
    event_order_pairs(l->events, o->rows, o->begin_of, o->end_of);
    learn_sample(o, t, untraced, splits_unnamed);
    uint64_t after[ROWS] = {0}, surely = 0;
    find_order(o, after);
    for (guint row = 0; row < o->rows; row++)
        surely |= o->parents[row];
    if (!is_list_order(after, o->rows) || surely != 0)
        drawing_set_order(l, after, o->parents);
    if (l->after != NULL && arranges)
        arrange(l, o->rows);
    g_free(o);
}

bool event_order_can_learn(const drawing *d)
{
    for (guint i = 0; i < d->lifelines->len; i++)
        if (can_learn(g_ptr_array_index(d->lifelines, i)))
            return true;
    return false;
}

void event_order_learn(drawing *d, const trace *t, bool arranges)
{
    bool has_traced = false;
    for (guint i = 0; i < d->lifelines->len; i++)
        has_traced = has_traced || ((const drawing_lifeline *)g_ptr_array_index(d->lifelines, i))->traced;
    for (guint i = 0; i < d->lifelines->len; i++) {
        drawing_lifeline *l = g_ptr_array_index(d->lifelines, i);
        if (can_learn(l))
            learn_lifeline(l, t, has_traced && !l->traced, drawing_splits_unnamed(d), arranges);
    }
}
