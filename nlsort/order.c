#include "config.h"

#include "order.h"

#include "big.h"
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGIT_BITS = 11,
    DIGITS = 1 << DIGIT_BITS,
    NEAR = 16, /* maximum distance, in pieces, of a line from its final position */
    GROUP_MAX =
        128 << 10,  /* maximum number of lines in a group; about the number that fits into the processor's cache */
    GROUP_MIN = 32, /* insertion sort is used for smaller groups */
};

typedef struct span {
    const nl_scanned_line *lines;
    size_t count;
} span;

/* ---- radix sort ---- */

/* A digit of a time: the bits in `mask` of (time - minimum) >> shift. */
typedef struct digit {
    int64_t minimum;
    unsigned shift;
    unsigned mask;
} digit;

static inline unsigned digit_of(digit d, int64_t time_ns)
{
    return (unsigned)(((uint64_t)time_ns - (uint64_t)d.minimum) >> d.shift) & d.mask;
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

/*
 * Returns the number of digits that are necessary to distinguish the times from `minimum` to `maximum`. Sets *bits to
 * the number of bits per digit.
 */
static unsigned digits_of_range(int64_t minimum, int64_t maximum, unsigned *bits)
{
    uint64_t range = (uint64_t)maximum - (uint64_t)minimum;
    unsigned wanted = range == 0 ? 1 : 64 - (unsigned)__builtin_clzll(range);
    unsigned passes = (wanted + DIGIT_BITS - 1) / DIGIT_BITS;
    *bits = (wanted + passes - 1) / passes;
    return passes;
}

/*
 * Sorts lines by all digits of their times. The first pass writes to `next`, and the following passes alternate between
 * `other` and `next`. Returns the array that contains the result.
 */
static nl_scanned_line *sort_span(span s, int64_t minimum, int64_t maximum, nl_scanned_line *next,
                                  nl_scanned_line *other)
{
    unsigned bits, passes = digits_of_range(minimum, maximum, &bits);
    for (unsigned pass = 0; pass < passes; pass++) {
        digit d = {minimum, pass * bits, (1u << bits) - 1};
        size_t counts[DIGITS] = {0};
        count_digits(s, d, counts);
        for (size_t i = 0, sum = 0; i <= d.mask; i++) {
            size_t count = counts[i];
            counts[i] = sum;
            sum += count;
        }
        distribute(s, d, counts, next);
        s.lines = next;
        nl_scanned_line *filled = next;
        next = other;
        other = filled;
    }
    return other;
}

void order_piece(const piece *p, nl_scanned_line *to, nl_scanned_line *spare)
{
    span s = {p->list->lines + p->first, p->count};
    nl_scanned_line *ordered = p->ordered ? NULL : sort_span(s, p->minimum, p->maximum, to, spare);
    if (ordered != to)
        memcpy(to, p->ordered ? s.lines : ordered, s.count * sizeof *to);
}

/* A pass of several workers over all lines. */
typedef struct pass {
    const span *spans;
    size_t span_count;
    size_t workers;
    digit digit;
    nl_scanned_line *to;
    size_t (*counts)[DIGITS]; /* counts[w][d]: number of worker w's lines with digit d; later, index in `to` of the next
                               * such line */
} pass;

/* Returns the spans of a worker, and sets *count to their number. */
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

static void distribute_counted(pass *p)
{
    size_t sum = 0;
    for (size_t i = 0; i <= p->digit.mask; i++)
        for (size_t worker = 0; worker < p->workers; worker++) {
            size_t count = p->counts[worker][i];
            p->counts[worker][i] = sum;
            sum += count;
        }
    workers_run(p->workers, distribute_own, p);
}

static void do_pass(pass *p)
{
    workers_run(p->workers, count_own, p);
    distribute_counted(p);
}

/* Divides the lines into one span for each worker. */
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

/* ---- most significant digit first ---- */

/* Lines that have been distributed into groups by their first digit. */
typedef struct groups {
    nl_scanned_line *lines;
    const size_t *ends; /* end of each group */
    size_t count, largest;
    atomic_size_t next; /* index of the next group to sort */
} groups;

static void sort_few(nl_scanned_line *lines, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        nl_scanned_line moving = lines[i];
        size_t at = i;
        for (; at > 0 && lines[at - 1].time_ns > moving.time_ns; at--)
            lines[at] = lines[at - 1];
        lines[at] = moving;
    }
}

static void sort_group(nl_scanned_line *lines, size_t count, nl_scanned_line *spare)
{
    if (count < GROUP_MIN) {
        sort_few(lines, count);
        return;
    }
    int64_t minimum = lines[0].time_ns, maximum = minimum;
    for (size_t i = 1; i < count; i++) {
        minimum = lines[i].time_ns < minimum ? lines[i].time_ns : minimum;
        maximum = lines[i].time_ns > maximum ? lines[i].time_ns : maximum;
    }
    nl_scanned_line *ordered = sort_span((span){lines, count}, minimum, maximum, spare, lines);
    if (ordered != lines)
        memcpy(lines, ordered, count * sizeof *lines);
}

static void sort_own_groups(void *user, size_t worker)
{
    (void)worker;
    groups *g = user;
    nl_scanned_line *spare = new_lines(g->largest);
    for (size_t i; (i = atomic_fetch_add(&g->next, 1)) < g->count;) {
        size_t from = i > 0 ? g->ends[i - 1] : 0;
        sort_group(g->lines + from, g->ends[i] - from, spare);
    }
    free_lines(spare, g->largest);
}

/* Distributes lines by their first digit into `to`, and sorts each group. Returns false if a group is too large. */
static bool sort_by_groups(const span *spans, size_t span_count, digit first, size_t (*counts)[DIGITS],
                           nl_scanned_line *to)
{
    pass p = {spans, span_count, workers_count(), first, to, counts};
    workers_run(p.workers, count_own, &p);
    groups g = {.lines = to, .count = (size_t)first.mask + 1};
    for (size_t i = 0; i < g.count; i++) {
        size_t own = 0;
        for (size_t worker = 0; worker < p.workers; worker++)
            own += counts[worker][i];
        g.largest = own > g.largest ? own : g.largest;
    }
    if (g.largest > GROUP_MAX)
        return false;
    distribute_counted(&p);
    g.ends = counts[p.workers - 1]; /* after the distribution, the last worker's counts are the ends of the groups */
    workers_run(p.workers, sort_own_groups, &g);
    return true;
}

static nl_scanned_line *sort_by_digits(table *t, int64_t minimum, int64_t maximum)
{
    size_t workers = workers_count();
    span *spans = nl_memory_check(calloc(t->piece_count, sizeof *spans)), parts[WORKERS_MAX];
    size_t(*counts)[DIGITS] = nl_memory_check(calloc(workers, sizeof *counts));
    for (size_t i = 0; i < t->piece_count; i++)
        spans[i] = (span){t->pieces[i].list->lines + t->pieces[i].first, t->pieces[i].count};
    unsigned bits, passes = digits_of_range(minimum, maximum, &bits);
    nl_scanned_line *to = new_lines(t->line_count), *from = NULL;
    if (sort_by_groups(spans, t->piece_count, (digit){minimum, (passes - 1) * bits, (1u << bits) - 1}, counts, to)) {
        free(spans);
        free(counts);
        return to;
    }
    pass p = {spans, t->piece_count, workers, {minimum, 0, (1u << bits) - 1}, to, counts};
    do_pass(&p);
    table_free_lists(t);
    if (passes > 1)
        from = new_lines(t->line_count);
    for (unsigned i = 1; i < passes; i++) {
        nl_scanned_line *before = p.to;
        cut(before, t->line_count, workers, parts);
        p = (pass){parts, workers, workers, {minimum, i * bits, (1u << bits) - 1}, from, counts};
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
    size_t *starts; /* index in `to` of the first line of each piece, followed by the number of lines */
    size_t largest; /* number of lines of the largest piece */
    size_t workers;
    atomic_size_t next; /* index of the next piece to sort */
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
    o.starts = nl_memory_check(calloc(t->piece_count + 1, sizeof *o.starts));
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
    return o.to;
}

/* Returns whether every line is at most NEAR pieces away from its final position. */
static bool is_near(const table *t)
{
    int64_t maximum = INT64_MIN;
    for (size_t i = 0; i + NEAR < t->piece_count; i++) {
        maximum = t->pieces[i].maximum > maximum ? t->pieces[i].maximum : maximum;
        /* the piece NEAR pieces later must not contain an earlier line */
        if (t->pieces[i + NEAR].minimum < maximum)
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
    int64_t minimum = INT64_MAX, maximum = INT64_MIN;
    for (size_t i = 0; i < t->piece_count; i++) {
        minimum = t->pieces[i].minimum < minimum ? t->pieces[i].minimum : minimum;
        maximum = t->pieces[i].maximum > maximum ? t->pieces[i].maximum : maximum;
    }
    o.lines = is_near(t) ? sort_near(t) : sort_by_digits(t, minimum, maximum);
    return o;
}

void order_free(order *o)
{
    free_lines(o->lines, o->capacity);
    *o = (order){0};
}
