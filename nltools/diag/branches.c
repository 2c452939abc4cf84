#include "config.h"

#include <math.h>

#include "diag/branches.h"
#include "diag/search.h"

/* Minimum ratio of the shares of visits that take a branch. */
#define RATIO_MIN 1.3

/* A field that describes the requested work explains the difference between two shares, unless visits with equal values
 * of the field still have at least this part of the difference. */
#define OWN_PART_MIN 0.5

/* A call belongs to a branch if the other visits make it at most this part as often. */
#define EXCLUSIVE_MAX 0.1

/* "Nearly all": minimum part of the visits that satisfies a condition of amount_explains or is_work. */
#define KNOWN_MIN 0.9

/* Maximum probability that chance alone causes a branch. The search also compares the probability with its own
 * level. */
#define CHANCE_MAX 1e-4

enum {
    TIME_PARTS = 24,
    VISITS_MIN = 60,
    TAKEN_MIN = 10, /* minimum number of visits that take a branch, and minimum number of the other visits */
    SHARES_MAX = COLUMN_TEXTS_MAX + 1
};

/* The visits of a place, and whether they take the branch. If the visits of a span form two places
 * (place.has_only_served), contains the visits of both places. */
typedef struct branching {
    const visits *v;
    uint32_t count;
    uint32_t *index;  /* indices of the visits, in the order of time */
    float *taken;     /* how often each visit takes the branch */
    float *score;     /* the rank of this number if visits take the branch several times, and otherwise the number */
    bool is_repeated; /* a visit takes the branch several times */
    double effective; /* number of requests divided by the number of visits */
    bool is_divided;  /* the visits belong to two places */
    bool by_callers;  /* the hosts are the callers' hosts or, if a field names servers, the records' hosts */
} branching;

/* The number of visits, how often they take the branch, the sum of their scores, and the sum of the squares of the
 * scores, which only count_all sets. */
typedef struct branch_counts {
    double all, taken, score, squares;
} branch_counts;

/* ---- visits of a place ---- */

/* If a place contains only those visits of a span that name a server, returns the place of the span's other visits.
 * Otherwise, returns VISIT_NONE. */
static uint32_t place_without_server(const visits *v, uint32_t number)
{
    const place *p = place_at(v, number);
    for (guint i = 0; i < v->places->len && p->has_only_served; i++) {
        const place *o = place_at(v, i);
        if (o->kind == PLACE_SPAN && !o->has_only_served && o->span == p->span && o->program == p->program)
            return i;
    }
    return VISIT_NONE;
}

/* Gathers the visits of a place that did not fail. If `of` is a column with the results of a cache, gathers only visits
 * with a result, and marks the misses. */
static branching branching_new(const visits *v, uint32_t number, const column *of)
{
    const uint32_t places[] = {number, place_without_server(v, number)};
    branching b = {.v = v, .is_divided = places[1] != VISIT_NONE, .by_callers = places[1] != VISIT_NONE};
    uint32_t all = 0, position[2] = {0}, requests = 0;
    uint8_t *seen = g_new0(uint8_t, v->requests->len / 8 + 1); /* a bit for each request */
    for (int k = 0; k < 1 + b.is_divided; k++) {
        position[k] = place_at(v, places[k])->first;
        all += place_at(v, places[k])->count;
    }
    b.index = g_new(uint32_t, all + 1);
    b.taken = g_new0(float, all + 1);
    b.score = g_new0(float, all + 1);
    for (uint32_t n = 0; n < all; n++) {
        bool has[2] = {false, false};
        for (int k = 0; k < 1 + b.is_divided; k++)
            has[k] = position[k] < place_at(v, places[k])->first + place_at(v, places[k])->count;
        int k = !has[0] || (has[1] && visit_at(v, v->by_place[position[1]])->from_ns <
                                          visit_at(v, v->by_place[position[0]])->from_ns);
        uint32_t index = v->by_place[position[k]++];
        const visit *x = visit_at(v, index);
        float result = of != NULL ? column_get(of->of_visits, index) : 0;
        if (x->failed || request_at(v, x->request)->failed || !isfinite(result))
            continue;
        requests += !(seen[x->request / 8] >> x->request % 8 & 1);
        seen[x->request / 8] |= (uint8_t)(1 << x->request % 8);
        b.taken[b.count] = b.score[b.count] = of != NULL && !column_is_hit(of, result);
        b.index[b.count++] = index;
    }
    g_free(seen);
    b.effective = b.count > 0 ? (double)requests / b.count : 1;
    return b;
}

static void branching_free(branching *b)
{
    g_free(b->index);
    g_free(b->taken);
    g_free(b->score);
}

/* Returns the host of a visit that may take the branch more often: the caller's host if the server is known only for a
 * part of the visits. */
static const char *host_of(const branching *b, uint32_t i)
{
    const site *at = site_at(b->v, visit_at(b->v, b->index[i])->site);
    return b->by_callers && *at->from_host != '\0' ? at->from_host : at->host;
}

/* The calls of a visit: their number, and the end of the latest call. */
typedef struct caller {
    uint32_t calls;
    int64_t to_ns;
} caller;

/* Replaces the numbers of calls by their ranks. Equal numbers have their mean rank. */
static void rank_calls(branching *b)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < b->count; i++)
        largest = MAX(largest, (uint32_t)b->taken[i]);
    uint32_t *counts = g_new0(uint32_t, (size_t)largest + 1);
    float *ranks = g_new(float, (size_t)largest + 1);
    for (uint32_t i = 0; i < b->count; i++)
        counts[(uint32_t)b->taken[i]]++;
    for (uint32_t n = 0, before = 0; n <= largest; before += counts[n++])
        ranks[n] = (float)before + (float)(counts[n] + 1) / 2;
    for (uint32_t i = 0; i < b->count; i++)
        b->score[i] = ranks[(uint32_t)b->taken[i]];
    g_free(counts);
    g_free(ranks);
}

/*
 * Counts the calls that each visit makes to the place `child`. A call that begins while another call of the visit is in
 * progress does not count, because the visit waits only for the longest call. `callers` has an element for each visit
 * of the log, all 0.
 */
static void count_callers(branching *b, uint32_t child, caller *callers)
{
    const visits *v = b->v;
    const place *p = place_at(v, child);
    for (uint32_t n = p->first; n < p->first + p->count; n++) {
        const visit *x = visit_at(v, v->by_place[n]);
        if (x->parent == VISIT_NONE)
            continue;
        caller *of = &callers[x->parent];
        bool is_first = of->calls == 0;
        of->calls += is_first || x->from_ns >= of->to_ns;
        of->to_ns = is_first ? x->to_ns : MAX(of->to_ns, x->to_ns);
    }
    b->is_repeated = false;
    for (uint32_t i = 0; i < b->count; i++) {
        b->taken[i] = b->score[i] = (float)callers[b->index[i]].calls;
        b->is_repeated = b->is_repeated || b->taken[i] > 1;
    }
    if (b->is_repeated)
        rank_calls(b);
    for (uint32_t n = p->first; n < p->first + p->count; n++) {
        uint32_t parent = visit_at(v, v->by_place[n])->parent;
        if (parent != VISIT_NONE)
            callers[parent] = (caller){0, 0};
    }
}

/* ---- different shares ---- */

/*
 * Returns the probability that a part of the visits has at least this share by chance, or 1 if the share is not much
 * larger than elsewhere. If visits take the branch several times, uses the test of Wilcoxon, Mann and Whitney with the
 * variance for equal ranks; otherwise, uses Fisher's exact test.
 */
static double chance_of_share(const branching *b, branch_counts here, branch_counts all)
{
    branch_counts rest = {all.all - here.all, all.taken - here.taken, 0, 0};
    if (here.all < TAKEN_MIN || rest.all < TAKEN_MIN || here.taken < TAKEN_MIN ||
        here.taken * rest.all < RATIO_MIN * rest.taken * here.all)
        return 1;
    double e = b->effective, mean = all.score / all.all;
    if (b->is_repeated)
        return normal_tail(
            (here.score - here.all * mean) * sqrt(e) /
            sqrt(fmax(0, all.squares - all.all * mean * mean) / all.all * here.all * rest.all / (all.all - 1)));
    return hypergeometric_tail(ceil(e * all.all), ceil(e * all.taken), ceil(e * here.all), floor(e * here.taken));
}

/* Returns whether a visit is in the part of the visits where the branch is more frequent. */
static bool is_here(const branching *b, const branch *of, uint32_t i)
{
    const visit *x = visit_at(b->v, b->index[i]);
    return of->host != NULL ? host_of(b, i) == of->host : x->from_ns >= of->from_ns && x->from_ns <= of->to_ns;
}

/* Returns whether a difference of the requested work explains the larger share: the visits here take the branch as
 * often as the visits elsewhere in the same groups. `groups` has a number below SHARES_MAX for each visit. */
static bool groups_explain(const branching *b, const branch *of, const uint32_t *groups)
{
    double here[SHARES_MAX] = {0}, expected = 0, all = 0;
    branch_counts rest[SHARES_MAX] = {{0, 0, 0, 0}};
    for (uint32_t i = 0; i < b->count; i++) {
        if (is_here(b, of, i)) {
            here[groups[i]]++;
            continue;
        }
        rest[groups[i]].all++;
        rest[groups[i]].taken += (double)b->taken[i];
    }
    for (int g = 0; g < SHARES_MAX; g++) {
        expected += here[g] * (rest[g].all > 0 ? rest[g].taken / rest[g].all : of->other);
        all += here[g];
    }
    return of->share - expected / fmax(all, 1) < OWN_PART_MIN * (of->share - of->other);
}

/* Returns whether the visits here take the branch more often in proportion to a number, which is an amount of work. */
static bool amount_explains(const branching *b, const branch *of, const float *values)
{
    double sums[2] = {0}, counts[2] = {0};
    for (uint32_t i = 0; i < b->count; i++)
        if (isfinite(values[i])) {
            sums[is_here(b, of, i)] += (double)values[i];
            counts[is_here(b, of, i)]++;
        }
    if (counts[0] < KNOWN_MIN * (b->count - counts[1]) || sums[0] <= 0)
        return false;
    double expected = of->other * sums[1] / fmax(counts[1], 1) / (sums[0] / counts[0]);
    return of->share - expected < OWN_PART_MIN * (of->share - of->other);
}

/*
 * Returns whether a column of numbers describes the requested work. Nearly all visits must have a value. The value must
 * be known when the visit begins, or be an amount of work. A later value that equals the number of calls only counts
 * the calls, and describes no work.
 */
static bool is_work(const branching *b, const column *c, const float *values)
{
    uint32_t known = 0, early = 0, equal = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        known += isfinite(values[i]);
        early += column_is_at_begin(c, b->v, b->index[i]);
        equal += values[i] == b->taken[i];
    }
    return known >= KNOWN_MIN * b->count &&
           (early >= KNOWN_MIN * b->count ||
            (column_meaning(c) == NUMBER_WORK && !(b->is_repeated && equal >= KNOWN_MIN * b->count)));
}

/* Returns whether a field explains the larger share. Uses `groups`, which has an element for each visit. */
static bool column_explains(const branching *b, const branch *of, const column *c, uint32_t *groups)
{
    if (c->closed || c->name[0] == '@' || column_is_of_cache(c) || column_is_result(c) || column_names_server(c) ||
        column_names_host(c) || (!c->has_text && column_meaning(c) == NUMBER_CONTENTION))
        return false;
    float *values = g_new(float, b->count + 1);
    uint8_t *bins = g_new(uint8_t, b->count + 1);
    for (uint32_t i = 0; i < b->count; i++)
        values[i] = column_of_visit(c, b->v, b->index[i]);
    if (!c->has_text)
        sample_quantize(values, b->count, bins);
    for (uint32_t i = 0; i < b->count; i++)
        groups[i] = !isfinite(values[i]) ? COLUMN_TEXTS_MAX : c->has_text ? (uint32_t)values[i] : bins[i];
    bool explains = (c->has_text || is_work(b, c, values)) &&
                    (groups_explain(b, of, groups) ||
                     (!c->has_text && column_meaning(c) == NUMBER_WORK && amount_explains(b, of, values)));
    g_free(values);
    g_free(bins);
    return explains;
}

/* Returns whether a field, or the place from which the visits are called, explains the larger share. */
static bool work_explains(const branching *b, const branch *of)
{
    const visits *v = b->v;
    uint32_t *groups = g_new(uint32_t, b->count + 1);
    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t parent = visit_at(v, b->index[i])->parent;
        groups[i] = parent == VISIT_NONE ? 0 : 1 + place_of_visit(v, visit_at(v, parent)) % (SHARES_MAX - 1);
    }
    bool explains = groups_explain(b, of, groups);
    for (uint32_t n = 0; n < v->columns->count && !explains; n++)
        explains = column_explains(b, of, &v->columns->all[n], groups);
    g_free(groups);
    return explains;
}

static void set_shares(const branching *b, branch *of, branch_counts here, branch_counts all)
{
    of->share = here.taken / here.all;
    of->is_repeated = b->is_repeated;
    of->other = (all.taken - here.taken) / (all.all - here.all);
}

/* The visits on a host. */
typedef struct branch_host {
    const char *host;
    branch_counts counts;
} branch_host;

/* Counts the visits on each host (elements are branch_host), in the order of the hosts' first visits. */
static GArray *count_hosts(const branching *b)
{
    GHashTable *numbers = g_hash_table_new(NULL, NULL); /* maps a host to its number + 1 */
    GArray *hosts = g_array_new(FALSE, TRUE, sizeof(branch_host));
    for (uint32_t i = 0; i < b->count; i++) {
        const char *host = host_of(b, i);
        guint number = GPOINTER_TO_UINT(g_hash_table_lookup(numbers, host));
        if (number == 0) {
            branch_host fresh = {host, {0, 0, 0, 0}};
            g_array_append_val(hosts, fresh);
            number = hosts->len;
            g_hash_table_insert(numbers, (gpointer)host, GUINT_TO_POINTER(number));
        }
        branch_counts *of = &g_array_index(hosts, branch_host, number - 1).counts;
        of->all++;
        of->taken += (double)b->taken[i];
        of->score += (double)b->score[i];
    }
    g_hash_table_destroy(numbers);
    return hosts;
}

/* Replaces `best` if the share on one host is less probable by chance. In a large log, the probabilities of several
 * hosts may be 0; the host with the largest excess is then the least probable. */
static void compare_hosts(const branching *b, branch_counts all, branch *best)
{
    GArray *hosts = count_hosts(b);
    double largest = 0;
    for (guint i = 0; i < hosts->len; i++) {
        const branch_host *h = &g_array_index(hosts, branch_host, i);
        const double p = hosts->len * chance_of_share(b, h->counts, all),
                     excess = h->counts.score - all.score * h->counts.all / all.all;
        if (p > best->p || p >= 1 || (p == best->p && excess <= largest))
            continue;
        largest = excess;
        best->p = p;
        best->host = h->host;
        best->is_caller = b->by_callers;
        set_shares(b, best, h->counts, all);
    }
    g_array_free(hosts, TRUE);
}

static uint32_t first_of_part(const branching *b, int part)
{
    return (uint32_t)((uint64_t)part * b->count / TIME_PARTS);
}

/* Replaces `best` if the share in a time range is less probable by chance. */
static void compare_times(const branching *b, branch_counts all, branch *best)
{
    branch_counts times[TIME_PARTS] = {{0, 0, 0, 0}}, chosen = {0};
    double largest = 0;
    int first = 0, last = 0;
    for (int t = 0; t < TIME_PARTS; t++)
        for (uint32_t i = first_of_part(b, t); i < first_of_part(b, t + 1); i++) {
            times[t].all++;
            times[t].taken += (double)b->taken[i];
            times[t].score += (double)b->score[i];
        }
    for (int from = 0; from < TIME_PARTS; from++) {
        branch_counts here = {0};
        for (int to = from; to < TIME_PARTS; to++) {
            here.all += times[to].all;
            here.taken += times[to].taken;
            here.score += times[to].score;
            double rest = all.all - here.all, more = here.score * all.all - all.score * here.all,
                   between = rest > 0 && here.all > 0 && more > 0 ? more * more / (here.all * rest) : 0;
            if (between > largest) {
                largest = between;
                chosen = here;
                first = from;
                last = to;
            }
        }
    }
    double p = TIME_PARTS * (TIME_PARTS + 1) / 2.0 * chance_of_share(b, chosen, all);
    if (p >= best->p)
        return;
    best->p = p;
    best->host = NULL;
    best->from_ns = visit_at(b->v, b->index[first_of_part(b, first)])->from_ns;
    best->to_ns = visit_at(b->v, b->index[first_of_part(b, last + 1) - 1])->from_ns;
    set_shares(b, best, chosen, all);
}

static branch_counts count_all(const branching *b)
{
    branch_counts all = {b->count, 0, 0, 0};
    for (uint32_t i = 0; i < b->count; i++) {
        all.taken += (double)b->taken[i];
        all.score += (double)b->score[i];
        all.squares += (double)b->score[i] * (double)b->score[i];
    }
    return all;
}

static void remove_host(branching *b, const char *host)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->count; i++)
        if (host_of(b, i) != host) {
            b->index[kept] = b->index[i];
            b->taken[kept] = b->taken[i];
            b->score[kept++] = b->score[i];
        }
    b->count = kept;
}

/*
 * Finds where visits take a branch more often: in one time range or on some hosts. After finding a host, removes it and
 * compares the next host only with the remaining hosts. `of` is the branch, and `tests` is the number of branches that
 * the search tries at the place. Adds the results to `found`.
 */
static void find_branch(branching *b, uint32_t tests, const branch *of, GArray *found)
{
    const bool has_servers = place_at(b->v, of->place)->server_field != NULL && !b->is_divided;
    for (bool is_first = true; b->count >= VISITS_MIN; is_first = false) {
        const branch_counts all = count_all(b);
        branch best = *of;
        best.p = 1;
        if (all.taken < TAKEN_MIN || (!b->is_repeated && all.all - all.taken < TAKEN_MIN))
            return;
        for (int k = 0; k < 1 + has_servers; k++) {
            b->by_callers = b->is_divided || k > 0;
            compare_hosts(b, all, &best);
        }
        if (is_first)
            compare_times(b, all, &best);
        b->by_callers = best.is_caller;
        best.p *= tests * (1 + has_servers);
        if (best.p > CHANCE_MAX || work_explains(b, &best))
            return;
        g_array_append_val(found, best);
        if (best.host == NULL)
            return;
        remove_host(b, best.host);
    }
}

/* Sets *best to `others` if `are_better` is true. Frees the array that is not kept. */
static void choose_branches(GArray **best, GArray *others, bool are_better)
{
    GArray *worse = are_better ? *best : others;
    if (are_better)
        *best = others;
    if (worse != NULL)
        g_array_free(worse, TRUE);
}

/* Finds the branches of a place: misses of a cache or, without such misses, the calls whose increased number takes most
 * time. */
static void find_branches_of(const visits *v, uint32_t number, const GPtrArray *caches, const GArray *children,
                             caller *callers, GArray *found)
{
    const uint32_t tests = caches->len + children->len;
    double best_p = 1, longest_ns = 0;
    GArray *best = NULL;
    for (guint n = 0; n < caches->len; n++) {
        const branch of = {.place = number, .column = g_ptr_array_index(caches, n), .child = VISIT_NONE};
        GArray *here = g_array_new(FALSE, FALSE, sizeof(branch));
        branching b = branching_new(v, number, of.column);
        find_branch(&b, tests, &of, here);
        branching_free(&b);
        choose_branches(&best, here, here->len > 0 && g_array_index(here, branch, 0).p < best_p);
        best_p = best != NULL ? g_array_index(best, branch, 0).p : 1;
    }
    for (guint n = 0; n < children->len && best_p >= 1; n++) {
        const branch of = {.place = number, .child = g_array_index(children, uint32_t, n)};
        if (place_at(v, of.child)->count < TAKEN_MIN)
            continue;
        GArray *here = g_array_new(FALSE, FALSE, sizeof(branch));
        branching b = branching_new(v, number, NULL);
        count_callers(&b, of.child, callers);
        find_branch(&b, tests, &of, here);
        branching_free(&b);
        const branch *first = here->len > 0 ? &g_array_index(here, branch, 0) : NULL;
        double more_ns = first != NULL ? place_at(v, of.child)->path_ns * (1 - first->other / first->share) : 0;
        choose_branches(&best, here, more_ns > longest_ns);
        longest_ns = fmax(longest_ns, more_ns);
    }
    if (best != NULL) {
        g_array_append_vals(found, best->data, best->len);
        g_array_free(best, TRUE);
    }
}

/* Returns the places of spans that the visits of each place call (elements are uint32_t), or NULL. */
static GArray **find_children(const visits *v)
{
    GArray **children = g_new0(GArray *, v->places->len + 1);
    for (guint i = 0; i < v->places->len; i++) {
        const place *p = place_at(v, i);
        if (p->kind != PLACE_SPAN)
            continue;
        children[i] = children[i] != NULL ? children[i] : g_array_new(FALSE, FALSE, sizeof(uint32_t));
        for (uint32_t n = p->first; n < p->first + p->count; n++) {
            uint32_t parent = visit_at(v, v->by_place[n])->parent;
            if (parent == VISIT_NONE)
                continue;
            uint32_t caller = place_of_visit(v, visit_at(v, parent));
            if (children[caller] == NULL)
                children[caller] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
            GArray *of = children[caller];
            if (of->len == 0 || g_array_index(of, uint32_t, of->len - 1) != i)
                g_array_append_val(of, i);
        }
    }
    return children;
}

GArray *find_branches(const visits *v)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(branch)), **children = find_children(v);
    GPtrArray *caches = g_ptr_array_new(); /* const column *: the results of caches */
    caller *callers = g_new0(caller, v->all->len + 1);
    for (uint32_t n = 0; n < v->columns->count; n++)
        if (!v->columns->all[n].closed && column_is_of_cache(&v->columns->all[n]))
            g_ptr_array_add(caches, &v->columns->all[n]);
    for (guint i = 0; i < v->places->len; i++) {
        if (children[i] == NULL)
            continue;
        if (place_at(v, i)->kind == PLACE_SPAN)
            find_branches_of(v, i, caches, children[i], callers, found);
        g_array_free(children[i], TRUE);
    }
    g_ptr_array_free(caches, TRUE);
    g_free(children);
    g_free(callers);
    return found;
}

/* ---- the time of a branch ---- */

/* Marks the places whose visits belong to the branch, because visits that do not take the branch rarely call them. */
static void find_exclusive(const branching *b, bool *exclusive)
{
    const visits *v = b->v;
    uint8_t *of_visit = g_new0(uint8_t, v->all->len + 1); /* 1: does not take the branch; 2: takes it */
    double all[2] = {0}, *calls = g_new0(double, 2 * (size_t)v->places->len + 1);
    for (uint32_t i = 0; i < b->count; i++) {
        int takes = b->taken[i] > 0;
        of_visit[b->index[i]] = takes ? 2 : 1;
        all[takes]++;
    }
    for (guint i = 0; i < v->all->len; i++) {
        const visit *x = visit_at(v, i);
        uint8_t of = x->parent != VISIT_NONE ? of_visit[x->parent] : 0;
        if (of > 0)
            calls[2 * place_of_visit(v, x) + of - 1]++;
    }
    for (guint i = 0; i < v->places->len; i++)
        exclusive[i] = place_at(v, i)->kind == PLACE_SPAN && calls[2 * i + 1] > 0 &&
                       calls[2 * i] * all[1] <= EXCLUSIVE_MAX * calls[2 * i + 1] * all[0];
    g_free(of_visit);
    g_free(calls);
}

/* For each visit that takes the branch here, sets its own time that the branch adds: `part` times the mean
 * difference. */
static void find_own_time(const branching *b, const branch *of, double part, float *own)
{
    double sums[2] = {0}, counts[2] = {0};
    for (uint32_t i = 0; i < b->count; i++) {
        int takes = b->taken[i] > 0;
        sums[takes] += (double)visit_at(b->v, b->index[i])->own_ns;
        counts[takes]++;
    }
    double more_ns = fmax(0, sums[1] / fmax(counts[1], 1) - sums[0] / fmax(counts[0], 1));
    for (uint32_t i = 0; i < b->count; i++)
        if (b->taken[i] > 0 && is_here(b, of, i))
            own[b->index[i]] = (float)(part * more_ns);
}

void branch_find_time(const visits *v, const branch *of, float **parts, float **own)
{
    branching b = branching_new(v, of->place, of->column);
    b.by_callers = of->is_caller;
    bool *marks = g_new0(bool, v->all->len + 1), *exclusive = g_new0(bool, v->places->len + 1);
    double part = 1 - of->other / of->share;
    *parts = g_new0(float, v->all->len + 1);
    *own = g_new0(float, v->all->len + 1);
    if (of->column == NULL) {
        caller *callers = g_new0(caller, v->all->len + 1);
        count_callers(&b, of->child, callers);
        g_free(callers);
    }
    if (of->is_repeated) {
        exclusive[of->child] = true;
    } else {
        find_exclusive(&b, exclusive);
        find_own_time(&b, of, part, *own);
    }
    for (uint32_t i = 0; i < b.count; i++)
        marks[b.index[i]] = b.taken[i] > 0 && is_here(&b, of, i);
    for (guint i = 0; i < v->all->len; i++) {
        const visit *x = visit_at(v, i);
        if (x->parent != VISIT_NONE && marks[x->parent] && exclusive[place_of_visit(v, x)])
            (*parts)[i] = (float)part;
    }
    g_free(marks);
    g_free(exclusive);
    branching_free(&b);
}
