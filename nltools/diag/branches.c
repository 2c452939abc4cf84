#include "config.h"

#include <math.h>

#include "diag/branches.h"
#include "diag/search.h"

/* Minimum ratio of the shares of visits that take a branch. */
#define RATIO_MIN 1.3

/* Other requested work explains a larger share unless at least this part of the difference between the shares remains
 * among visits with the same value of a field. */
#define OWN_PART_MIN 0.5

/* A call belongs to a branch if the other visits make it at most this part as often. */
#define EXCLUSIVE_MAX 0.1

/* Maximum probability by chance of a branch; the search compares it with its level. */
#define CHANCE_MAX 1e-4

enum {
    TIME_PARTS = 24,
    VISITS_MIN = 60,
    TAKEN_MIN = 10, /* minimum number of visits that take a branch, and of those that do not */
    SHARES_MAX = COLUMN_TEXTS_MAX + 1
};

/* The visits of a place, and whether they take the branch. If some of the visits of a program are a place of their own
 * (place.has_only_served), the visits of both places. */
typedef struct branching {
    const visits *v;
    uint32_t count;
    uint32_t *index; /* indices of the visits, in the order of time */
    bool *taken;
    double effective; /* number of requests divided by the number of visits, at most 1 */
    bool is_divided;  /* the visits belong to two places */
} branching;

/* Numbers of visits, and of visits that take the branch. */
typedef struct branch_counts {
    double all, taken;
} branch_counts;

/* ---- visits of a place ---- */

/* Returns the place with all other visits of the same span, if a place has only the visits that name a server. */
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

/*
 * Gathers the visits of a place that did not fail. If `of` is a column with the results of a cache, gathers only visits
 * with a result, and marks those that are no hits.
 */
static branching branching_new(const visits *v, uint32_t number, const column *of)
{
    const uint32_t places[] = {number, place_without_server(v, number)};
    branching b = {.v = v, .is_divided = places[1] != VISIT_NONE};
    uint32_t all = 0, position[2], requests = 0, last = VISIT_NONE;
    for (int k = 0; k < 1 + b.is_divided; k++) {
        position[k] = place_at(v, places[k])->first;
        all += place_at(v, places[k])->count;
    }
    b.index = g_new(uint32_t, all + 1);
    b.taken = g_new0(bool, all + 1);
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
        requests += x->request != last; /* the visits of a request are usually adjacent */
        last = x->request;
        b.taken[b.count] = of != NULL && !column_is_hit(of, result);
        b.index[b.count++] = index;
    }
    b.effective = b.count > 0 ? (double)requests / b.count : 1;
    return b;
}

static void branching_free(branching *b)
{
    g_free(b->index);
    g_free(b->taken);
}

/* Returns the host that may take the branch more often. If the server is known only for a part of the visits, this is
 * the caller. */
static const char *host_of(const branching *b, uint32_t i)
{
    const site *at = site_at(b->v, visit_at(b->v, b->index[i])->site);
    return b->is_divided && *at->from_host != '\0' ? at->from_host : at->host;
}

/* Marks the visits that contain a visit to `child`. `marks` has an element for each visit of the log, all false. */
static void mark_callers(branching *b, uint32_t child, bool *marks)
{
    const visits *v = b->v;
    const place *p = place_at(v, child);
    for (uint32_t n = p->first; n < p->first + p->count; n++) {
        uint32_t parent = visit_at(v, v->by_place[n])->parent;
        if (parent != VISIT_NONE)
            marks[parent] = true;
    }
    for (uint32_t i = 0; i < b->count; i++)
        b->taken[i] = marks[b->index[i]];
    for (uint32_t n = p->first; n < p->first + p->count; n++) {
        uint32_t parent = visit_at(v, v->by_place[n])->parent;
        if (parent != VISIT_NONE)
            marks[parent] = false;
    }
}

/* ---- different shares ---- */

/* Returns the probability of at least this share in a part of the visits by chance, or 1 if the share is not much
 * larger than elsewhere. */
static double chance_of_share(const branching *b, branch_counts here, branch_counts all)
{
    branch_counts rest = {all.all - here.all, all.taken - here.taken};
    if (here.all < TAKEN_MIN || rest.all < TAKEN_MIN || here.taken < TAKEN_MIN ||
        here.taken * rest.all < RATIO_MIN * rest.taken * here.all)
        return 1;
    double e = b->effective;
    return hypergeometric_tail(ceil(e * all.all), ceil(e * all.taken), ceil(e * here.all), floor(e * here.taken));
}

/* Returns whether a visit is in the part of the visits where the branch is more frequent. */
static bool is_here(const branching *b, const branch *of, uint32_t i)
{
    const visit *x = visit_at(b->v, b->index[i]);
    return of->host != NULL ? host_of(b, i) == of->host : x->from_ns >= of->from_ns && x->from_ns <= of->to_ns;
}

/*
 * Returns whether other requested work explains the larger share. `groups` has a number below SHARES_MAX for each
 * visit. Without a cause of its own, the visits here take the branch as often as the visits elsewhere in the same
 * groups.
 */
static bool groups_explain(const branching *b, const branch *of, const uint32_t *groups)
{
    double here[SHARES_MAX] = {0}, expected = 0, all = 0;
    branch_counts rest[SHARES_MAX] = {{0, 0}};
    for (uint32_t i = 0; i < b->count; i++) {
        if (is_here(b, of, i)) {
            here[groups[i]]++;
            continue;
        }
        rest[groups[i]].all++;
        rest[groups[i]].taken += b->taken[i];
    }
    for (int g = 0; g < SHARES_MAX; g++) {
        expected += here[g] * (rest[g].all > 0 ? rest[g].taken / rest[g].all : of->other);
        all += here[g];
    }
    return of->share - expected / fmax(all, 1) < OWN_PART_MIN * (of->share - of->other);
}

/* Returns whether a field, or the place from which the visits are called, explains the larger share. */
static bool work_explains(const branching *b, const branch *of)
{
    const visits *v = b->v;
    uint32_t *groups = g_new(uint32_t, b->count + 1);
    bool explains = false;
    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t parent = visit_at(v, b->index[i])->parent;
        groups[i] = parent == VISIT_NONE ? 0 : 1 + place_of_visit(v, visit_at(v, parent)) % (SHARES_MAX - 1);
    }
    explains = groups_explain(b, of, groups);
    for (uint32_t n = 0; n < v->columns->count && !explains; n++) {
        const column *c = &v->columns->all[n];
        if (c->closed || !c->has_text || c->name[0] == '@' || column_is_of_cache(c) || column_is_result(c) ||
            column_names_server(c) || column_names_host(c))
            continue;
        for (uint32_t i = 0; i < b->count; i++) {
            float value = column_of_visit(c, v, b->index[i]);
            groups[i] = isfinite(value) ? (uint32_t)value : COLUMN_TEXTS_MAX;
        }
        explains = groups_explain(b, of, groups);
    }
    g_free(groups);
    return explains;
}

static void set_shares(branch *of, branch_counts here, branch_counts all)
{
    of->share = here.taken / here.all;
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
            branch_host fresh = {host, {0, 0}};
            g_array_append_val(hosts, fresh);
            number = hosts->len;
            g_hash_table_insert(numbers, (gpointer)host, GUINT_TO_POINTER(number));
        }
        branch_counts *of = &g_array_index(hosts, branch_host, number - 1).counts;
        of->all++;
        of->taken += b->taken[i];
    }
    g_hash_table_destroy(numbers);
    return hosts;
}

/*
 * Replaces a branch if the share on one host is less probable by chance. In a large log, the probabilities of several
 * hosts may be 0; the host with the largest excess is then the least probable.
 */
static void compare_hosts(const branching *b, branch_counts all, branch *best)
{
    GArray *hosts = count_hosts(b);
    double largest = 0;
    for (guint i = 0; i < hosts->len; i++) {
        const branch_host *h = &g_array_index(hosts, branch_host, i);
        const double p = hosts->len * chance_of_share(b, h->counts, all),
                     excess = h->counts.taken - all.taken * h->counts.all / all.all;
        if (p > best->p || p >= 1 || (p == best->p && excess <= largest))
            continue;
        largest = excess;
        best->p = p;
        best->host = h->host;
        set_shares(best, h->counts, all);
    }
    g_array_free(hosts, TRUE);
}

static uint32_t first_of_part(const branching *b, int part)
{
    return (uint32_t)((uint64_t)part * b->count / TIME_PARTS);
}

/* Replaces a branch if the share in a range of time is less probable by chance. */
static void compare_times(const branching *b, branch_counts all, branch *best)
{
    branch_counts times[TIME_PARTS] = {{0, 0}}, chosen = {0};
    double largest = 0;
    int first = 0, last = 0;
    for (int t = 0; t < TIME_PARTS; t++)
        for (uint32_t i = first_of_part(b, t); i < first_of_part(b, t + 1); i++) {
            times[t].all++;
            times[t].taken += b->taken[i];
        }
    for (int from = 0; from < TIME_PARTS; from++) {
        branch_counts here = {0};
        for (int to = from; to < TIME_PARTS; to++) {
            here.all += times[to].all;
            here.taken += times[to].taken;
            double rest = all.all - here.all, more = here.taken * all.all - all.taken * here.all,
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
    set_shares(best, chosen, all);
}

/*
 * Returns whether the marked visits take the branch more often on a host or in a range of time. Sets *found. `tests` is
 * the number of branches that are tried at the place.
 */
static bool find_branch(const branching *b, uint32_t tests, branch *found)
{
    branch_counts all = {b->count, 0};
    for (uint32_t i = 0; i < b->count; i++)
        all.taken += b->taken[i];
    found->p = 1;
    if (b->count < VISITS_MIN || all.taken < TAKEN_MIN || all.all - all.taken < TAKEN_MIN)
        return false;
    compare_hosts(b, all, found);
    compare_times(b, all, found);
    found->p *= tests;
    return found->p <= CHANCE_MAX && !work_explains(b, found);
}

/* Finds the branches of a place: misses of a cache, or else the call whose additional number takes most time. */
static void find_branches_of(const visits *v, uint32_t number, const GPtrArray *caches, const GArray *children,
                             bool *marks, GArray *found)
{
    branch best = {.place = number, .p = 1};
    const uint32_t tests = caches->len + children->len;
    double longest_ns = 0;
    for (guint n = 0; n < caches->len; n++) {
        const column *c = g_ptr_array_index(caches, n);
        branch of = {.place = number, .column = c, .child = VISIT_NONE};
        branching b = branching_new(v, number, c);
        if (find_branch(&b, tests, &of) && of.p < best.p)
            best = of;
        branching_free(&b);
    }
    branching b = branching_new(v, number, NULL);
    for (guint n = 0; n < children->len && best.column == NULL; n++) {
        branch of = {.place = number, .child = g_array_index(children, uint32_t, n)};
        if (place_at(v, of.child)->count < TAKEN_MIN)
            continue;
        mark_callers(&b, of.child, marks);
        if (!find_branch(&b, tests, &of))
            continue;
        double more_ns = place_at(v, of.child)->path_ns * (1 - of.other / of.share);
        if (more_ns > longest_ns) {
            longest_ns = more_ns;
            best = of;
        }
    }
    if (best.p < 1)
        g_array_append_val(found, best);
    branching_free(&b);
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
    bool *marks = g_new0(bool, v->all->len + 1);
    for (uint32_t n = 0; n < v->columns->count; n++)
        if (!v->columns->all[n].closed && column_is_of_cache(&v->columns->all[n]))
            g_ptr_array_add(caches, &v->columns->all[n]);
    for (guint i = 0; i < v->places->len; i++) {
        if (children[i] == NULL)
            continue;
        if (place_at(v, i)->kind == PLACE_SPAN)
            find_branches_of(v, i, caches, children[i], marks, found);
        g_array_free(children[i], TRUE);
    }
    g_ptr_array_free(caches, TRUE);
    g_free(children);
    g_free(marks);
    return found;
}

/* ---- the time of a branch ---- */

/* Marks the places whose visits belong to the branch: the other visits rarely make these calls. */
static void find_exclusive(const branching *b, bool *exclusive)
{
    const visits *v = b->v;
    uint8_t *of_visit = g_new0(uint8_t, v->all->len + 1); /* 1: does not take the branch; 2: takes it */
    double all[2] = {0}, *calls = g_new0(double, 2 * (size_t)v->places->len + 1);
    for (uint32_t i = 0; i < b->count; i++) {
        of_visit[b->index[i]] = b->taken[i] ? 2 : 1;
        all[b->taken[i]]++;
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

void branch_find_time(const visits *v, const branch *of, float **parts, float **own)
{
    branching b = branching_new(v, of->place, of->column);
    bool *marks = g_new0(bool, v->all->len + 1), *exclusive = g_new0(bool, v->places->len + 1);
    double sums[2] = {0}, counts[2] = {0}, part = 1 - of->other / of->share;
    *parts = g_new0(float, v->all->len + 1);
    *own = g_new0(float, v->all->len + 1);
    if (of->column == NULL)
        mark_callers(&b, of->child, marks);
    find_exclusive(&b, exclusive);
    for (uint32_t i = 0; i < b.count; i++) {
        sums[b.taken[i]] += (double)visit_at(v, b.index[i])->own_ns;
        counts[b.taken[i]]++;
    }
    double more_ns = fmax(0, sums[1] / fmax(counts[1], 1) - sums[0] / fmax(counts[0], 1));
    for (uint32_t i = 0; i < b.count; i++)
        if (b.taken[i] && is_here(&b, of, i)) {
            marks[b.index[i]] = true;
            (*own)[b.index[i]] = (float)(part * more_ns);
        }
    for (guint i = 0; i < v->all->len; i++) {
        const visit *x = visit_at(v, i);
        if (x->parent != VISIT_NONE && marks[x->parent] && exclusive[place_of_visit(v, x)])
            (*parts)[i] = (float)part;
    }
    g_free(marks);
    g_free(exclusive);
    branching_free(&b);
}
