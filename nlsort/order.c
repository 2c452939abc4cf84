#include "config.h"

#include "order.h"

#include "big.h"
#include "program/program.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGIT_BITS = 11,
    DIGITS = 1 << DIGIT_BITS,
    NEAR = 16, /* so many pieces that a line may be away from its place are near */
};

/* Lines that are read one behind the other. */
typedef struct span {
    const nl_scanned_line *lines;
    size_t count;
} span;

/* ---- by digits ---- */

/* Times from least on, a digit of which is looked at. */
typedef struct digit {
    int64_t least;
    unsigned shift;
    unsigned mask;
} digit;

static inline unsigned digit_of(digit d, int64_t time_ns)
{
    return (unsigned)(((uint64_t)time_ns - (uint64_t)d.least) >> d.shift) & d.mask;
}

static void count_digits(span s, digit d, size_t counts[DIGITS])
{
    for (size_t i = 0; i < s.count; i++)
        counts[digit_of(d, s.lines[i].time_ns)]++;
}

static void distribute(span s, digit d, size_t places[DIGITS], nl_scanned_line *to)
{
    for (size_t i = 0; i < s.count; i++)
        to[places[digit_of(d, s.lines[i].time_ns)]++] = s.lines[i];
}

/* How many digits times from least to most have, and of how many bits. */
static unsigned digits_of_range(int64_t least, int64_t most, unsigned *bits)
{
    uint64_t range = (uint64_t)most - (uint64_t)least;
    unsigned wanted = range == 0 ? 1 : 64 - (unsigned)__builtin_clzll(range);
    unsigned passes = (wanted + DIGIT_BITS - 1) / DIGIT_BITS;
    *bits = (wanted + passes - 1) / passes;
    return passes;
}

void order_piece(const piece *p, nl_scanned_line *to, nl_scanned_line *spare)
{
    span s = {p->list->lines + p->first, p->count};
    if (p->ordered) {
        memcpy(to, s.lines, s.count * sizeof *to);
        return;
    }
    unsigned bits, passes = digits_of_range(p->least, p->most, &bits);
    nl_scanned_line *next = passes % 2 == 1 ? to : spare;
    for (unsigned pass = 0; pass < passes; pass++) {
        digit d = {p->least, pass * bits, (1u << bits) - 1};
        size_t counts[DIGITS] = {0};
        count_digits(s, d, counts);
        for (size_t i = 0, sum = 0; i <= d.mask; i++) {
            size_t count = counts[i];
            counts[i] = sum;
            sum += count;
        }
        distribute(s, d, counts, next);
        s.lines = next;
        next = next == to ? spare : to;
    }
}

/* One pass over all lines, which several workers do together. */
typedef struct pass {
    const span *spans;
    size_t span_count;
    size_t workers;
    digit digit;
    nl_scanned_line *to;
    size_t (*counts)[DIGITS]; /* of each worker */
} pass;

/* Which spans are a worker's: about as many as another's. */
static span *own_spans(const pass *p, size_t worker, size_t *count)
{
    size_t from = p->span_count * worker / p->workers, to = p->span_count * (worker + 1) / p->workers;
    *count = to - from;
    return (span *)p->spans + from;
}

static void count_own(void *user, size_t worker)
{
    const pass *p = user;
    size_t count;
    span *spans = own_spans(p, worker, &count);
    memset(p->counts[worker], 0, sizeof p->counts[worker]);
    for (size_t i = 0; i < count; i++)
        count_digits(spans[i], p->digit, p->counts[worker]);
}

static void distribute_own(void *user, size_t worker)
{
    const pass *p = user;
    size_t count;
    span *spans = own_spans(p, worker, &count);
    for (size_t i = 0; i < count; i++)
        distribute(spans[i], p->digit, p->counts[worker], p->to);
}

static void do_pass(pass *p)
{
    workers_run(p->workers, count_own, p);
    size_t sum = 0;
    for (size_t i = 0; i <= p->digit.mask; i++)
        for (size_t worker = 0; worker < p->workers; worker++) {
            size_t count = p->counts[worker][i];
            p->counts[worker][i] = sum;
            sum += count;
        }
    workers_run(p->workers, distribute_own, p);
}

/* Cuts lines into as many spans as there are workers. */
static void cut(const nl_scanned_line *lines, size_t count, size_t workers, span *spans)
{
    for (size_t i = 0; i < workers; i++) {
        size_t from = count * i / workers, to = count * (i + 1) / workers;
        spans[i] = (span){lines + from, to - from};
    }
}

static nl_scanned_line *new_lines(size_t count)
{
    return big_new((count + 1) * sizeof(nl_scanned_line));
}

static void free_lines(nl_scanned_line *lines, size_t count)
{
    big_free(lines, (count + 1) * sizeof *lines);
}

static nl_scanned_line *sort_by_digits(table *t, int64_t least, int64_t most)
{
    size_t workers = workers_count();
    span *spans = calloc(t->piece_count, sizeof *spans), parts[WORKERS_MOST];
    size_t(*counts)[DIGITS] = calloc(workers, sizeof *counts);
    if (spans == NULL || counts == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    for (size_t i = 0; i < t->piece_count; i++)
        spans[i] = (span){t->pieces[i].list->lines + t->pieces[i].first, t->pieces[i].count};
    unsigned bits, passes = digits_of_range(least, most, &bits);
    nl_scanned_line *to = new_lines(t->line_count), *from = NULL;
    pass p = {spans, t->piece_count, workers, {least, 0, (1u << bits) - 1}, to, counts};
    do_pass(&p);
    table_free_lists(t);
    if (passes > 1)
        from = new_lines(t->line_count);
    for (unsigned i = 1; i < passes; i++) {
        nl_scanned_line *before = p.to;
        cut(before, t->line_count, workers, parts);
        p = (pass){parts, workers, workers, {least, i * bits, (1u << bits) - 1}, from, counts};
        do_pass(&p);
        from = before;
    }
    if (passes > 1)
        free_lines(from, t->line_count);
    free(spans);
    free(counts);
    return p.to;
}

/* ---- nearly in order ---- */

typedef struct near_order {
    const table *t;
    nl_scanned_line *to;
    size_t *starts; /* of each piece in to, and the end of all */
    size_t largest; /* piece */
    size_t workers;
    atomic_size_t next; /* piece to be sorted */
} near_order;

static void sort_own_pieces(void *user, size_t worker)
{
    (void)worker;
    near_order *o = user;
    nl_scanned_line *spare = new_lines(o->largest);
    for (size_t i; (i = atomic_fetch_add(&o->next, 1)) < o->t->piece_count;)
        order_piece(&o->t->pieces[i], o->to + o->starts[i], spare);
    free_lines(spare, o->largest);
}

size_t order_count_before(const nl_scanned_line *lines, size_t count, int64_t time_ns, bool same)
{
    size_t from = 0;
    while (count > 0) {
        size_t half = count / 2;
        int64_t middle = lines[from + half].time_ns;
        if (middle < time_ns || (same && middle == time_ns)) {
            from += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return from;
}

void order_merge(nl_scanned_line *lines, size_t middle, size_t count, line_list *spare)
{
    if (middle == 0 || middle == count)
        return;
    size_t left = order_count_before(lines, middle, lines[middle].time_ns, true);
    if (left == middle)
        return;
    count = middle + order_count_before(lines + middle, count - middle, lines[middle - 1].time_ns, false);
    size_t kept = middle - left;
    line_list_reserve(spare, kept);
    const nl_scanned_line *first = spare->lines, *end = first + kept;
    memcpy(spare->lines, lines + left, kept * sizeof *lines);
    size_t right = middle, to = left;
    while (first < end && right < count)
        lines[to++] = lines[right].time_ns < first->time_ns ? lines[right++] : *first++;
    memcpy(lines + to, first, (size_t)(end - first) * sizeof *lines);
}

static void merge_pieces(const near_order *o, size_t first, size_t end, line_list *spare)
{
    if (end - first < 2)
        return;
    size_t middle = first + (end - first) / 2;
    merge_pieces(o, first, middle, spare);
    merge_pieces(o, middle, end, spare);
    size_t start = o->starts[first];
    order_merge(o->to + start, o->starts[middle] - start, o->starts[end] - start, spare);
}

static size_t first_piece(const near_order *o, size_t worker)
{
    return o->t->piece_count * worker / o->workers;
}

static void merge_own_pieces(void *user, size_t worker)
{
    const near_order *o = user;
    line_list spare = {0};
    merge_pieces(o, first_piece(o, worker), first_piece(o, worker + 1), &spare);
    line_list_free(&spare);
}

static nl_scanned_line *sort_near(table *t)
{
    near_order o = {.t = t, .to = new_lines(t->line_count), .workers = workers_count()};
    o.starts = calloc(t->piece_count + 1, sizeof *o.starts);
    if (o.starts == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    for (size_t i = 0; i < t->piece_count; i++) {
        o.starts[i + 1] = o.starts[i] + t->pieces[i].count;
        o.largest = t->pieces[i].count > o.largest ? t->pieces[i].count : o.largest;
    }
    workers_run(o.workers, sort_own_pieces, &o);
    workers_run(o.workers, merge_own_pieces, &o);
    line_list spare = {0};
    for (size_t i = 1; i < o.workers; i++)
        order_merge(o.to, o.starts[first_piece(&o, i)], o.starts[first_piece(&o, i + 1)], &spare);
    line_list_free(&spare);
    free(o.starts);
    table_free_lists(t);
    return o.to;
}

/* Whether every line is at most so many pieces away from where it belongs. */
static bool is_near(const table *t)
{
    int64_t most = INT64_MIN;
    for (size_t i = 0; i + NEAR < t->piece_count; i++) {
        most = t->pieces[i].most > most ? t->pieces[i].most : most;
        /* Pieces further on must not hold anything earlier; each one's least is looked at NEAR pieces before it. */
        if (t->pieces[i + NEAR].least < most)
            return false;
    }
    return true;
}

order order_table(table *t)
{
    order o = {.count = t->line_count, .capacity = t->line_count};
    if (t->line_count == 0) {
        o.lines = new_lines(0);
        return o;
    }
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (size_t i = 0; i < t->piece_count; i++) {
        least = t->pieces[i].least < least ? t->pieces[i].least : least;
        most = t->pieces[i].most > most ? t->pieces[i].most : most;
    }
    o.lines = is_near(t) ? sort_near(t) : sort_by_digits(t, least, most);
    return o;
}

void order_free(order *o)
{
    free_lines(o->lines, o->capacity);
    *o = (order){0};
}
