#include "config.h"

#include "model/edges.h"

static unsigned edges_row(const store *s, uint32_t record, unsigned layer)
{
    return spec_step_of(s->spec, store_event(s, record), layer).row;
}

static const spec_order *edges_order(const store *s, uint32_t record, unsigned layer)
{
    return s->spec->lifelines[spec_step_of(s->spec, store_event(s, record), layer).lifeline].order;
}

static bool is_same_place(const store *s, uint32_t a, uint32_t b)
{
    return store_host(s, a) == store_host(s, b) && store_prog(s, a) == store_prog(s, b);
}

/* An earlier record of the same request, at which a line may begin. */
typedef struct candidate {
    uint32_t record;
    unsigned row;
    bool is_same; /* the candidate has the host and program of the record */
} candidate;

typedef struct edge_search {
    const store *s;
    const spec_order *order;
    uint32_t record;
    unsigned layer, row;
    candidate all[EDGES_MAX];
    size_t count;
    uint64_t below; /* bit mask: the rows that precede the row of a candidate in the order */
    uint64_t same;  /* bit mask: the rows of candidates with the record's host and program */
} edge_search;

/* Returns whether a later record of the same row, host and program is a candidate. */
static bool is_superseded(const edge_search *e, uint32_t record, unsigned row)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->all[i].row == row && is_same_place(e->s, e->all[i].record, record))
            return true;
    return false;
}

static void add_candidate(edge_search *e, uint32_t record, unsigned row, bool is_same)
{
    e->all[e->count++] = (candidate){record, row, is_same};
    e->below |= e->order->after[row];
    e->same |= (uint64_t)is_same << row;
}

/* Examines an earlier record, and adds it to the candidates if it may be the start of a line. Returns false if the
 * search is complete. */
static bool look_at(edge_search *e, uint32_t record)
{
    unsigned row = edges_row(e->s, record, e->layer);
    bool is_same = is_same_place(e->s, record, e->record), is_wanted = e->order->after[e->row] >> row & 1;
    bool is_point = e->order->begin_of[row] < 0 && !(e->order->begins >> row & 1);
    bool repeats = row == e->row ? is_point : e->order->after[row] >> e->row & 1;
    if (is_same && !is_wanted && repeats) {
        add_candidate(e, record, row, true);
        return false;
    }
    if (!is_wanted || (e->below >> row & 1))
        return true;
    if (!(is_same && (int)row == e->order->begin_of[e->row]) && !is_superseded(e, record, row))
        add_candidate(e, record, row, is_same);
    return true;
}

uint32_t edges_find_begin(const store *s, uint32_t record, unsigned layer)
{
    const spec_order *order = edges_order(s, record, layer);
    unsigned row = edges_row(s, record, layer);
    uint32_t begins[EDGES_MAX], before = store_previous(s, record, layer);
    size_t count = 0, ended = 0;
    for (unsigned looked = 0; order != NULL && before != STORE_NONE && looked < EDGES_MAX; looked++) {
        int its_row = (int)edges_row(s, before, layer);
        if (its_row == order->begin_of[row] && is_same_place(s, before, record))
            begins[count++] = before;
        else if (its_row == (int)row && is_same_place(s, before, record))
            ended++;
        before = store_previous(s, before, layer);
    }
    return count > ended ? begins[count - ended - 1] : STORE_NONE;
}

/* Adds the start of the span that the record ends as a candidate, unless the start precedes another candidate. */
static void add_begin(edge_search *e)
{
    int row = e->order->begin_of[e->row];
    uint32_t begin = row >= 0 && !(e->below >> row & 1) ? edges_find_begin(e->s, e->record, e->layer) : STORE_NONE;
    if (begin != STORE_NONE && e->count < EDGES_MAX)
        add_candidate(e, begin, (unsigned)row, true);
}

/*
 * Stores the causes of the record in `found`, and returns their number. A candidate is no cause if it precedes another
 * candidate. A candidate of another program is no cause if the record's program has a candidate in the same row. If
 * `begins` is true, the record begins a span, or it is the first record of its program in the request. The latest
 * candidate is then the only cause.
 */
static size_t take_candidates(const edge_search *e, bool begins, uint32_t found[EDGES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < e->count; i++) {
        const candidate *c = &e->all[i];
        if ((e->below >> c->row & 1) || (!c->is_same && (e->same >> c->row & 1)))
            continue;
        found[count++] = c->record;
        if (begins)
            return 1;
    }
    return count;
}

/* Returns whether the previous record is the only cause of a record, because all other possible causes precede it. */
static inline bool is_chain(const store *s, const spec_order *order, unsigned row, uint32_t before, unsigned layer)
{
    unsigned before_row = edges_row(s, before, layer);
    if ((order->after[before_row] | UINT64_C(1) << before_row) != order->after[row])
        return false;
    uint32_t second = store_previous(s, before, layer);
    return second == STORE_NONE || edges_row(s, second, layer) != before_row;
}

/* Like edges_find, for a record with several possible causes. Most records have one possible cause, for which
 * edges_find needs no search. */
static __attribute__((noinline)) size_t search_branches(const store *s, uint32_t record, unsigned layer,
                                                        const spec_order *order, uint32_t found[EDGES_MAX])
{
    edge_search e = {.s = s, .order = order, .record = record, .layer = layer, .row = edges_row(s, record, layer)};
    uint32_t before = store_previous(s, record, layer);
    bool is_first = true; /* first record with this host and program */
    for (unsigned looked = 0; before != STORE_NONE && looked < EDGES_MAX; looked++) {
        is_first = is_first && !is_same_place(s, before, record);
        if (!look_at(&e, before))
            break;
        before = store_previous(s, before, layer);
    }
    add_begin(&e);
    return take_candidates(&e, is_first || (e.order->begins >> e.row & 1), found);
}

size_t edges_find(const store *s, uint32_t record, unsigned layer, uint32_t found[EDGES_MAX])
{
    uint32_t before = store_previous(s, record, layer);
    if (before == STORE_NONE)
        return 0;
    spec_step step = spec_step_of(s->spec, store_event(s, record), layer);
    const spec_order *order = s->spec->lifelines[step.lifeline].order;
    if (order != NULL && !is_chain(s, order, step.row, before, layer))
        return search_branches(s, record, layer, order, found);
    found[0] = before;
    return 1;
}

size_t edges_find_violations(const store *s, uint32_t record, unsigned layer, uint32_t found[EDGES_MAX])
{
    const spec_order *order = edges_order(s, record, layer);
    unsigned row = edges_row(s, record, layer), looked = 0;
    size_t count = 0;
    if (order == NULL || (order->children[row] | order->received[row]) == 0)
        return 0;
    uint32_t before = store_previous(s, record, layer);
    for (; before != STORE_NONE && looked < EDGES_MAX; before = store_previous(s, before, layer), looked++) {
        unsigned its_row = edges_row(s, before, layer);
        bool is_other_host = store_host(s, before) != store_host(s, record);
        if (its_row == row)
            return 0; /* an earlier record of this row is the cause of the effects found so far */
        if (!(order->children[row] >> its_row & 1) && !(is_other_host && (order->received[row] >> its_row & 1)))
            continue;
        double early_ns = (double)(store_time(s, record) - store_time(s, before));
        if (early_ns > store_clock_bound_ns(s, store_host(s, before), store_host(s, record), record))
            found[count++] = before;
    }
    return before == STORE_NONE ? count : 0;
}

uint32_t edges_find_start(const store *s, uint32_t record, unsigned layer, unsigned row, float long_ns)
{
    uint32_t before = store_previous(s, record, layer);
    for (unsigned looked = 0; before != STORE_NONE && looked < EDGES_MAX; looked++) {
        if (edges_row(s, before, layer) == row && (float)(store_time(s, record) - store_time(s, before)) == long_ns)
            return before;
        before = store_previous(s, before, layer);
    }
    return STORE_NONE;
}

bool edges_begin_again(const store *s, uint32_t last, unsigned layer, const batch_row *row)
{
    spec_step begins = spec_step_of(s->spec, row->event, layer);
    const spec_order *order = s->spec->lifelines[begins.lifeline].order;
    if (order == NULL || !(order->first >> begins.row & 1))
        return false;
    spec_step ended = spec_step_of(s->spec, store_event(s, last), layer);
    if (ended.lifeline != begins.lifeline)
        return false;
    bool is_late = row->time_ns < store_time(s, last); /* a late row may belong to an earlier request */
    if (!is_late && !(order->last >> ended.row & 1) && row->time_ns - store_time(s, last) <= EDGES_PAUSE_NS)
        return false;
    bool is_over = !is_late && order->last >> ended.row & 1;
    uint64_t known = order->after[ended.row] | UINT64_C(1) << ended.row;
    for (unsigned looked = 0; last != STORE_NONE && looked < EDGES_MAX; looked++) {
        if (is_over && !(known >> edges_row(s, last, layer) & 1))
            return false; /* another branch of the request may continue */
        if (store_event(s, last) == row->event && store_host(s, last) == row->host && store_prog(s, last) == row->prog)
            return true;
        last = store_previous(s, last, layer);
    }
    return false;
}
