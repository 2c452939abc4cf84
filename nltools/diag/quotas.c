/*
 * Finds CPU quotas (cpu.max of control groups). The kernel stops a program that has used its quota until the end of the
 * quota's period. All stops therefore end at multiples of the period, at a constant phase. The periods are whole
 * milliseconds, 100 ms by default, and the clock of the kernel's timer has the same rate as the clock of the log.
 *
 * The module examines each program on each host. A part of a visit in which no child is running is a piece of work. The
 * module finds the period in which the ends of the pieces have the most similar phases. During the stop, which is a
 * range of phases, pieces must be in progress, but hardly any piece may end. The null hypothesis is that the durations
 * of the pieces do not depend on the phases in which the pieces begin. To compute the distribution of the likelihood
 * ratio under this hypothesis, the module assigns the durations to other pieces of the same kind at random. Periodic
 * load alone does not disprove the hypothesis, but a timer for which all visits wait does. Therefore, pieces that begin
 * outside the stop must end soon, at least WORKS_MIN times as often as pieces that begin in the stop.
 */
#include "config.h"

#include <math.h>

#include "diag/findings.h"
#include "diag/mechanisms.h"

#include <stdlib.h>
#include <string.h>

enum {
    PHASES = 40,
    PERIOD_MIN_MS = 5,
    PERIOD_MAX_MS = 1000, /* the maximum that the kernel accepts */
    PERIOD_DEFAULT_MS = 100,
    PIECES_MAX = 4096, /* maximum number of pieces of a program on a host */
    ENDS_MAX = 384,    /* maximum number of ends for the choice of the period */
    ENDS_FIRST = 128,  /* number of ends for a first test, which usually ends the search */
    PIECES_MIN = 100,
    PERIODS_MIN = 10,
    SIDE_MIN = 15, /* minimum number of pieces that begin in the stop, and of pieces that begin outside the stop */
    SHUFFLES = 40,
    CHILDREN_SEARCHED_MAX = 512 /* in larger requests, the module ignores spans with children */
};

/* Minimum resultant of a period (resultant_of). */
#define RESULTANT_MIN 16
#define RESULTANT_FIRST_MIN 8

/* Minimum resultant of the default period, which the search tests first and with all ends. One in a thousand programs
 * without stops has this resultant by chance. */
#define RESULTANT_DEFAULT_MIN 7

/* A half, third or other integer fraction of the true period also has a large resultant. The search therefore prefers a
 * longer period whose resultant is at least this part of the largest resultant. */
#define LONGER_PREFERRED 0.9

/*
 * Maximum rate of ends in the stop, per time and per piece in progress, as a part of the rate outside the stop. The
 * limit is not 0, because the program does not always use up its quota at the same phase. The limit for the default
 * period is higher, because few other causes have this period. A higher limit is necessary because a program does not
 * stop in a period in which it has not used up its quota. For other periods, the same limit applies to the rate of ends
 * per time.
 */
#define RATE_IN_STOP_MAX 0.3
#define RATE_DEFAULT_MAX 0.5

/* Maximum mean likelihood ratio of random durations, as a part of the measured ratio. */
#define RANDOM_MAX 0.5

/* Limits of the stop's length as a part of the period. */
#define STOP_MIN 0.1
#define STOP_MAX 0.98

/* Pieces that begin outside the stops must end soon (works_outside) at least WORKS_MIN times as often as pieces that
 * begin in a stop. */
#define WORKS_MIN 0.3

/* If less than this part of the pieces that begin in a stop end soon after the stop, these pieces do not only wait for
 * its end. */
#define WAIT_ONLY_MIN 0.5

/* The search tries no other period if the probability of the stop of the default period by chance is at most
 * CHANCE_MAX. */
#define CHANCE_MAX 1e-6

/* Minimum part of the time of all pieces. The module ignores smaller kinds of pieces, which may only record
 * arrivals. */
#define KIND_MIN 0.1

/* A part of a visit in which no child is running. Pieces of one kind belong to one place. */
typedef struct piece {
    int64_t from_ns, to_ns;
    uint32_t visit, kind;
} piece;

/* The stop of each period: from phase `from`, with the length `length`, both in PHASES-ths of the period. */
typedef struct stop {
    int from, length;
    double ratio;            /* log likelihood ratio */
    double ends[2], time[2]; /* numbers of ends, and times in progress; [0]: outside the stop; [1]: in the stop */
} stop;

/* A program on a host or, if the records name no host, a process. */
typedef struct group {
    const char *host, *process; /* process: NULL unless the records name no host */
    double path_ns;
    uint32_t count; /* number of visits */
    uint32_t seen;  /* number of visits that the sampling has examined so far */
    GArray *pieces; /* elements are piece */
} group;

/* Adds the pieces of a visit before its first child and after its last child. Ignores messages to the program unless
 * `with_messages` is true. */
static void add_pieces(const visits *v, uint32_t index, bool with_messages, GArray *pieces)
{
    const visit *x = visit_at(v, index);
    const site *at = site_at(v, x->site);
    const place *p = place_at(v, at->place);
    if (p->kind == PLACE_UNKNOWN || (p->kind == PLACE_EDGE && at->from_instance != at->instance && !with_messages) ||
        x->to_ns <= x->from_ns)
        return;
    int64_t first_ns = x->to_ns, last_ns = x->from_ns;
    if (p->kind == PLACE_SPAN && p->has_children) {
        const request *q = request_at(v, x->request);
        if (q->count > CHILDREN_SEARCHED_MAX)
            return;
        for (uint32_t i = q->first; i < q->first + q->count; i++) {
            const visit *y = visit_at(v, i);
            if (y->parent == index) {
                first_ns = MIN(first_ns, y->from_ns);
                last_ns = MAX(last_ns, y->to_ns);
            }
        }
    }
    const piece before = {x->from_ns, first_ns, index, 2 * at->place},
                after = {last_ns, x->to_ns, index, 2 * at->place + 1};
    if (before.to_ns > before.from_ns)
        g_array_append_val(pieces, before);
    if (after.to_ns > after.from_ns && first_ns < x->to_ns)
        g_array_append_val(pieces, after);
}

static const piece *piece_at(const GArray *pieces, guint i)
{
    return &g_array_index(pieces, piece, i);
}

/* Returns the phase of a time, 0 to 1 (exclusive). */
static double phase_of(int64_t ns, int64_t period_ns)
{
    return (double)(ns % period_ns + (ns % period_ns < 0 ? period_ns : 0)) / (double)period_ns;
}

/* Returns how similar the phases of the pieces' ends are: the number of ends times their squared mean resultant length
 * (Rayleigh's test). Uses at most `ends` pieces. */
static double resultant_of(const GArray *pieces, guint ends, int64_t period_ns)
{
    guint count = MIN(pieces->len, ends);
    float x = 0, y = 0;
    for (guint i = 0; i < count; i++) {
        const piece *a = piece_at(pieces, (guint)((uint64_t)i * pieces->len / count));
        float angle = (float)(2 * G_PI * phase_of(a->to_ns, period_ns));
        x += cosf(angle);
        y += sinf(angle);
    }
    return (double)(x * x + y * y) / count;
}

/* Returns the period for which the ends of the pieces have the most similar phases, or 0 if no period has a resultant
 * of at least `resultant_min`. Uses at most `ends` pieces. */
static int64_t find_period(const GArray *pieces, guint ends, double resultant_min)
{
    enum { PERIODS = PERIOD_MAX_MS - PERIOD_MIN_MS + 1 };
    double resultants[PERIODS], largest = 0;
    for (int k = 0; k < PERIODS; k++) {
        resultants[k] = resultant_of(pieces, ends, (int64_t)(PERIOD_MIN_MS + k) * 1000000);
        largest = fmax(largest, resultants[k]);
    }
    for (int k = PERIODS - 1; k >= 0 && largest >= resultant_min; k--)
        if (resultants[k] >= LONGER_PREFERRED * largest)
            return (int64_t)(PERIOD_MIN_MS + k) * 1000000;
    return 0;
}

/* Adds the time of a piece, in periods, to the phases in which the piece is in progress. */
static void add_exposure(double *exposure, double phase, double periods)
{
    double whole = floor(periods), at = phase * PHASES, left = (periods - whole) * PHASES;
    for (int b = 0; b < PHASES && whole > 0; b++)
        exposure[b] += whole / PHASES;
    while (left > 0) {
        int b = (int)at % PHASES;
        double step = fmin(left, floor(at) + 1 - at);
        exposure[b] += step / PHASES;
        at += step;
        left -= step;
    }
}

static double log_rate(double count, double time)
{
    return count > 0 ? count * log(count / time) : 0;
}

/* Finds the stop: the range of phases with a lower rate of ends per piece in progress that has the largest likelihood
 * ratio to a constant rate. */
static stop find_stop(const double *ends, const double *exposure)
{
    stop best = {0};
    double all = 0, time = 0;
    for (int b = 0; b < PHASES; b++) {
        all += ends[b];
        time += exposure[b];
    }
    for (int from = 0; from < PHASES; from++) {
        double in_ends = 0, in_time = 0;
        for (int length = 1; length < PHASES; length++) {
            in_ends += ends[(from + length - 1) % PHASES];
            in_time += exposure[(from + length - 1) % PHASES];
            double out_ends = all - in_ends, out_time = time - in_time;
            if (in_time <= 0 || out_time <= 0 || in_ends * out_time >= out_ends * in_time)
                continue;
            double ratio = log_rate(in_ends, in_time) + log_rate(out_ends, out_time) - log_rate(all, time);
            if (ratio > best.ratio)
                best = (stop){from, length, ratio, {out_ends, in_ends}, {out_time, in_time}};
        }
    }
    return best;
}

/* Finds the stop for the pieces with these durations, in nanoseconds. */
static stop stop_of(const GArray *pieces, const int64_t *durations, int64_t period_ns)
{
    double ends[PHASES] = {0}, exposure[PHASES] = {0};
    for (guint i = 0; i < pieces->len; i++) {
        const piece *a = piece_at(pieces, i);
        add_exposure(exposure, phase_of(a->from_ns, period_ns), (double)durations[i] / (double)period_ns);
        ends[(int)(phase_of(a->from_ns + durations[i], period_ns) * PHASES) % PHASES]++;
    }
    return find_stop(ends, exposure);
}

/* Returns how much of the range from from_ns to to_ns is in stops, in nanoseconds. */
static double time_in_stops(const stop *s, int64_t from_ns, int64_t to_ns, int64_t period_ns)
{
    double period = (double)period_ns, length = (double)s->length / PHASES,
           at = phase_of(from_ns, period_ns) - (double)s->from / PHASES, left = (double)(to_ns - from_ns) / period,
           whole = floor(left), sum = whole * length;
    at += at < 0 ? 1 : 0;
    left -= whole;
    sum += fmax(0, fmin(length, at + left) - at);    /* in the current stop */
    sum += fmax(0, fmin(1 + length, at + left) - 1); /* in the next stop */
    return sum * period;
}

static bool is_in_stop(const stop *s, int64_t ns, int64_t period_ns)
{
    return ((int)(phase_of(ns, period_ns) * PHASES) - s->from + PHASES) % PHASES < s->length;
}

static bool is_default(int64_t period_ns)
{
    return period_ns == (int64_t)PERIOD_DEFAULT_MS * 1000000;
}

/*
 * Returns whether enough of the pieces that begin outside the stops end soon, compared with pieces that begin in a
 * stop. Otherwise, all pieces wait for the end of a stop, as for a timer. A piece that begins in a stop ends soon if it
 * ends in the first half of the time until the next stop. A piece that begins in this half ends soon if it ends before
 * the next stop. With the default period, it may also end in the next stop, because the program does not stop in every
 * period.
 */
static bool works_outside(const GArray *pieces, const stop *s, int64_t period_ns)
{
    double length = (double)s->length / PHASES, half = (1 - length) / 2;
    uint32_t begun[2] = {0}, ended[2] = {0}; /* outside the stops, and in a stop */
    for (guint i = 0; i < pieces->len; i++) {
        const piece *a = piece_at(pieces, i);
        double at = phase_of(a->from_ns, period_ns) - (double)s->from / PHASES,
               periods = (double)(a->to_ns - a->from_ns) / (double)period_ns;
        at += at < 0 ? 1 : 0; /* 0: begin of the stop; 1: begin of the next stop */
        bool in = at < length;
        if (!in && at > length + half)
            continue;
        begun[in]++;
        ended[in] += at + periods < (in ? length + half : is_default(period_ns) ? length + 1 : 1);
    }
    return begun[1] >= SIDE_MIN &&
           (ended[1] < WAIT_ONLY_MIN * begun[1] ||
            (begun[0] >= SIDE_MIN && (double)ended[0] * begun[1] >= WORKS_MIN * ended[1] * begun[0]));
}

static int by_kind(gconstpointer a, gconstpointer b)
{
    const piece *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->from_ns != y->from_ns ? (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns)
                                    : (x->visit > y->visit) - (x->visit < y->visit);
}

/* Exchanges the durations of pieces of the same kind at random. The pieces are sorted by kind. */
static void shuffle_durations(const GArray *pieces, int64_t *durations, GRand *chance)
{
    for (guint from = 0, to; from < pieces->len; from = to) {
        for (to = from; to < pieces->len && piece_at(pieces, to)->kind == piece_at(pieces, from)->kind; to++)
            ;
        for (guint i = to - from; i > 1; i--) {
            guint n = from + (guint)g_rand_int_range(chance, 0, (gint32)i);
            int64_t swapped = durations[n];
            durations[n] = durations[from + i - 1];
            durations[from + i - 1] = swapped;
        }
    }
}

/* Returns by how many standard deviations the likelihood ratio of the stop exceeds its mean for random durations, or 0
 * if the mean is nearly as large. */
static double significance_of(const GArray *pieces, const stop *s, int64_t period_ns)
{
    int64_t *durations = g_new(int64_t, pieces->len + 1);
    GRand *chance = g_rand_new_with_seed(1); /* the same log always has the same result */
    double sum = 0, square = 0;
    for (guint i = 0; i < pieces->len; i++)
        durations[i] = piece_at(pieces, i)->to_ns - piece_at(pieces, i)->from_ns;
    for (int k = 0; k < SHUFFLES; k++) {
        shuffle_durations(pieces, durations, chance);
        double ratio = stop_of(pieces, durations, period_ns).ratio;
        sum += ratio;
        square += ratio * ratio;
    }
    g_rand_free(chance);
    g_free(durations);
    double mean = sum / SHUFFLES, deviation = sqrt(fmax(square / SHUFFLES - mean * mean, 0));
    return mean > RANDOM_MAX * s->ratio ? 0 : (s->ratio - mean) / fmax(deviation, 0.5);
}

/* Sorts the pieces by kind, and removes the kinds that take a small part of the time. */
static void keep_large_kinds(GArray *pieces)
{
    double all = 0, sum = 0;
    guint kept = 0;
    g_array_sort(pieces, by_kind);
    for (guint i = 0; i < pieces->len; i++)
        all += (double)(piece_at(pieces, i)->to_ns - piece_at(pieces, i)->from_ns);
    for (guint from = 0, to; from < pieces->len; from = to, sum = 0) {
        for (to = from; to < pieces->len && piece_at(pieces, to)->kind == piece_at(pieces, from)->kind; to++)
            sum += (double)(piece_at(pieces, to)->to_ns - piece_at(pieces, to)->from_ns);
        for (guint i = from; i < to && sum >= KIND_MIN * all; i++)
            g_array_index(pieces, piece, kept++) = *piece_at(pieces, i);
    }
    g_array_set_size(pieces, kept);
}

/* Finds the stop of each period in a sample of pieces. Returns the probability that pieces without a quota seem to have
 * this stop by chance. */
static double judge_period(const GArray *pieces, int64_t period_ns, stop *s)
{
    int64_t *durations = g_new(int64_t, pieces->len + 1), first_ns = INT64_MAX, last_ns = INT64_MIN;
    for (guint i = 0; i < pieces->len; i++) {
        const piece *a = piece_at(pieces, i);
        durations[i] = a->to_ns - a->from_ns;
        first_ns = MIN(first_ns, a->from_ns);
        last_ns = MAX(last_ns, a->to_ns);
    }
    *s = stop_of(pieces, durations, period_ns);
    g_free(durations);
    const double rate_max = is_default(period_ns) ? RATE_DEFAULT_MAX : RATE_IN_STOP_MAX,
                 length = (double)s->length / PHASES;
    if (last_ns - first_ns < PERIODS_MIN * period_ns || length < STOP_MIN || length > STOP_MAX ||
        s->ends[1] / s->time[1] > rate_max * s->ends[0] / s->time[0] ||
        (!is_default(period_ns) && s->ends[1] / length > rate_max * s->ends[0] / (1 - length)) ||
        !works_outside(pieces, s, period_ns))
        return 1;
    return normal_tail(significance_of(pieces, s, period_ns));
}

/* Finds the period of a quota and its stop. Tries the default period first. Returns the probability that pieces without
 * a quota seem to have this stop by chance. */
static double find_quota(GArray *pieces, stop *s, int64_t *period_ns)
{
    keep_large_kinds(pieces);
    if (pieces->len < PIECES_MIN)
        return 1;
    *period_ns = (int64_t)PERIOD_DEFAULT_MS * 1000000;
    double p = resultant_of(pieces, pieces->len, *period_ns) >= RESULTANT_DEFAULT_MIN
                   ? 2 * judge_period(pieces, *period_ns, s)
                   : 1;
    if (p < CHANCE_MAX || find_period(pieces, ENDS_FIRST, RESULTANT_FIRST_MIN) == 0 ||
        (*period_ns = find_period(pieces, ENDS_MAX, RESULTANT_MIN)) == 0)
        return p < CHANCE_MAX ? p : 1;
    return 2 * (PERIOD_MAX_MS - PERIOD_MIN_MS + 1) * judge_period(pieces, *period_ns, s);
}

/* The number of ends of a place's pieces, and their time in progress, outside the stops and in the stops. */
typedef struct stop_rates {
    double ends[2], time[2];
} stop_rates;

/* Adds up the ends and the times of the pieces of a group for each place. The caller frees the array with g_free. */
static stop_rates *count_in_stops(const visits *v, const uint32_t *numbers, uint32_t number, const stop *s,
                                  int64_t period_ns)
{
    stop_rates *rates = g_new0(stop_rates, v->places->len + 1);
    GArray *pieces = g_array_new(FALSE, FALSE, sizeof(piece));
    for (guint i = 0; i < v->all->len; i++) {
        const visit *x = visit_at(v, i);
        if (numbers[x->site] != number)
            continue;
        g_array_set_size(pieces, 0);
        add_pieces(v, i, true, pieces);
        for (guint k = 0; k < pieces->len; k++) {
            const piece *a = piece_at(pieces, k);
            stop_rates *r = &rates[place_of_visit(v, x)];
            double in = time_in_stops(s, a->from_ns, a->to_ns, period_ns);
            r->time[0] += (double)(a->to_ns - a->from_ns) - in;
            r->time[1] += in;
            r->ends[is_in_stop(s, a->to_ns, period_ns)]++;
        }
    }
    g_array_free(pieces, TRUE);
    return rates;
}

/* Returns the part of the time in the stops, 0 to 1, for which the pieces of a place wait. The rate of their ends in
 * the stops is lower by this part than outside. */
static double waiting_part(const stop_rates *r)
{
    return r->time[1] <= 0 || r->ends[0] <= 0
               ? 0
               : fmax(0, 1 - r->ends[1] / r->time[1] / (r->ends[0] / fmax(r->time[0], 1)));
}

/* Adds the result of a group that is stopped: its visits, and the messages to it, wait during the stops. */
static void add_result(const visits *v, const uint32_t *numbers, uint32_t number, const group *g, const stop *s,
                       int64_t period_ns, double p, GArray *results)
{
    pause_result r = {.m = {.host = g->host,
                            .process = g->process,
                            .p = p,
                            .is_quota = true,
                            .period_ns = (double)period_ns,
                            .length_ns = (double)period_ns * s->length / PHASES},
                      .first_ns = INT64_MAX,
                      .last_ns = INT64_MIN};
    GArray *pieces = g_array_new(FALSE, FALSE, sizeof(piece));
    stop_rates *rates = count_in_stops(v, numbers, number, s, period_ns);
    r.m.waits = g_new0(float, v->all->len + 1);
    for (guint i = 0; i < v->all->len; i++) {
        const visit *x = visit_at(v, i);
        if (numbers[x->site] != number)
            continue;
        double wait = 0;
        g_array_set_size(pieces, 0);
        add_pieces(v, i, true, pieces);
        for (guint k = 0; k < pieces->len; k++)
            wait += time_in_stops(s, piece_at(pieces, k)->from_ns, piece_at(pieces, k)->to_ns, period_ns);
        wait = fmin(wait * waiting_part(&rates[place_of_visit(v, x)]), (double)x->own_ns);
        if (wait <= 0)
            continue;
        r.m.waits[i] = (float)wait;
        r.m.claim_ns += wait * path_weight(x);
        r.m.count++;
        r.first_ns = MIN(r.first_ns, x->from_ns);
        r.last_ns = MAX(r.last_ns, x->to_ns);
    }
    g_free(rates);
    g_array_free(pieces, TRUE);
    if (r.m.claim_ns >= FINDING_MIN / 2 * v->total_ns)
        g_array_append_val(results, r);
    else
        g_free(r.m.waits);
}

/* Returns the groups of all sites. For each site, sets numbers[site] to the index of the site's group. */
static GArray *group_sites(const visits *v, uint32_t *numbers)
{
    GArray *groups = g_array_new(FALSE, FALSE, sizeof(group));
    GHashTable *known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL); /* text -> number + 1 */
    for (guint i = 0; i < v->sites->len; i++) {
        const site *at = site_at(v, i);
        const char *program = place_at(v, at->place)->program;
        const char *process = *at->host == '\0' ? instance_at(v, at->instance)->program : NULL;
        char *text = g_strconcat(program, "\n", at->host, "\n", process, NULL);
        guint n = GPOINTER_TO_UINT(g_hash_table_lookup(known, text));
        if (n == 0) {
            const group new_group = {.host = at->host, .process = process};
            g_array_append_val(groups, new_group);
            n = groups->len;
            g_hash_table_insert(known, g_strdup(text), GUINT_TO_POINTER(n));
        }
        g_free(text);
        g_array_index(groups, group, n - 1).path_ns += at->path_ns;
        g_array_index(groups, group, n - 1).count += at->count;
        numbers[i] = n - 1;
    }
    g_hash_table_destroy(known);
    return groups;
}

void find_quotas(const visits *v, GArray *results)
{
    uint32_t *numbers = g_new0(uint32_t, v->sites->len + 1);
    GArray *groups = group_sites(v, numbers);
    for (guint n = 0; n < groups->len; n++) {
        group *g = &g_array_index(groups, group, n);
        if (g->path_ns >= FINDING_MIN * v->total_ns && g->count >= PIECES_MIN &&
            (*g->host != '\0' || *g->process != '\0'))
            g->pieces = g_array_new(FALSE, FALSE, sizeof(piece));
    }
    for (guint i = 0; i < v->all->len; i++) {
        group *g = &g_array_index(groups, group, numbers[visit_at(v, i)->site]);
        if (g->pieces != NULL && g->seen++ % (g->count / PIECES_MAX + 1) == 0)
            add_pieces(v, i, false, g->pieces);
    }
    for (guint n = 0; n < groups->len; n++) {
        group *g = &g_array_index(groups, group, n);
        stop s = {0};
        int64_t period_ns = 0;
        double p = g->pieces != NULL ? find_quota(g->pieces, &s, &period_ns) : 1;
        if (p < 1)
            add_result(v, numbers, n, g, &s, period_ns, p, results);
        if (g->pieces != NULL)
            g_array_free(g->pieces, TRUE);
    }
    g_array_free(groups, TRUE);
    g_free(numbers);
}
