#include "config.h"

#include <math.h>

#include "diag/host_clocks.h"
#include "diag/search.h"

#include <stdlib.h>
#include <string.h>

/* At a place that already has a finding, a further candidate must explain at least this part of the variation. The
 * limit is high, because a second effect is often a consequence of the finding's cause. */
#define AGAIN_MIN 0.3

/*
 * An explanation must remove at least EXPLAINED_MIN of the variation, and claim at least SHARE_MIN of the requests'
 * time. For example, if log-normal times have a standard deviation of 1.2, and half of the visits take twice as long,
 * the explanation removes 2 % of the variation.
 */
#define EXPLAINED_MIN 0.02
#define SHARE_MIN 0.02

/* A queue counts as the backlog of a slow start if at least this part of the queue's waits begins during the start. */
#define BACKLOG_MIN 0.9

/* A queue is a backlog only if at most this part of all visits begins during the slow start. */
#define START_MAX 0.25

/*
 * Slow work replaces a queue if it claims at least MORE_TIME times the queue's time, and explains at least
 * MINOR_EXPLAINED_MIN of the variation that the queue explains.
 */
#define MORE_TIME 2
#define MINOR_EXPLAINED_MIN 0.5

/* A queue explains a part of the variation of all visits. For the visits between the same two hosts, it must explain at
 * least VARY_MIN times this part. */
#define VARY_MIN 0.5

/*
 * A mechanism replaces a field if it explains at least YIELD_MIN of the variation that the field explains, and both
 * claim the same time. Two candidates claim the same time if at least SAME_TIME_MIN of the smaller claim is also part
 * of the other claim.
 */
#define YIELD_MIN 0.5
#define SAME_TIME_MIN 0.5

enum {
    OTHER_DIVISIONS = 6, /* peers at both ends, also in a time range; the time; the load */
    /* The mechanisms: pause, quota, acknowledgement, queue, lock after other work, timer, batch, timeout, constant
       delay within kinds, given up, named timeout, retries, calls */
    MECHANISMS = 13,
    EXAMINED_SHARE = 50, /* the search examines places with at least 1/EXAMINED_SHARE of the time */
    EXAMINED_COUNT = 20
};

bool place_is_examined(const visits *v, uint32_t place)
{
    const struct place *p = place_at(v, place);
    return p->path_ns * EXAMINED_SHARE >= v->total_ns && p->kind != PLACE_UNKNOWN && p->work_count >= EXAMINED_COUNT;
}

test_counts search_count_tests(const visits *v)
{
    const GPtrArray *all = series_all(v->series);
    GHashTable *kinds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL); /* the kinds of sensors' series */
    uint32_t columns = 0;
    for (uint32_t i = 0; i < v->columns->count; i++) /* a column of numbers has two tests: each number, and ranges */
        columns += v->columns->all[i].closed ? 0 : v->columns->all[i].has_number ? 2 : 1;
    for (guint i = 0; i < all->len; i++) {
        const sensor_series *s = g_ptr_array_index(all, i);
        g_hash_table_add(kinds, g_strjoin("\n", s->event, s->field, s->instance, NULL));
    }
    uint32_t of_all = columns + OTHER_DIVISIONS + visits_span_days(v) + 2 * v->has_processes;
    /* The factor 2: the search tests all visits, and the main kind of visits. A column that lacks values in some visits
     * has two tests. The tests of values in a time range use the part IN_TIME_PART of the level. */
    const test_counts counts = {(uint32_t)ceil(2 * (of_all + columns) / (1 - IN_TIME_PART)), g_hash_table_size(kinds),
                                MECHANISMS};
    g_hash_table_destroy(kinds);
    return counts;
}

double significance_level(const visits *v, uint32_t number, uint32_t tests)
{
    return FALSE_ALARMS_MAX / FAMILIES * place_at(v, number)->path_ns / v->total_ns / MAX(tests, 1);
}

bool effect_counts(double explained, double share, double slow_ns, double other_ns)
{
    return explained >= EXPLAINED_MIN && share >= SHARE_MIN && (slow_ns <= 0 || slow_ns > EFFECT_MIN * other_ns);
}

void candidate_clear(candidate *c)
{
    g_free(c->cut);
    memset(c, 0, sizeof *c);
}

static bool place_has_host(const visits *v, const place *p, const char *host, bool at_begin)
{
    for (guint n = 0; n < p->sites->len; n++) {
        const site *at = site_at(v, g_array_index(p->sites, uint32_t, n));
        if ((at_begin ? at->from_host : at->host) == host)
            return true;
    }
    return false;
}

static bool place_has_doubtful_host(const visits *v, const place *p)
{
    for (guint n = 0; n < p->sites->len; n++) {
        const site *at = site_at(v, g_array_index(p->sites, uint32_t, n));
        if (host_clock_is_doubtful(v, at->host) || host_clock_is_doubtful(v, at->from_host))
            return true;
    }
    return false;
}

/* Returns the largest error of the corrected times of a place's hosts, in nanoseconds. */
static double correction_error(const visits *v, const place *p)
{
    double largest = 0;
    for (guint n = 0; n < p->sites->len; n++) {
        const site *at = site_at(v, g_array_index(p->sites, uint32_t, n));
        if (at->host != at->from_host)
            largest = fmax(largest, fmax(host_clock_error(v, at->host), host_clock_error(v, at->from_host)));
    }
    return largest;
}

/*
 * Returns whether messages to or from a host may seem slow only because a clock is wrong. A wrong clock makes messages
 * in the other direction seem to arrive before they are sent, so few of them become visits. Returns true if the ratio
 * of messages in the other direction to messages in this direction is much larger for the host's peers than for the
 * host.
 */
static bool may_be_clock(const visits *v, const candidate *c)
{
    const place *p = place_at(v, c->place);
    bool ends = c->host != NULL && place_has_host(v, p, c->host, false),
         begins = c->host != NULL && place_has_host(v, p, c->host, true);
    /* Numbers of messages in this direction and in the other direction. Index 0: the host's peers; 1: the host. */
    double there[2] = {0}, back[2] = {0};
    if (strcmp(c->cause, "peer") == 0 && place_has_doubtful_host(v, p))
        return true;
    if (p->kind == PLACE_EDGE && begins != ends && c->slow_ns - c->other_ns < correction_error(v, p))
        return true;
    if (p->kind != PLACE_EDGE || begins == ends || c->m.is_mixed ||
        place_clocks_are_known(v, p, c->slow_ns - c->other_ns))
        return false;
    for (guint i = 0; i < v->sites->len; i++) {
        const site *at = site_at(v, i);
        const place *of = place_at(v, at->place);
        if (of == p)
            there[(ends ? at->host : at->from_host) == c->host] += at->count;
        else if (of->kind == PLACE_EDGE && at->host != at->from_host &&
                 place_has_host(v, p, ends ? at->from_host : at->host, begins))
            back[(ends ? at->from_host : at->host) == c->host] += at->count;
    }
    if (back[0] <= 20 || there[0] <= 0 || there[1] <= 0)
        return p->inferred;
    return back[1] / there[1] < 0.5 * back[0] / there[0];
}

/* Returns the time of a visit, in nanoseconds, that no finding has claimed. */
static double left_of(const visits *v, uint32_t index, const float *claimed)
{
    return MAX(0.0, (double)visit_at(v, index)->own_ns - (double)claimed[index]);
}

/* Returns whether the waits of a queue explain why the messages between the same two hosts take different times. A
 * wrong clock would add the same time to each of these messages. */
static bool waits_vary(const search *s, const candidate *c)
{
    const visits *v = s->v;
    const place *p = place_at(v, c->place);
    double *times = g_new(double, p->count + 1), sums[2] = {0};
    for (guint n = 0; c->m.servers > 0 && n < p->sites->len; n++)
        for (int without = 0; without < 2; without++) {
            size_t count = 0;
            for (uint32_t i = p->first; i < p->first + p->count; i++) {
                uint32_t index = v->by_place[i];
                if (visit_at(v, index)->site == g_array_index(p->sites, uint32_t, n))
                    times[count++] = left_of(v, index, s->f->claimed) - (without ? (double)c->cut[index] : 0);
            }
            double middle = median_of(times, count);
            for (size_t i = 0; i < count; i++)
                sums[without] += fabs(times[i] - middle);
        }
    g_free(times);
    return sums[0] - sums[1] > VARY_MIN * c->explained * sums[0];
}

/* Returns whether a candidate is a mechanism: neither a division of the visits nor a sensor. */
static bool is_mechanism(const candidate *c)
{
    static const char *const divisions[] = {"peer", "field", "size", "cold", "changed", "hour", "load"};
    for (size_t i = 0; i < G_N_ELEMENTS(divisions); i++)
        if (strcmp(c->cause, divisions[i]) == 0)
            return false;
    return c->sensor == NULL;
}

static uint32_t tests_of_family(const search *s, const candidate *c)
{
    return c->sensor != NULL ? s->tests.sensors : is_mechanism(c) ? s->tests.mechanisms : s->tests.divisions;
}

static bool is_excluded(const search *s, const candidate *c)
{
    for (guint i = 0; i < s->excluded->len; i++) {
        const exclusion *e = &g_array_index(s->excluded, exclusion, i);
        if (e->place == c->place && strcmp(e->cause, c->cause) == 0 &&
            (!e->has_host || (e->host == c->host && e->process == c->process)) &&
            (e->column == NULL || e->column == c->column) &&
            (e->branch == NULL || e->branch == c->branch || (c->branch == NULL && e->column != NULL)))
            return true;
    }
    return false;
}

/* Moves a candidate to the rivals, for comparison with the finding of its place. Frees its cut, because rivals claim no
 * time. */
static void add_rival(search *s, candidate *c)
{
    g_clear_pointer(&c->cut, g_free);
    g_array_append_val(s->rivals, *c);
}

/* Returns the significance level of a candidate. The tests of calls use a fixed part of the mechanisms' level. In these
 * tests, all spans have the same weight, because a span that contains calls often has little own time. */
static double level_of(const search *s, const candidate *c)
{
    uint32_t spans = 0;
    for (guint i = 0; c->is_tree && i < s->v->places->len; i++)
        spans += place_at(s->v, i)->kind == PLACE_SPAN;
    return c->is_tree ? FALSE_ALARMS_MAX / FAMILIES / MECHANISMS / MAX(spans, 1)
                      : significance_level(s->v, c->place, tests_of_family(s, c));
}

/*
 * Returns whether a queue is only the backlog of a slow start: nearly all of its waits begin before the slow start has
 * ended.
 */
static bool is_backlog(const visits *v, const candidate *queue, const candidate *start)
{
    const place *p = place_at(v, queue->place);
    double before = 0, all = 0;
    uint32_t count = 0;
    if (queue->m.servers == 0 || strcmp(start->cause, "cold") != 0)
        return false;
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        const visit *x = visit_at(v, v->by_place[i]);
        double wait = (double)queue->cut[v->by_place[i]] * path_weight(x);
        all += wait;
        before += x->from_ns <= start->to_ns ? wait : 0;
        count += x->from_ns <= start->to_ns;
    }
    return before > BACKLOG_MIN * all && count < START_MAX * p->count;
}

/*
 * Returns whether a queue is only a consequence of slow work. In this case, a slow host, a short resource or a slow
 * time range claims much more time than the waits, and explains enough of the variation. The other cause need not
 * explain as much as the queue, because the model of a queue uses the ends of earlier visits.
 */
static bool is_minor_queue(const candidate *queue, const candidate *c)
{
    static const char *const causes[] = {"peer", "resource", "cold", "changed", "hour"};
    bool is_slow_work = false;
    for (size_t i = 0; i < G_N_ELEMENTS(causes); i++)
        is_slow_work = is_slow_work || strcmp(causes[i], c->cause) == 0;
    return queue->m.servers > 0 && strcmp(queue->cause, "balance") != 0 && is_slow_work &&
           c->claim_ns >= MORE_TIME * queue->claim_ns &&
           c->explained * c->part >= MINOR_EXPLAINED_MIN * queue->explained * queue->part;
}

/* Two claims of a place in nanoseconds, and the time that is part of both. */
typedef struct claim_sums {
    double of[2], both;
} claim_sums;

static claim_sums compare_claims(const visits *v, const candidate *a, const candidate *b)
{
    const place *p = place_at(v, a->place);
    claim_sums s = {0};
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        uint32_t index = v->by_place[i];
        double weight = path_weight(visit_at(v, index));
        s.both += (double)fminf(a->cut[index], b->cut[index]) * weight;
        s.of[0] += (double)a->cut[index] * weight;
        s.of[1] += (double)b->cut[index] * weight;
    }
    return s;
}

/* Returns whether most of the smaller of two claims is also part of the other claim. */
static bool claim_same_time(const visits *v, const candidate *a, const candidate *b)
{
    const claim_sums s = compare_claims(v, a, b);
    return s.both >= SAME_TIME_MIN * fmin(s.of[0], s.of[1]);
}

/*
 * A mechanism and a field's value explain the same waits under two conditions. (1) At least VALUE_AGREES_MIN of the
 * waits belong to the value's claim. (2) These waits are at least VALUE_WAITS_MIN of the claim, because the value can
 * also explain visits that take longer by other times.
 */
#define VALUE_AGREES_MIN 0.75
#define VALUE_WAITS_MIN 0.5

/* Returns whether the distribution of the durations is the only evidence for a mechanism, such as a timeout. */
static bool is_by_duration(const candidate *c)
{
    return c->m.constant || c->m.is_sometimes || (strcmp(c->cause, "timeout") == 0 && !c->m.is_retry);
}

/* Returns whether a field's value replaces a mechanism whose only evidence is the distribution of the durations. The
 * value is better evidence, because it shows which visits are longer, and does not follow from the durations. */
static bool names_waits(const visits *v, const candidate *field, const candidate *c)
{
    if (strcmp(field->cause, "field") != 0 || field->column == NULL || field->branch != NULL || field->is_ordinary ||
        column_is_result(field->column) || field->meaning == NUMBER_CONTENTION || !is_mechanism(c) ||
        !is_by_duration(c))
        return false;
    const place *p = place_at(v, field->place);
    double both = 0, sums[2] = {0};
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        uint32_t index = v->by_place[i];
        both += (double)fminf(field->cut[index], c->cut[index]);
        sums[0] += (double)field->cut[index];
        sums[1] += (double)c->cut[index];
    }
    return both >= VALUE_AGREES_MIN * sums[1] && both >= VALUE_WAITS_MIN * sums[0];
}

/* Returns whether a field's value is the result of a visit, such as the status "timeout". */
static bool is_result(const candidate *field)
{
    return column_is_result(field->column) || (field->column->has_text && field->values == 1 &&
                                               column_value_is_failure(field->column, (float)field->value));
}

/*
 * Returns whether a mechanism replaces a field that explains the same time. There are four cases:
 * - The field is a result of the visit, such as a status, and not its cause.
 * - The field is a number of waits, repetitions or failures, which are consequences of the mechanism.
 * - The field is a number of unknown meaning, which may also be a consequence.
 * - The field is ordinary work, which must not hide a fault.
 *
 * In the last two cases, returns false if the distribution of the durations is the only evidence for the mechanism,
 * because two kinds of work can have the same distribution.
 */
static bool yields_to(const visits *v, const candidate *field, const candidate *c)
{
    if (field->column == NULL || !is_mechanism(c) || c->explained < YIELD_MIN * field->explained * field->part)
        return false;
    if (field->meaning == NUMBER_CONTENTION || is_result(field) ||
        (!is_by_duration(c) && (field->is_ordinary || field->meaning == NUMBER_UNKNOWN)))
        return claim_same_time(v, field, c);
    return false;
}

/*
 * Returns whether a pause explains a place better than another candidate. If the two candidates claim different times,
 * both may exist, and the candidate that claims more time is better. Otherwise, the candidate that explains more is
 * better. A pause is better than any queue, because visits that wait for the end of a pause look like a queue.
 */
static bool pause_is_better(const visits *v, const candidate *pause, const candidate *other)
{
    const claim_sums s = compare_claims(v, pause, other);
    if (s.both < SAME_TIME_MIN * s.of[1])
        return pause->claim_ns > other->claim_ns;
    return other->m.servers > 0 || pause->explained * pause->part > other->explained * other->part;
}

/* A value that is slow in a time range replaces the same value without a range if it claims at least this part of
 * the value's time. Otherwise, the value is also slow at other times. */
#define RANGE_PART_MIN 0.75

/* Returns whether a candidate is a value of a field that is slow in a time range, and `whole` is the same value, but
 * is also slow at other times. */
static bool is_part_of_value(const candidate *c, const candidate *whole)
{
    return c->is_since && !whole->is_since && c->column != NULL && c->column == whole->column && !whole->is_ordinary &&
           strcmp(c->cause, "field") == 0 && strcmp(whole->cause, "field") == 0 &&
           c->claim_ns < RANGE_PART_MIN * whole->claim_ns;
}

/* Returns whether a candidate explains a place better than the best candidate so far. */
static bool is_better(const visits *v, const candidate *c, const candidate *best)
{
    if (best->cause == NULL)
        return true;
    if (yields_to(v, best, c) || names_waits(v, c, best))
        return true;
    if (yields_to(v, c, best) || names_waits(v, best, c))
        return false;
    if (is_part_of_value(c, best) || is_part_of_value(best, c))
        return best->is_since;
    const candidate *fault = c->is_ordinary ? best : c;
    if (c->is_ordinary != best->is_ordinary && (c->is_evened_out || best->is_evened_out || fault->is_within_kind))
        return best->is_ordinary; /* ordinary work does not explain a fault that affects all operations, or visits of
                                     one kind */
    bool is_pause = strcmp(c->cause, "pause") == 0 && !c->m.is_quota,
         best_is_pause = strcmp(best->cause, "pause") == 0 && !best->m.is_quota;
    if (is_pause != best_is_pause)
        return is_pause ? pause_is_better(v, c, best) : !pause_is_better(v, best, c);
    if (is_minor_queue(best, c) || is_minor_queue(c, best))
        return best->m.servers > 0;
    if (is_backlog(v, best, c) || is_backlog(v, c, best))
        return strcmp(c->cause, "cold") == 0;
    return c->score > best->score;
}

void candidate_place(search *s, candidate *c)
{
    candidate *best = &s->best[c->place];
    if (is_better(s->v, c, best)) {
        if (best->cause != NULL)
            add_rival(s, best);
        *best = *c;
    } else {
        add_rival(s, c);
    }
}

/* Notes that a wrong clock may explain a candidate. If these candidates claim enough time for a finding, the log may
 * hide a cause. */
static void doubt_clocks(search *s, const candidate *c)
{
    double sum = 0;
    s->doubtful_ns[c->place] = fmax(s->doubtful_ns[c->place], c->claim_ns);
    for (guint i = 0; i < s->v->places->len; i++)
        sum += s->doubtful_ns[i];
    if (sum < FINDING_MIN * s->v->total_ns)
        return;
    g_free(s->f->cannot_tell);
    s->f->cannot_tell =
        g_strdup("the clock of a host may be wrong, which would look like slow messages; log ClockOffset records");
}

/*
 * A cause that slows few visits very much explains little of the variation, because the variation is measured with
 * absolute deviations. If such a cause takes enough time for a finding, it is an alternative to another cause of the
 * place. An alternative requires less evidence than a cause: it may be due to chance with at most this probability.
 */
#define RIVAL_CHANCE 1e-3

static bool is_concentrated(const candidate *c, double share)
{
    return c->slow_ns > EFFECT_MIN * c->other_ns && share >= FINDING_MIN && !c->is_ordinary && c->p <= RIVAL_CHANCE;
}

void candidate_offer(search *s, candidate *c)
{
    double share = c->claim_ns / s->v->total_ns;
    /* A pause stops all places of a program, so their claims form one sum. */
    bool is_pause = strcmp(c->cause, "pause") == 0;
    bool counts = !c->is_of_rest &&
                  effect_counts(c->explained, is_pause ? fmax(share, SHARE_MIN) : share, c->slow_ns, c->other_ns) &&
                  (!s->has_finding[c->place] || c->explained >= AGAIN_MIN),
         is_chance = c->p > level_of(s, c),
         is_rival = !(counts && !is_chance) && !c->is_of_rest && !s->has_finding[c->place] && s->collected == NULL &&
                    s->only == NULL && is_concentrated(c, share);
    if (counts) {
        char *where = text_process_place(s->v, c->place, c->process, c->host), *part = text_share(share),
             *removed = text_share(c->explained);
        const char *name = c->column != NULL ? c->column->name : "", *of = "";
        if (*name == '@') { /* the hosts of a program */
            name++;
            of = *name != '\0' ? " host of" : " host";
        }
        findings_note(s->f, g_strdup_printf("%s%s%s%s: %s: %s of the time, explains %s of the variation, p = %.2g",
                                            c->cause, of, *name != '\0' ? " " : "", name, where, part, removed, c->p));
        g_free(where);
        g_free(part);
        g_free(removed);
    }
    if (counts && !is_chance && strcmp(c->cause, "pause") != 0 && may_be_clock(s->v, c) && !waits_vary(s, c)) {
        doubt_clocks(s, c);
        counts = false;
    }
    if (is_rival && !is_excluded(s, c))
        add_rival(s, c);
    else if (!counts || is_chance || is_excluded(s, c) || (s->only != NULL && !finding_has_cause(s, s->only, c)))
        candidate_clear(c);
    else if (s->collected != NULL)
        g_array_append_val(s->collected, *c);
    else
        candidate_place(s, c);
}

/* ---- the time that a candidate claims ---- */

/*
 * Sums over a site's visits in the sample, in nanoseconds: the time that the candidate cuts, and the time that no
 * finding has claimed.
 */
typedef struct site_sums {
    double cut, left;
} site_sums;

/*
 * Limits each cut to the visit's remaining time, because other findings may have claimed a part of the waits of a queue
 * or pause. Returns whether the place has visits outside of the sample, and none of them has a cut.
 */
static bool limit_cut(candidate *c, const visits *v, const place *p, const float *claimed)
{
    uint32_t next = 0, outside = 0;
    for (uint32_t i = p->first; i < p->first + p->work_count; i++) {
        uint32_t index = v->by_work[i];
        bool sampled = next < sample_size(p) && i == sample_position(p, next);
        next += sampled;
        double more = (double)c->cut[index] - left_of(v, index, claimed);
        if (more > 0) {
            c->cut[index] -= (float)more;
            c->claim_ns -= more * path_weight(visit_at(v, index));
        }
        outside += !sampled && c->cut[index] > 0;
    }
    return p->work_count > sample_size(p) && outside == 0;
}

/* Cuts each visit outside of the sample by the same part of its remaining time as the sample's visits at the same
 * site. */
static void extend_cut(const visits *v, const place *p, const float *claimed, float *cut)
{
    GHashTable *of_sites = g_hash_table_new_full(NULL, NULL, NULL, g_free); /* maps a site's number to its sums */
    site_sums all = {0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < sample_size(p); i++) {
        uint32_t index = v->by_work[sample_position(p, i)];
        gpointer key = GUINT_TO_POINTER(visit_at(v, index)->site);
        site_sums *of = g_hash_table_lookup(of_sites, key);
        if (of == NULL) {
            of = g_new0(site_sums, 1);
            g_hash_table_insert(of_sites, key, of);
        }
        of->cut += (double)cut[index];
        of->left += left_of(v, index, claimed);
        all.cut += (double)cut[index];
        all.left += left_of(v, index, claimed);
    }
    for (uint32_t i = p->first; i < p->first + p->work_count; i++) {
        uint32_t index = v->by_work[i];
        const site_sums *of = g_hash_table_lookup(of_sites, GUINT_TO_POINTER(visit_at(v, index)->site));
        if (next < sample_size(p) && i == sample_position(p, next)) {
            next++;
            continue;
        }
        of = of != NULL ? of : &all;
        cut[index] = of->left > 0 ? (float)(left_of(v, index, claimed) * of->cut / of->left) : 0;
    }
    g_hash_table_destroy(of_sites);
}

/* Returns the sum of the cuts on critical paths, in nanoseconds. Sets *rest to the remaining time of the visits that
 * have a cut. */
static double sum_cut(const visits *v, const place *p, const float *claimed, const float *cut, double *rest)
{
    double sum = 0;
    *rest = 0;
    for (uint32_t i = p->first; i < p->first + p->work_count; i++) {
        uint32_t index = v->by_work[i];
        double weight = path_weight(visit_at(v, index));
        sum += (double)cut[index] * weight;
        *rest += cut[index] > 0 ? (left_of(v, index, claimed) - (double)cut[index]) * weight : 0;
    }
    return sum;
}

/* Limits the cut of each visit to the time that no finding has claimed. Returns the sum of the cuts in nanoseconds. */
static double settle_tree(candidate *c, const visits *v, const float *claimed)
{
    c->claim_ns = 0;
    for (guint i = 0; i < v->all->len; i++) {
        c->cut[i] = (float)fmin((double)c->cut[i], left_of(v, i, claimed));
        c->claim_ns += (double)c->cut[i] * path_weight(visit_at(v, i));
    }
    return replay_gain(v, c->cut, 1);
}

double candidate_settle(candidate *c, const visits *v, const float *claimed)
{
    if (c->is_tree)
        return settle_tree(c, v, claimed);
    const place *p = place_at(v, c->place);
    bool sampled = limit_cut(c, v, p, claimed);
    double gain = replay_gain(v, c->cut, sampled ? (double)p->work_count / sample_size(p) : 1), rest;
    if (sampled)
        extend_cut(v, p, claimed, c->cut);
    double sum = sum_cut(v, p, claimed, c->cut, &rest);
    /* A cut is at most the visit's time, so the cut of a short visit can be less than the mean excess. Add the
     * difference to the cuts of the other visits. */
    double more = sum < c->claim_ns && rest > 0 ? MIN(1, (c->claim_ns - sum) / rest) : 0;
    for (uint32_t i = p->first; more > 0 && i < p->first + p->work_count; i++) {
        uint32_t index = v->by_work[i];
        if (c->cut[index] > 0)
            c->cut[index] += (float)(more * (left_of(v, index, claimed) - (double)c->cut[index]));
    }
    c->claim_ns = sum + more * rest;
    return gain;
}

/* Returns an array that contains the excess of each visit at the visit's index, and 0 for visits outside of the sample.
 * The caller frees it with g_free. */
static float *excess_by_visit(const sample *s, const float *excess)
{
    float *cut = g_new0(float, s->visits->all->len + 1);
    for (uint32_t i = 0; i < s->count; i++)
        cut[s->index[i]] = s->factor != NULL ? (float)((double)excess[i] / s->factor[i]) : excess[i];
    return cut;
}

candidate candidate_of(const sample *s, const char *cause, explanation *e, double preference)
{
    candidate c = {.cause = cause,
                   .place = s->place,
                   .p = e->p,
                   .explained = e->explained,
                   .part = s->part,
                   .score = e->explained * s->part * preference,
                   .claim_ns = e->claim_ns,
                   .slow_ns = e->slow_ns,
                   .other_ns = e->other_ns,
                   .slow_logged_ns = e->slow_logged_ns,
                   .other_logged_ns = e->other_logged_ns,
                   .slow_count = e->slow_count,
                   .is_of_rest = e->is_of_rest,
                   .count = s->count,
                   .is_sampled = s->scale > 1,
                   .kind = s->kind,
                   .from_ns = s->visits->from_ns,
                   .to_ns = s->visits->to_ns,
                   .cut = excess_by_visit(s, e->excess)};
    c.is_evened_out = s->factor != NULL;
    if (c.is_evened_out) {
        c.claim_ns = 0;
        for (uint32_t i = 0; i < s->count; i++)
            c.claim_ns += (double)c.cut[s->index[i]] * s->weight[i] * s->scale;
    }
    g_free(e->excess);
    return c;
}
