#include "config.h"

#include "clocks/fit.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

enum {
    ROUNDS = 90,       /* number of rounds of a ternary search, which leaves (2/3)^90 of the range */
    BOUNDS_MAX = 4096, /* maximum number of bounds per clock; beyond it, the module uses only the tightest bounds in
                          each part of the time */
};

#define STEEPEST 0.002 /* 2000 ppm, which exceeds the drift of any clock and the kernel's adjustments */
#define UNUSUAL 0.0007 /* a steeper slope between two pieces means that the clock was set, not slewed */
#define UNSURE 0.0005  /* assumed maximum drift of a clock at times that are not between two bounds */
#define PREFERENCE 1e-3

static int compare_bounds(const void *a, const void *b)
{
    int64_t first = ((const fit_bound *)a)->time_ns, second = ((const fit_bound *)b)->time_ns;
    return (first > second) - (first < second);
}

static int compare_steps(const void *a, const void *b)
{
    int64_t first = ((const fit_step *)a)->time_ns, second = ((const fit_step *)b)->time_ns;
    return (first > second) - (first < second);
}

/* ---- one line within bounds ---- */

typedef struct stretch {
    const fit_bound *bounds;
    size_t count;
    int64_t origin_ns;
} stretch;

static double since(const stretch *s, size_t i)
{
    return (double)(s->bounds[i].time_ns - s->origin_ns);
}

/*
 * Sets the range of values at the origin that a line with this slope can have. If the range is empty, *low is above
 * *high.
 */
static void range_of(const stretch *s, double slope, double *low, double *high)
{
    *low = -INFINITY;
    *high = INFINITY;
    for (size_t i = 0; i < s->count; i++) {
        double moved = slope * since(s, i);
        if (s->bounds[i].low_ns - moved > *low)
            *low = s->bounds[i].low_ns - moved;
        if (s->bounds[i].high_ns - moved < *high)
            *high = s->bounds[i].high_ns - moved;
    }
}

/*
 * Returns the width of the range that range_of sets. The width is a concave function of the slope, so a ternary search
 * finds its maximum.
 */
static double width_of(const stretch *s, double slope)
{
    double low, high;
    range_of(s, slope, &low, &high);
    return high - low;
}

/*
 * Returns the width plus a small bonus for slopes near the usual slope. The bonus decides between lines with equal
 * widths.
 */
static double merit_of(const stretch *s, double slope, double usual, double span_ns)
{
    double width = width_of(s, slope);
    return (isfinite(width) ? width : 0) - PREFERENCE * fabs(slope - usual) * span_ns;
}

static double best_slope(const stretch *s, double usual)
{
    double min = -STEEPEST, max = STEEPEST;
    double span_ns = since(s, s->count - 1) - since(s, 0) + 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double first = min + (max - min) / 3, second = max - (max - min) / 3;
        if (merit_of(s, first, usual, span_ns) < merit_of(s, second, usual, span_ns))
            min = first;
        else
            max = second;
    }
    return (min + max) / 2;
}

static bool is_possible(const fit_bound *bounds, size_t count, double usual)
{
    stretch s = {bounds, count, bounds[0].time_ns};
    return width_of(&s, best_slope(&s, usual)) >= 0;
}

/* Returns the slope nearest to `limit` with which a line fits. A line fits with the slope `possible`. */
static double find_limit_slope(const stretch *s, double possible, double limit)
{
    for (int i = 0; i < ROUNDS / 2; i++) {
        double middle = (possible + limit) / 2;
        if (width_of(s, middle) >= 0)
            possible = middle;
        else
            limit = middle;
    }
    return possible;
}

/*
 * Returns the maximum distance between this line and another line within the bounds, at the time at_ns. Considers only
 * lines above this line if `sign` is 1, and only lines below it if `sign` is -1.
 */
static double find_distance(const stretch *s, const fit_piece *p, double min, double max, double at_ns, double sign)
{
    double line = p->at_ns + p->slope * at_ns;
    for (int i = 0; i < ROUNDS; i++) {
        double first = min + (max - min) / 3, second = max - (max - min) / 3, low, high, of_first, of_second;
        range_of(s, first, &low, &high);
        of_first = sign * ((sign > 0 ? high : low) + first * at_ns);
        range_of(s, second, &low, &high);
        of_second = sign * ((sign > 0 ? high : low) + second * at_ns);
        if (of_first < of_second)
            min = first;
        else
            max = second;
    }
    double low, high, slope = (min + max) / 2;
    range_of(s, slope, &low, &high);
    return sign * ((sign > 0 ? high : low) + slope * at_ns - line);
}

static void find_errors(const stretch *s, fit_piece *p)
{
    double min = find_limit_slope(s, p->slope, -STEEPEST), max = find_limit_slope(s, p->slope, STEEPEST);
    double places[] = {0, since(s, s->count - 1) / 2, since(s, s->count - 1)};
    p->low_error_ns = p->high_error_ns = 0;
    for (int i = 0; i < 3; i++) {
        p->high_error_ns = fmax(p->high_error_ns, find_distance(s, p, min, max, places[i], 1));
        p->low_error_ns = fmax(p->low_error_ns, find_distance(s, p, min, max, places[i], -1));
    }
}

/* Returns the best line within bounds. At least one line must fit within these bounds. */
static fit_piece make_piece(const fit_bound *bounds, size_t count, double usual)
{
    stretch s = {bounds, count, bounds[0].time_ns};
    double low, high, slope = best_slope(&s, usual);
    range_of(&s, slope, &low, &high);
    fit_piece p = {.from_ns = bounds[0].time_ns, .to_ns = bounds[count - 1].time_ns, .slope = slope};
    if (isfinite(low) && isfinite(high)) {
        p.at_ns = (low + high) / 2;
        find_errors(&s, &p);
        return p;
    }
    /* All bounds are on one side, so use the smallest correction. */
    p.slope = usual;
    range_of(&s, usual, &low, &high);
    p.at_ns = low > 0 ? low : high < 0 ? high : 0;
    p.low_error_ns = isfinite(low) ? p.at_ns - low : INFINITY;
    p.high_error_ns = isfinite(high) ? high - p.at_ns : INFINITY;
    return p;
}

/* ---- selecting bounds ---- */

/*
 * Reduces the number of bounds. Divides the time into parts, and keeps the highest low bound and the lowest high bound
 * of each part, relative to a line through all bounds. Omitting bounds makes the result less precise, but not wrong.
 * Returns the number of remaining bounds.
 */
static size_t thin(fit_bound *bounds, size_t count)
{
    enum { STRETCHES = BOUNDS_MAX / 2 };
    if (count <= BOUNDS_MAX)
        return count;
    size_t step = (count + STRETCHES - 1) / STRETCHES, kept = 0;
    stretch all = {bounds, count, bounds[0].time_ns};
    double slope = best_slope(&all, 0);
    for (size_t from = 0; from < count; from += step) {
        size_t to = from + step < count ? from + step : count, highest = from, lowest = from;
        for (size_t i = from; i < to; i++) {
            double moved = slope * since(&all, i);
            if (bounds[i].low_ns - moved > bounds[highest].low_ns - slope * since(&all, highest))
                highest = i;
            if (bounds[i].high_ns - moved < bounds[lowest].high_ns - slope * since(&all, lowest))
                lowest = i;
        }
        fit_bound first = bounds[highest < lowest ? highest : lowest];
        fit_bound second = bounds[highest < lowest ? lowest : highest];
        bounds[kept++] = first;
        if (highest != lowest)
            bounds[kept++] = second;
    }
    return kept;
}

/* ---- pieces ---- */

static void add_piece(fit *f, fit_piece piece)
{
    if ((f->count & (f->count - 1)) == 0) {
        fit_piece *pieces = nl_memory_check(reallocarray(f->pieces, f->count == 0 ? 1 : 2 * f->count, sizeof *pieces));
        f->pieces = pieces;
    }
    f->pieces[f->count++] = piece;
}

/*
 * Returns the number of bounds, beginning with the first, within which one line fits. Searches by doubling and then by
 * bisection.
 */
static size_t longest(const fit_bound *bounds, size_t count, double usual)
{
    size_t good = 1, bad = count + 1;
    for (size_t next = 2; good < count; next = 2 * good) {
        next = next < count ? next : count;
        if (!is_possible(bounds, next, usual)) {
            bad = next;
            break;
        }
        good = next;
    }
    while (bad - good > 1 && good < count) {
        size_t middle = good + (bad - good) / 2;
        if (is_possible(bounds, middle, usual))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* Returns whether the clock jumped between two pieces without a record of a step. */
static bool has_jumped(const fit_piece *before, const fit_piece *after)
{
    double passed_ns = (double)(after->from_ns - before->to_ns);
    double end_ns = before->at_ns + before->slope * (double)(before->to_ns - before->from_ns);
    return fabs(after->at_ns - end_ns) > UNUSUAL * passed_ns + 100e3;
}

/* Adds the pieces for bounds between two steps. */
static void add_pieces(fit *f, const fit_bound *bounds, size_t count, double *usual)
{
    for (size_t at = 0, length; at < count; at += length) {
        length = longest(bounds + at, count - at, *usual);
        fit_piece piece = make_piece(bounds + at, length, *usual);
        fit_piece *before = f->count > 0 ? &f->pieces[f->count - 1] : NULL;
        if (at > 0 && has_jumped(before, &piece)) {
            piece.set = true;
            piece.set_ns = before->to_ns + (piece.from_ns - before->to_ns) / 2;
        }
        if (length > 2)
            *usual = piece.slope;
        add_piece(f, piece);
    }
}

fit fit_find(fit_bound *bounds, size_t count, fit_step *steps, size_t step_count)
{
    fit f = {0};
    double usual = 0;
    if (count > 0) /* qsort does not accept NULL */
        qsort(bounds, count, sizeof *bounds, compare_bounds);
    if (step_count > 0)
        qsort(steps, step_count, sizeof *steps, compare_steps);
    for (size_t at = 0, next = 0; at < count;) {
        size_t end = at;
        while (next < step_count && steps[next].time_ns <= bounds[at].time_ns)
            next++;
        while (end < count && (next >= step_count || bounds[end].time_ns < steps[next].time_ns))
            end++;
        size_t first = f.count, kept = thin(bounds + at, end - at);
        add_pieces(&f, bounds + at, kept, &usual);
        if (at > 0) { /* there is a step before these bounds */
            f.pieces[first].set = true;
            f.pieces[first].set_ns = steps[next - 1].time_ns;
        }
        at = end;
    }
    return f;
}

/* Returns the last piece that begins at or before a time. If all pieces begin later, returns the first piece. */
static const fit_piece *piece_at(const fit *f, int64_t time_ns)
{
    size_t low = 0, high = f->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        const fit_piece *p = &f->pieces[middle];
        if (time_ns < (p->set ? p->set_ns : p->from_ns))
            high = middle;
        else
            low = middle;
    }
    return &f->pieces[low];
}

static double line_at(const fit_piece *p, int64_t time_ns)
{
    return p->at_ns + p->slope * (double)(time_ns - p->from_ns);
}

double fit_at(const fit *f, int64_t time_ns)
{
    if (f->count == 0)
        return 0;
    const fit_piece *p = piece_at(f, time_ns), *after = p + 1;
    if (time_ns <= p->to_ns || after == f->pieces + f->count || after->set)
        return line_at(p, time_ns);
    double end_ns = line_at(p, p->to_ns), passed = (double)(time_ns - p->to_ns);
    return end_ns + (after->at_ns - end_ns) * passed / (double)(after->from_ns - p->to_ns);
}

/* Returns the distance of a time from a piece. */
static double outside(const fit_piece *p, int64_t time_ns)
{
    return time_ns < p->from_ns ? (double)(p->from_ns - time_ns)
           : time_ns > p->to_ns ? (double)(time_ns - p->to_ns)
                                : 0;
}

double fit_error_at(const fit *f, int64_t time_ns)
{
    if (f->count == 0)
        return INFINITY;
    const fit_piece *p = piece_at(f, time_ns), *after = p + 1;
    double error = fmax(p->low_error_ns, p->high_error_ns), away = outside(p, time_ns);
    if (time_ns > p->to_ns && after < f->pieces + f->count && !after->set) {
        error = fmax(error, fmax(after->low_error_ns, after->high_error_ns));
        away = fmin(away, outside(after, time_ns));
    }
    return error + UNSURE * away;
}

void fit_free(fit *f)
{
    free(f->pieces);
    *f = (fit){0};
}
