#include "config.h"

#include <math.h>

#include "diag/queue_causes.h"
#include "diag/search.h"
#include "diag/tail_groups.h"
#include "diag/visitors.h"

#include <stdarg.h>
#include <string.h>

enum { ROUNDS_MAX = 6, RIVALS_MAX = 2 };

/* Two candidates stand for the same visits if their claims differ by at most this part of the larger claim. */
#define SAME_CLAIM 0.01

/* The limits of a finding's certainty (finding.sure). The calibration uses only a few hundred findings, which cannot
 * prove a certainty beyond these limits. */
#define SURE_MIN 0.02
#define SURE_MAX 0.98

/* The smallest probability by chance that confidence() distinguishes, and its negative decimal logarithm. */
#define CHANCE_MIN 1e-300
#define CHANCE_DIGITS_MAX 300

/*
 * A rival claims at least this part of the time that the finding claims, or at least FINDING_MIN of all time. A rival
 * with the same cause also has at least this part of the finding's score.
 */
#define RIVAL_NEAR 0.5

void finding_evidence(finding *f, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    g_ptr_array_add(f->evidence, g_strdup_vprintf(format, values));
    va_end(values);
}

static void finding_free(gpointer data)
{
    finding *x = data;
    g_free(x->answer);
    g_free(x->cut);
    g_ptr_array_free(x->evidence, TRUE);
    g_ptr_array_free(x->rivals, TRUE);
    g_array_free(x->others, TRUE);
    g_free(x);
}

void findings_note(findings *f, char *text)
{
    bool known = false;
    for (guint i = 0; i < f->tried->len && !known; i++)
        known = strcmp(g_ptr_array_index(f->tried, i), text) == 0;
    if (known)
        g_free(text);
    else
        g_ptr_array_add(f->tried, text);
}

finding *finding_new(const visits *v, const char *cause)
{
    finding *x = g_new0(finding, 1);
    x->cause = cause;
    x->place = VISIT_NONE;
    x->evidence = g_ptr_array_new_with_free_func(g_free);
    x->rivals = g_ptr_array_new_with_free_func(finding_free);
    x->others = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    x->from_ns = v->from_ns;
    x->to_ns = v->to_ns;
    return x;
}

finding *findings_add(findings *f, const char *cause)
{
    finding *x = finding_new(f->visits, cause);
    g_ptr_array_add(f->list, x);
    return x;
}

void findings_join(findings *f, finding *x, guint number)
{
    const finding *y = g_ptr_array_index(f->list, number);
    for (guint i = 0; i < f->visits->all->len; i++)
        x->cut[i] += y->cut[i];
    x->share += y->share;
    x->gain += y->gain;
    g_array_append_val(x->others, y->place);
    g_array_append_vals(x->others, y->others->data, y->others->len);
    g_ptr_array_remove_index(f->list, number);
}

void finding_add_rival(finding *x, finding *rival)
{
    rival->possible = rival->share;
    rival->share = rival->gain = 0;
    rival->rival_of = x;
    g_clear_pointer(&rival->cut, g_free);
    g_ptr_array_add(x->rivals, rival);
}

double finding_min(const finding *x)
{
    return x->is_joint ? JOINT_SHARE_MIN : FINDING_MIN;
}

bool finding_is_fault(const finding *x)
{
    return !x->is_ordinary && x->rival_of == NULL;
}

bool findings_have_fault(const findings *f)
{
    for (guint i = 0; i < f->list->len; i++)
        if (finding_is_fault(g_ptr_array_index(f->list, i)))
            return true;
    return false;
}

static void drop_rivals(search *s, uint32_t place)
{
    for (guint i = s->rivals->len; i-- > 0;)
        if (g_array_index(s->rivals, candidate, i).place == place)
            g_array_remove_index_fast(s->rivals, i);
}

static void examine(search *s, uint32_t number)
{
    candidate_clear(&s->best[number]);
    drop_rivals(s, number);
    s->dirty[number] = false;
    try_calls(s, number);
    try_branches(s, number);
    if (!place_is_examined(s->v, number))
        return;
    sample *x = sample_new(s->v, number, s->f->claimed);
    try_divisions(s, x);
    try_mechanisms(s, x);
    sample_free(x);
}

/* ---- findings ---- */

static const char *program_of(const search *s, uint32_t place)
{
    return place_at(s->v, place)->program;
}

/* Returns whether two places have a program in common. */
static bool places_share_program(const visits *v, uint32_t a, uint32_t b)
{
    const place *x = place_at(v, a), *y = place_at(v, b);
    return x->program == y->program || x->from_program == y->program || x->program == y->from_program ||
           (x->from_program == y->from_program && x->from_program != NULL);
}

bool finding_has_cause(const search *s, const finding *f, const candidate *c)
{
    if (strcmp(f->cause, c->cause) != 0)
        return false;
    if (f->host != c->host || f->process != c->process || f->is_ordinary != c->is_ordinary)
        return false;
    if (strcmp(c->cause, "pause") == 0 && !c->m.is_joint && (c->host == NULL || c->m.is_quota) &&
        program_of(s, f->place) != program_of(s, c->place))
        return false;
    if (f->is_quota != c->m.is_quota || f->is_joint != c->m.is_joint)
        return false;
    if (f->is_acknowledgement && c->m.acknowledgement && places_share_program(s->v, f->place, c->place))
        return true;
    if (c->column != NULL && f->column != NULL && c->column->name[0] != '@')
        return f->column == c->column && (isnan(f->value) || f->value == c->value);
    return strcmp(c->cause, "peer") == 0
               ? c->host != NULL
               : strcmp(c->cause, "pause") == 0 || strcmp(c->cause, "resource") == 0 || strcmp(c->cause, "cold") == 0 ||
                     strcmp(c->cause, "changed") == 0 || strcmp(c->cause, "hour") == 0 || f->place == c->place;
}

static void claim(search *s, finding *f, candidate *c)
{
    if (f->cut == NULL)
        f->cut = g_new0(float, s->v->all->len + 1);
    f->gain = MIN(1, f->gain + candidate_settle(c, s->v, s->f->claimed));
    for (guint i = 0; i < s->v->all->len; i++) {
        f->cut[i] += c->cut[i];
        s->f->claimed[i] += c->cut[i];
    }
    f->share = MIN(1, f->share + c->claim_ns / s->v->total_ns);
}

/*
 * Returns the candidate from which the search creates the next finding. If a host is slower than its peers, messages to
 * the host wait because the host's own work is slow. The function therefore prefers a span on the host to the messages,
 * unless the span claims at most a quarter of the messages' claim.
 */
static candidate *first_of_host(const search *s, candidate *largest)
{
    candidate *first = largest;
    if (strcmp(largest->cause, "peer") != 0 || place_at(s->v, largest->place)->kind != PLACE_EDGE)
        return largest;
    for (guint i = 0; i < s->v->places->len; i++) {
        candidate *c = &s->best[i];
        if (c->cause != NULL && strcmp(c->cause, "peer") == 0 && c->host == largest->host && c->host != NULL &&
            c->process == largest->process && place_at(s->v, i)->kind == PLACE_SPAN &&
            c->claim_ns > 0.25 * largest->claim_ns && (first == largest || c->claim_ns > first->claim_ns))
            first = c;
    }
    return first;
}

/* Returns a finding for a candidate. The finding claims no time yet. */
static finding *finding_of(const visits *v, const candidate *c)
{
    finding *f = finding_new(v, c->cause);
    f->place = c->place;
    f->host = c->host;
    f->process = c->process;
    f->column = c->column;
    f->branch = c->branch;
    f->value = c->value;
    f->explained = c->explained * c->part;
    f->chance = c->p;
    f->margin = 1;
    f->from_ns = c->from_ns;
    f->to_ns = c->to_ns;
    f->is_ordinary = c->is_ordinary;
    f->is_sometimes = c->m.is_sometimes;
    f->is_quota = c->m.is_quota;
    f->is_joint = c->m.is_joint;
    f->is_acknowledgement = c->m.acknowledgement;
    return f;
}

static int by_score(gconstpointer a, gconstpointer b)
{
    double x = ((const candidate *)a)->score, y = ((const candidate *)b)->score;
    return (x < y) - (x > y);
}

/*
 * Returns whether two candidates of a place claim the same excess for the same number of visits. The candidates are
 * then names of the same cause, such as a host and a field with the host's name.
 */
static bool is_other_name(const candidate *a, const candidate *b)
{
    return a->slow_count > 0 && a->slow_count == b->slow_count &&
           fabs(a->claim_ns - b->claim_ns) <= SAME_CLAIM * fmax(a->claim_ns, b->claim_ns);
}

/* Returns whether a finding, or one of its rivals, is the same explanation as a candidate. Two branches are always
 * different explanations, because both can be more frequent. */
static bool is_repetition(const finding *x, const candidate *c)
{
    if (x->branch != NULL && c->branch != NULL)
        return true;
    if (strcmp(x->cause, c->cause) == 0 && (x->host == c->host || c->host == NULL) &&
        (x->column == c->column || strcmp(x->cause, "peer") == 0))
        return true;
    for (guint i = 0; i < x->rivals->len; i++)
        if (is_repetition(g_ptr_array_index(x->rivals, i), c))
            return true;
    return false;
}

static void add_rival_of(search *s, finding *f, const candidate *c, double share)
{
    finding *rival = finding_of(s->v, c);
    rival->share = MIN(1, share);
    finding_describe(s, rival, c);
    if (rival->host == NULL)
        rival->host = place_only_host(s->v, place_at(s->v, c->place));
    finding_add_rival(f, rival);
}

static bool has_rival(const finding *f, const char *cause)
{
    for (guint i = 0; i < f->rivals->len; i++)
        if (strcmp(((const finding *)g_ptr_array_index(f->rivals, i))->cause, cause) == 0)
            return true;
    return false;
}

/*
 * Adds the other explanations of the finding's place that are significant and claim enough time, the best first.
 * Explanations with the same cause, such as two fields, usually have the same reason, so the function adds at most one
 * for each cause. The function does not add the load, which is a consequence of other causes.
 */
static void add_rivals(search *s, finding *f, const candidate *first)
{
    const double place_ns = FINDING_MIN * s->v->total_ns;
    g_array_sort(s->rivals, by_score);
    for (guint i = 0; i < s->rivals->len && f->margin >= 1; i++) {
        const candidate *c = &g_array_index(s->rivals, candidate, i);
        if (c->place == first->place && !is_other_name(c, first) && !is_repetition(f, c))
            f->margin = 1 - CLAMP(c->score / first->score, 0, 1);
    }
    for (guint i = 0; i < s->rivals->len && f->rivals->len < RIVALS_MAX; i++) {
        const candidate *c = &g_array_index(s->rivals, candidate, i);
        bool is_near = c->score >= RIVAL_NEAR * first->score || strcmp(c->cause, first->cause) != 0;
        if (c->place == first->place && is_near && c->claim_ns >= MIN(RIVAL_NEAR * first->claim_ns, place_ns) &&
            strcmp(c->cause, "load") != 0 && c->is_ordinary == first->is_ordinary && !has_rival(f, c->cause) &&
            !is_other_name(c, first) && !is_repetition(f, c))
            add_rival_of(s, f, c, f->share * c->claim_ns / MAX(first->claim_ns, 1));
    }
}

/*
 * A host that slows several places, or that pauses, also counts at a place that another cause explains better: one
 * cause for several places is more probable than a cause for each of them. The host's score is at least this part of
 * the best score.
 */
#define JOINT_MIN 0.33

/* Returns whether a rival has the cause of a finding, and explains its place well enough to be claimed by the finding.
 */
static bool joins_finding(const search *s, const finding *f, const candidate *rival)
{
    const candidate *best = &s->best[rival->place];
    return f->host != NULL && (strcmp(f->cause, "peer") == 0 || strcmp(f->cause, "pause") == 0) &&
           best->cause != NULL && !finding_has_cause(s, f, best) && finding_has_cause(s, f, rival) &&
           rival->score >= JOINT_MIN * best->score;
}

/* Returns the sum of the times that a candidate and the candidates of other places with the same cause claim, in
 * nanoseconds. */
static double claim_with_same_cause(const search *s, const candidate *c)
{
    const finding f = {.cause = c->cause,
                       .place = c->place,
                       .host = c->host,
                       .process = c->process,
                       .column = c->column,
                       .value = c->value,
                       .is_ordinary = c->is_ordinary,
                       .is_quota = c->m.is_quota,
                       .is_joint = c->m.is_joint,
                       .is_acknowledgement = c->m.acknowledgement};
    double sum = 0, *joined = g_new0(double, s->v->places->len + 1);
    for (guint i = 0; i < s->v->places->len; i++)
        if (s->best[i].cause != NULL && (i == c->place || finding_has_cause(s, &f, &s->best[i])))
            sum += s->best[i].claim_ns;
    for (guint i = 0; i < s->rivals->len && c->host != NULL; i++) {
        const candidate *rival = &g_array_index(s->rivals, candidate, i);
        if (rival->claim_ns > joined[rival->place] && joins_finding(s, &f, rival)) {
            sum += rival->claim_ns - joined[rival->place];
            joined[rival->place] = rival->claim_ns;
        }
    }
    g_free(joined);
    return sum;
}

/* Makes the rivals that join a finding the best candidates of their places, so that the finding can claim their time.
 */
static void prefer_joining_rivals(search *s, const finding *f)
{
    bool *joins = g_new0(bool, s->v->places->len + 1);
    for (guint i = 0; i < s->rivals->len; i++) {
        const candidate *rival = &g_array_index(s->rivals, candidate, i);
        joins[rival->place] = joins[rival->place] || joins_finding(s, f, rival);
    }
    s->only = f;
    for (guint i = 0; i < s->v->places->len; i++)
        if (joins[i] && i != f->place) {
            examine(s, i);
            s->dirty[i] = true;
        }
    s->only = NULL;
    g_free(joins);
}

/* Marks the places of the visits that have a cut, so that the search examines these places again. */
static void mark_places(search *s, const float *cut)
{
    for (guint i = 0; i < s->v->all->len; i++)
        if (cut[i] > 0)
            s->dirty[place_of_visit(s->v, visit_at(s->v, i))] = true;
}

/* A branch claims a part of each call on a host or in a time range, so the calls elsewhere seem to take longer. The
 * search therefore does not compare the hosts or the times at the places of these calls again. */
static void exclude_opposites(search *s, const candidate *c)
{
    static const char *const of_times[] = {"cold", "changed", "load"};
    bool *has_cut = g_new0(bool, s->v->places->len + 1);
    for (guint i = 0; i < s->v->all->len; i++)
        if (c->cut[i] > 0)
            has_cut[place_of_visit(s->v, visit_at(s->v, i))] = true;
    for (guint i = 0; i < s->v->places->len; i++)
        for (size_t k = 0; k < (c->branch->host != NULL ? 1 : G_N_ELEMENTS(of_times)) && has_cut[i]; k++) {
            const exclusion e = {.place = i, .cause = c->branch->host != NULL ? "peer" : of_times[k]};
            g_array_append_val(s->excluded, e);
        }
    g_free(has_cut);
}

/*
 * If visits wait in a queue, the spans that contain these visits also end one at a time, without a second queue. The
 * search therefore does not offer queues at a place if at least a tenth of its spans contain visits that wait. A
 * finding that is too small to be reported excludes nothing.
 */
static void exclude_queues_around(search *s, const finding *f)
{
    static const char *const queues[] = {"lock", "pool"};
    enum { DEPTH_MAX = 64, AROUND_PART = 10 };
    if (f->share < finding_min(f) || (strcmp(f->cause, "lock") != 0 && strcmp(f->cause, "pool") != 0))
        return;
    bool *is_around = g_new0(bool, s->v->all->len + 1);
    uint32_t *around = g_new0(uint32_t, s->v->places->len + 1), *count = g_new0(uint32_t, s->v->places->len + 1);
    for (guint i = 0; i < s->v->all->len; i++) {
        uint32_t at = f->cut[i] > 0 ? visit_at(s->v, i)->parent : VISIT_NONE;
        for (int depth = 0; at != VISIT_NONE && depth < DEPTH_MAX; depth++) {
            is_around[at] = true;
            at = visit_at(s->v, at)->parent;
        }
    }
    for (guint i = 0; i < s->v->all->len; i++) {
        const uint32_t place = place_of_visit(s->v, visit_at(s->v, i));
        around[place] += is_around[i];
        count[place]++;
    }
    for (guint i = 0; i < s->v->places->len; i++)
        for (size_t k = 0;
             k < G_N_ELEMENTS(queues) && around[i] > 0 && AROUND_PART * around[i] >= count[i] && !finding_is_at(f, i);
             k++) {
            const exclusion e = {.place = i, .cause = queues[k]};
            g_array_append_val(s->excluded, e);
            s->dirty[i] = true;
        }
    g_free(is_around);
    g_free(around);
    g_free(count);
}

/* Returns whether other effects at the places of a finding may be its consequences. A pause only adds its length, and
 * ordinary work only adds its time. */
static bool is_consequential(const finding *f)
{
    return strcmp(f->cause, "pause") != 0 && !f->is_ordinary;
}

/*
 * Creates a finding from the candidate with the largest claim. Returns false if no cause claims at least 3 % of the
 * time.
 */
static bool take_best(search *s)
{
    candidate *best = NULL;
    double largest_ns = 0;
    for (guint i = 0; i < s->v->places->len; i++) {
        if (s->best[i].cause == NULL)
            continue;
        double claim_ns = claim_with_same_cause(s, &s->best[i]);
        if (best == NULL || claim_ns > largest_ns || (claim_ns >= largest_ns && s->best[i].claim_ns > best->claim_ns)) {
            best = &s->best[i];
            largest_ns = claim_ns;
        }
    }
    if (best == NULL || largest_ns < 0.03 * s->v->total_ns)
        return false;
    best = queue_find_failures(s, first_of_host(s, best));
    float *saved = NULL;
    candidate *waiting = best, queue = *best;
    queue.cut = NULL;
    bool is_slow_server = queue_find_slow_service(s, best);
    if (!is_slow_server)
        best = queue_find_server(s, best, &saved);
    if (saved != NULL) {
        g_free(waiting->cut);
        waiting->cut = saved;
    }
    finding *f = finding_of(s->v, best);
    g_ptr_array_add(s->f->list, f);
    candidate first = *best;
    first.cut = NULL;
    uint32_t main = best->place;
    prefer_joining_rivals(s, f);
    for (guint i = 0; i < s->v->places->len; i++) {
        candidate *c = &s->best[i];
        if (c->cause == NULL || (i != main && !(saved != NULL && c == waiting) && !finding_has_cause(s, f, c)))
            continue;
        claim(s, f, c);
        if (i != main)
            g_array_append_val(f->others, i);
        s->dirty[i] = true;
        s->has_finding[i] = s->has_finding[i] || is_consequential(f);
        if (!is_consequential(f)) { /* the time that the finding does not claim is no evidence for the same cause */
            const exclusion e = {.place = i,
                                 .cause = f->cause,
                                 .has_host = true,
                                 .host = c->host,
                                 .process = c->process,
                                 .column = c->column};
            g_array_append_val(s->excluded, e);
        }
        if (c->uneven_host != NULL || c->branch != NULL) { /* the finding claims only some of the visits with the slow
                                                              values; the other visits are ordinary */
            const exclusion e = {.place = i, .cause = f->cause, .column = c->column, .branch = c->branch};
            g_array_append_val(s->excluded, e);
        }
        if (c->branch != NULL && f->share >= finding_min(f)) /* search_again removes smaller findings */
            exclude_opposites(s, c);
        if (c->is_tree)
            mark_places(s, c->cut);
        candidate_clear(c);
    }
    /* the host is slower than its peers only because it receives more requests */
    if (strcmp(f->cause, "balance") == 0 && first.m.is_host_fast) {
        const exclusion e = {.place = main, .cause = "peer"};
        g_array_append_val(s->excluded, e);
    }
    exclude_queues_around(s, f);
    finding_describe(s, f, &first);
    if (f->host == NULL)
        f->host = place_only_host(s->v, place_at(s->v, main));
    if (saved != NULL || is_slow_server)
        add_rival_of(s, f, &queue, queue.claim_ns / s->v->total_ns);
    add_rivals(s, f, &first);
    return true;
}

/* Adds the time that a finding claims, or removes it if `sign` is -1. */
static void change_claims(findings *f, const finding *x, int sign)
{
    for (guint n = 0; n < f->visits->all->len; n++)
        f->claimed[n] += (float)sign * x->cut[n];
}

/* Returns whether two findings name the same host or process. Logs of one program may name no host. */
static bool is_same_peer(const finding *x, const finding *y)
{
    return x->host != NULL && x->host == y->host && x->process == y->process &&
           (*x->host != '\0' || x->process != NULL);
}

/* Returns the fault with the largest share that is on the host of a small finding or at one of its places, or NULL. */
static finding *find_related(const findings *f, const finding *small)
{
    finding *related = NULL;
    for (guint i = 0; i < f->list->len; i++) {
        finding *x = g_ptr_array_index(f->list, i);
        bool is_related = is_same_peer(small, x);
        for (guint n = 0; n <= small->others->len && !is_related; n++)
            is_related = finding_is_at(x, n == 0 ? small->place : g_array_index(small->others, uint32_t, n - 1));
        if (x != small && x->share >= finding_min(x) && finding_is_fault(x) && is_related &&
            !has_rival(x, small->cause) && strcmp(x->cause, small->cause) != 0 &&
            (related == NULL || x->share > related->share))
            related = x;
    }
    return related;
}

void findings_drop_small(findings *f)
{
    for (guint i = f->list->len; i-- > 0;) {
        finding *x = g_ptr_array_index(f->list, i), *related;
        if (x->share >= finding_min(x) || x->cut == NULL || x->confirmed)
            continue;
        findings_note(f, g_strdup_printf("too small to report: %s", x->answer));
        change_claims(f, x, -1);
        related = x->is_ordinary ? NULL : find_related(f, x);
        if (related != NULL) {
            g_ptr_array_steal_index(f->list, i);
            finding_add_rival(related, x);
        } else {
            g_ptr_array_remove_index(f->list, i);
        }
    }
}

static void examine_changed(search *s)
{
    for (guint i = 0; i < s->v->places->len; i++)
        if (s->dirty[i])
            examine(s, i);
}

bool finding_is_at(const finding *x, uint32_t place)
{
    bool found = x->place == place;
    for (guint i = 0; i < x->others->len && !found; i++)
        found = g_array_index(x->others, uint32_t, i) == place;
    return found;
}

/*
 * Marks the places of a finding that was added to the list or removed from it, so that the search examines these places
 * again.
 */
static void touch_places(search *s, const finding *x)
{
    mark_places(s, x->cut);
    for (guint i = 0; i < s->v->places->len; i++) {
        if (!finding_is_at(x, i))
            continue;
        s->dirty[i] = true;
        s->has_finding[i] = false;
        for (guint n = 0; n < s->f->list->len; n++)
            s->has_finding[i] = s->has_finding[i] || (is_consequential(g_ptr_array_index(s->f->list, n)) &&
                                                      finding_is_at(g_ptr_array_index(s->f->list, n), i));
    }
}

static void exclude_cause(search *s, const finding *x)
{
    for (guint i = 0; i <= x->others->len; i++) {
        const exclusion e = {.place = i == 0 ? x->place : g_array_index(x->others, uint32_t, i - 1), .cause = x->cause};
        g_array_append_val(s->excluded, e);
    }
}

/* Searches the places of each small finding again without its cause, which may hide a larger cause. A larger cause
 * replaces the small finding, which becomes a rival if both are at the same place. */
static void search_again(search *s)
{
    findings *f = s->f;
    for (guint i = f->list->len; i-- > 0;) {
        finding *small = g_ptr_array_index(f->list, i), *larger = NULL;
        if (small->share >= finding_min(small))
            continue;
        g_ptr_array_steal_index(f->list, i);
        change_claims(f, small, -1);
        touch_places(s, small);
        exclude_cause(s, small);
        examine_changed(s);
        if (take_best(s)) {
            larger = g_ptr_array_steal_index(f->list, f->list->len - 1);
            if (larger->share < finding_min(larger)) {
                change_claims(f, larger, -1);
                touch_places(s, larger);
                g_clear_pointer(&larger, finding_free);
            }
        }
        if (larger == NULL)
            change_claims(f, small, 1);
        else if (finding_is_at(larger, small->place))
            finding_add_rival(larger, small);
        else
            finding_free(small);
        g_ptr_array_insert(f->list, (gint)i, larger != NULL ? larger : small);
        touch_places(s, g_ptr_array_index(f->list, i));
    }
}

/*
 * Returns the certainty of a finding: the probability that the finding is right. The coefficients come from a logistic
 * regression (tests/diagnosis/calibrate.py) of 452 findings in 417 logs of 23 simulated systems. The causes form
 * groups, because findings with different causes are not equally often right. Causes in DISTINCT resemble few other
 * causes. An uneven distribution of the requests and the size of the work (DEMAND) may be consequences of another
 * cause. Requests that wait for another reason often look like a queue (lock or pool); a larger likelihood ratio in
 * favor of the queue makes this error less probable. The load is a consequence of many causes. A finding that does not
 * have the largest claim is often a consequence of another finding.
 */
static double confidence(const finding *f, bool is_largest)
{
    enum { RESEMBLED, DISTINCT, DEMAND, QUEUE, LOAD, CONNECTIONS };
    static const double of_group[] = {[RESEMBLED] = -0.06, [DISTINCT] = 2.00, [DEMAND] = -0.27,
                                      [QUEUE] = -3.17,     [LOAD] = -2.26,    [CONNECTIONS] = -0.79};
    static const struct {
        const char *cause;
        int group;
    } groups[] = {{"calls", DISTINCT}, {"cold", DISTINCT}, {"hour", DISTINCT}, {"balance", DEMAND},
                  {"size", DEMAND},    {"lock", QUEUE},    {"pool", QUEUE},    {"load", LOAD}};
    int group = RESEMBLED;
    for (size_t i = 0; i < G_N_ELEMENTS(groups); i++)
        if (strcmp(groups[i].cause, f->cause) == 0)
            group = groups[i].group;
    if (f->of_connections)
        group = CONNECTIONS;
    double evidence = group == QUEUE ? log(CLAMP(-log10(fmax(f->chance, CHANCE_MIN)), 1, CHANCE_DIGITS_MAX)) : 0;
    double logit = of_group[group] + 1.64 * is_largest + 0.11 * log(fmax(f->share, 0.01)) +
                   0.19 * CLAMP(f->explained, 0, 1) + 0.24 * f->margin + 0.60 * evidence;
    return CLAMP(1 / (1 + exp(-logit)), SURE_MIN, SURE_MAX);
}

/* Joins the findings about pauses of one program, on one host or on several hosts. */
static void join_pauses(findings *f)
{
    const visits *v = f->visits;
    for (guint i = 0; i < f->list->len; i++) {
        finding *x = g_ptr_array_index(f->list, i);
        const char *program = x->place != VISIT_NONE ? place_at(v, x->place)->program : NULL;
        GHashTable *hosts = g_hash_table_new(NULL, NULL);
        g_hash_table_add(hosts, (gpointer)x->host);
        bool joined = false;
        for (guint n = f->list->len; n-- > i + 1;) {
            const finding *y = g_ptr_array_index(f->list, n);
            if (strcmp(x->cause, "pause") != 0 || strcmp(y->cause, "pause") != 0 || x->is_quota || y->is_quota ||
                x->is_joint || y->is_joint || place_at(v, y->place)->program != program)
                continue;
            g_hash_table_add(hosts, (gpointer)y->host);
            x->process = x->process == y->process ? x->process : NULL;
            findings_join(f, x, n);
            joined = true;
        }
        guint host_count = g_hash_table_size(hosts);
        g_hash_table_destroy(hosts);
        if (!joined)
            continue;
        for (guint n = x->rivals->len; n-- > 0;)
            if (strcmp(((const finding *)g_ptr_array_index(x->rivals, n))->cause, "pause") == 0)
                g_ptr_array_remove_index(x->rivals, n);
        x->host = host_count > 1 ? NULL : x->host;
        char *part = text_share(x->share), *what = text_program(v, place_at(v, x->place), x->process, x->host);
        g_free(x->answer);
        x->answer = host_count > 1 ? g_strdup_printf("%s of the requests' time: %s stops now and then on %u hosts",
                                                     part, what, host_count)
                                   : g_strdup_printf("%s of the requests' time: %s stops now and then", part, what);
        g_free(what);
        g_free(part);
    }
}

static void search_places(findings *f)
{
    const visits *v = f->visits;
    search s = {f,
                v,
                find_pauses(v),
                find_branches(v),
                g_new0(candidate, v->places->len + 1),
                g_array_new(FALSE, FALSE, sizeof(candidate)),
                g_array_new(FALSE, FALSE, sizeof(exclusion)),
                g_new0(bool, v->places->len + 1),
                g_new0(bool, v->places->len + 1),
                g_new0(double, v->places->len + 1),
                search_count_tests(v),
                NULL,
                NULL};
    find_quotas(v, s.pauses);
    for (guint i = 0; i < f->list->len; i++)
        touch_places(&s, g_ptr_array_index(f->list, i));
    memset(s.dirty, true, v->places->len);
    for (int faults = 0, ordinary = 0; faults < ROUNDS_MAX && ordinary < ROUNDS_MAX;) {
        examine_changed(&s);
        if (!take_best(&s))
            break;
        *(((const finding *)g_ptr_array_index(f->list, f->list->len - 1))->is_ordinary ? &ordinary : &faults) += 1;
    }
    join_pauses(f);
    search_again(&s);
    for (guint i = 0; i < v->places->len; i++)
        candidate_clear(&s.best[i]);
    for (guint i = 0; i < s.pauses->len; i++)
        g_free(g_array_index(s.pauses, pause_result, i).m.waits);
    g_array_free(s.pauses, TRUE);
    g_array_free(s.branches, TRUE);
    g_array_free(s.rivals, TRUE);
    g_array_free(s.excluded, TRUE);
    g_free(s.best);
    g_free(s.dirty);
    g_free(s.has_finding);
    g_free(s.doubtful_ns);
}

/* Sets the certainty of all findings or, if `only_connections` is true, of the findings about connections. Ignores
 * ordinary work in the search for the largest finding, because ordinary work does not make a fault less certain. */
static void judge_confidence(findings *f, bool only_connections)
{
    double largest = 0;
    for (guint i = 0; i < f->list->len; i++) {
        const finding *x = g_ptr_array_index(f->list, i);
        largest = fmax(largest, finding_is_fault(x) ? x->share : 0);
    }
    for (guint i = 0; i < f->list->len; i++) {
        finding *x = g_ptr_array_index(f->list, i);
        if (!only_connections || x->of_connections)
            x->sure = confidence(x, x->share >= largest);
    }
}

/* In the answers about spans, names the part of the span that contains the time. Ignores pauses, which stop a span in
 * any part. */
static void name_parts(findings *f)
{
    for (guint i = 0; i < f->list->len; i++) {
        finding *x = g_ptr_array_index(f->list, i);
        const char *from, *to;
        if (x->cut == NULL || x->place == VISIT_NONE || x->of_connections || strcmp(x->cause, "pause") == 0 ||
            !span_parts_find(f->visits, x->place, x->cut, &from, &to))
            continue;
        char *answer = g_strdup_printf("%s; this time is between %s and %s", x->answer, from, to);
        g_free(x->answer);
        x->answer = answer;
    }
}

findings *findings_find(const visits *v)
{
    findings *f = g_new0(findings, 1);
    f->visits = v;
    f->list = g_ptr_array_new_with_free_func(finding_free);
    f->tried = g_ptr_array_new_with_free_func(g_free);
    f->claimed = g_new0(float, v->all->len + 1);
    if (v->requests->len == 0 || v->total_ns <= 0 || visits_overlap(v))
        return f;
    find_losses(f);
    search_places(f);
    find_tail_groups(f);
    judge_confidence(f, false);
    find_limits(f);
    find_visitors(f);
    judge_confidence(f, true);
    find_failures(f);
    name_parts(f);
    return f;
}

void findings_free(findings *f)
{
    g_ptr_array_free(f->list, TRUE);
    g_ptr_array_free(f->tried, TRUE);
    g_free(f->claimed);
    g_free(f->cannot_tell);
    g_free(f);
}
