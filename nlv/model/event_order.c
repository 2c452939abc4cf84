#include "config.h"

#include "model/event_order.h"

#include "clocks/messages.h"
#include "requests/event_names.h"
#include "requests/precedence.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = DRAWING_ORDERED_MAX, CHOICES = 4, IDS = 8 };

/* An order that holds in at least this share of requests is a rule, as in precedence.c. */
static const double rule_share = 0.99;

/* The usual names of the span ID field. */
static const char *const span_fields[] = {"SPAN.ID", "span_id", "spanId", "span.id", NULL};
static const char *const parent_fields[] = {"PARENT.ID",    "PARENT.SPAN.ID", "parent_id", "parentId",
                                            "parentSpanId", "parent_span_id", "parent.id", NULL};

/* A record of the sample that is a step of the lifeline. */
typedef struct sampled_step {
    uint64_t key; /* key of the step's request */
    uint32_t record;
    uint32_t row;
} sampled_step;

typedef struct order_learning {
    const trace *trace;
    const drawing_lifeline *lifeline;
    guint rows;
    uint32_t ids[IDS][CHOICES], spans[CHOICES * 2],
        parents[CHOICES * 2]; /* numbers of strings, terminated by TRACE_NONE */
    precedence *programs;
    request_event *events; /* the events of one request */
    size_t capacity;
    uint32_t both[ROWS][ROWS],
        before[ROWS]
              [ROWS]; /* number of requests with both rows, and number in which the first row precedes the second */
    uint32_t local[ROWS][ROWS]; /* number of requests in which both rows have the same host and program */
    uint32_t program[ROWS];     /* numbers of strings; TRACE_NONE: the row did not occur */
    bool is_seen[ROWS];
    uint64_t parent_rows[ROWS]; /* the rows that records name as parents */
    int begin_of[ROWS];         /* the row that begins the span that this row ends */
    int end_of[ROWS];
} order_learning;

/* ---- the sample ---- */

static void find_strings(const trace *t, const char *const *names, uint32_t *strings)
{
    guint count = 0;
    for (; *names != NULL; names++) {
        strings[count] = trace_find(t, *names);
        count += strings[count] != TRACE_NONE;
    }
    strings[count] = TRACE_NONE;
}

static uint32_t find_value(const trace *t, const trace_record *record, const uint32_t *names)
{
    uint32_t value = TRACE_NONE;
    for (; *names != TRACE_NONE && value == TRACE_NONE; names++)
        value = trace_value(t, record, *names);
    return value;
}

static void find_ids(order_learning *o)
{
    for (guint i = 0; i < IDS && o->lifeline->ids[i] != NULL; i++) {
        char **choices = g_strsplit(o->lifeline->ids[i], "|", CHOICES - 1);
        find_strings(o->trace, (const char *const *)choices, o->ids[i]);
        g_strfreev(choices);
    }
}

/* Sets the key of a record's request. Returns false if the record lacks an ID. */
static bool find_key(const order_learning *o, const trace_record *record, uint64_t *key)
{
    *key = 0;
    for (guint i = 0; i < IDS && o->lifeline->ids[i] != NULL; i++) {
        uint32_t value = find_value(o->trace, record, o->ids[i]);
        if (value == TRACE_NONE)
            return false;
        *key = (*key ^ value) * UINT64_C(0x9e3779b97f4a7c15);
        *key ^= *key >> 29;
    }
    return true;
}

static int by_request(const void *a, const void *b)
{
    const sampled_step *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->record > y->record) - (x->record < y->record);
}

/* Returns the steps of the lifeline, grouped by request and in order of time. */
static GArray *sample_steps(const order_learning *o)
{
    GArray *steps = g_array_new(FALSE, FALSE, sizeof(sampled_step));
    GHashTable *rows = g_hash_table_new(NULL, NULL);
    for (guint row = 0; row < o->rows; row++) {
        uint32_t event = trace_find(o->trace, o->lifeline->events[row]);
        if (event != TRACE_NONE)
            g_hash_table_insert(rows, GUINT_TO_POINTER(event), GUINT_TO_POINTER(row + 1));
    }
    for (size_t i = 0; i < trace_count(o->trace); i++) {
        const trace_record *record = trace_get(o->trace, i);
        guint row = GPOINTER_TO_UINT(g_hash_table_lookup(rows, GUINT_TO_POINTER(record->event)));
        sampled_step step = {.record = (uint32_t)i, .row = row - 1};
        if (row > 0 && record->event != TRACE_NONE && find_key(o, record, &step.key))
            g_array_append_val(steps, step);
    }
    g_hash_table_destroy(rows);
    qsort(steps->data, steps->len, sizeof(sampled_step), by_request);
    return steps;
}

/* Returns a number that identifies a host and program. */
static uint32_t place_of(const trace_record *record)
{
    return record->host * UINT32_C(2654435761) + record->prog;
}

/* For each pair of rows, counts how often each row comes first. Considers only the first record of each row. */
static void count_rows(order_learning *o, const sampled_step *steps, size_t count)
{
    uint32_t seen[ROWS], places[ROWS];
    size_t kinds = 0;
    uint64_t is_seen = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t row = steps[i].row;
        if (is_seen >> row & 1)
            continue;
        is_seen |= UINT64_C(1) << row;
        if (!o->is_seen[row]) {
            o->is_seen[row] = true;
            o->program[row] = trace_get(o->trace, steps[i].record)->prog;
        }
        uint32_t place = place_of(trace_get(o->trace, steps[i].record));
        for (size_t k = 0; k < kinds; k++) {
            o->both[seen[k]][row]++;
            o->both[row][seen[k]]++;
            o->before[seen[k]][row]++;
            o->local[seen[k]][row] += places[k] == place;
            o->local[row][seen[k]] += places[k] == place;
        }
        places[kinds] = place;
        seen[kinds++] = row;
    }
}

static void learn_programs(order_learning *o, const sampled_step *steps, size_t count)
{
    if (count > o->capacity) {
        o->capacity = 2 * count;
        o->events = g_renew(request_event, o->events, o->capacity);
    }
    for (size_t i = 0; i < count; i++) {
        const trace_record *record = trace_get(o->trace, steps[i].record);
        o->events[i] = (request_event){.time_ns = record->time_ns,
                                       .name = steps[i].row,
                                       .program = record->prog,
                                       .place = place_of(record),
                                       .order = (uint32_t)i};
    }
    precedence_learn(o->programs, o->events, count);
}

/* Finds the row that began the parent of each span that begins with one of the steps. */
static void learn_parents(order_learning *o, const sampled_step *steps, size_t count)
{
    if (o->spans[0] == TRACE_NONE || o->parents[0] == TRACE_NONE)
        return;
    GHashTable *begins = g_hash_table_new(NULL, NULL); /* maps a span to its row + 1 */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < count; i++) {
            const trace_record *record = trace_get(o->trace, steps[i].record);
            uint32_t span = find_value(o->trace, record, o->spans), parent = find_value(o->trace, record, o->parents);
            if (pass == 0 && span != TRACE_NONE && !g_hash_table_contains(begins, GUINT_TO_POINTER(span)))
                g_hash_table_insert(begins, GUINT_TO_POINTER(span), GUINT_TO_POINTER(steps[i].row + 1));
            guint row = pass == 1 && parent != TRACE_NONE && span != parent
                            ? GPOINTER_TO_UINT(g_hash_table_lookup(begins, GUINT_TO_POINTER(parent)))
                            : 0;
            if (row > 0 && row - 1 != steps[i].row &&
                GPOINTER_TO_UINT(g_hash_table_lookup(begins, GUINT_TO_POINTER(span))) == steps[i].row + 1)
                o->parent_rows[steps[i].row] |= UINT64_C(1) << (row - 1);
        }
    g_hash_table_destroy(begins);
}

static void learn_sample(order_learning *o)
{
    GArray *steps = sample_steps(o);
    guint from = 0;
    for (guint i = 1; i <= steps->len; i++) {
        const sampled_step *first = &g_array_index(steps, sampled_step, from);
        if (i < steps->len && g_array_index(steps, sampled_step, i).key == first->key)
            continue;
        count_rows(o, first, i - from);
        learn_programs(o, first, i - from);
        learn_parents(o, first, i - from);
        from = i;
    }
    g_array_free(steps, TRUE);
    precedence_settle(o->programs);
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
    return o->program[a] == o->program[b] && 2 * o->local[a][b] >= o->both[a][b];
}

/*
 * Returns whether every span that contains row `first`, or begins with it, also contains row `second` or ends with it.
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

/*
 * Returns whether a program's spans name their parents. If so, the parents determine the order relative to other
 * programs' spans.
 */
static bool has_parents(const order_learning *o, uint32_t program)
{
    for (guint row = 0; row < o->rows; row++)
        if (o->program[row] == program && o->parent_rows[row] != 0)
            return true;
    return false;
}

/*
 * Returns whether explicit parents show that a row of one program comes before a row of another program. A child begins
 * after its parent, and ends before the parent's later events.
 */
static bool follows_parents(const order_learning *o, guint first, guint second)
{
    if (o->parent_rows[second] >> first & 1)
        return true;
    int begin = o->begin_of[first];
    for (guint parent = 0; begin != EVENT_ORDER_NONE && parent < o->rows; parent++)
        if ((o->parent_rows[begin] >> parent & 1) && o->program[parent] == o->program[second] &&
            is_before(o, first, second) && (int)second != o->begin_of[first] &&
            (o->end_of[parent] == EVENT_ORDER_NONE || o->end_of[parent] == (int)second ||
             is_inside(o, second, parent, (guint)o->end_of[parent])))
            return true;
    return false;
}

static bool comes_before(const order_learning *o, guint first, guint second)
{
    if (!o->is_seen[first] || !o->is_seen[second])
        return first < second;
    bool is_local = are_local(o, first, second);
    char *const *events = o->lifeline->events;
    if (!is_local &&
        (messages_is_pair(events[first], events[second]) || messages_is_pair(events[second], events[first])))
        return messages_is_pair(events[first], events[second]);
    if (is_local)
        return o->begin_of[second] == (int)first || (is_before(o, first, second) && stays_inside(o, first, second));
    if (has_parents(o, o->program[first]) || has_parents(o, o->program[second]))
        return follows_parents(o, first, second);
    request_event cause = {.name = first, .program = o->program[first]},
                  effect = {.name = second, .program = o->program[second]};
    return precedence_holds(o->programs, &cause, &effect) > 0;
}

static void find_order(const order_learning *o, uint64_t after[ROWS])
{
    for (guint row = 0; row < o->rows; row++)
        for (guint other = 0; other < o->rows; other++)
            if (row != other && comes_before(o, other, row))
                after[row] |= UINT64_C(1) << other;
    for (guint middle = 0; middle < o->rows; middle++)
        for (guint row = 0; row < o->rows && o->is_seen[middle]; row++)
            if (after[row] >> middle & 1)
                after[row] |= after[middle];
    for (guint row = 0; row < o->rows; row++) /* no event comes before itself */
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
 * Returns the next row for a list that is ordered by branches. The list must already contain all rows that come before
 * the returned row. Prefers a row that follows the last row of the list.
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

static void learn_lifeline(drawing_lifeline *l, const trace *t, bool arranges)
{
    order_learning *o = g_new0(order_learning, 1);
    o->trace = t;
    o->lifeline = l;
    o->rows = g_strv_length(l->events);
    o->programs = precedence_new(NULL);
    find_ids(o);
    find_strings(t, span_fields, o->spans);
    find_strings(t, parent_fields, o->parents);
    learn_sample(o);
    event_order_pairs(l->events, o->rows, o->begin_of, o->end_of);
    uint64_t after[ROWS] = {0}, surely = 0;
    find_order(o, after);
    for (guint row = 0; row < o->rows; row++)
        surely |= o->parent_rows[row];
    if (!is_list_order(after, o->rows) || surely != 0)
        drawing_set_order(l, after, o->parent_rows);
    if (l->after != NULL && arranges)
        arrange(l, o->rows);
    precedence_free(o->programs);
    g_free(o->events);
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
    for (guint i = 0; i < d->lifelines->len; i++)
        if (can_learn(g_ptr_array_index(d->lifelines, i)))
            learn_lifeline(g_ptr_array_index(d->lifelines, i), t, arranges);
}
