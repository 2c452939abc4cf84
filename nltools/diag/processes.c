#include "config.h"

#include "diag/processes.h"

#include "requests/program_names.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAIR_MIN = 8,           /* minimum number of requests that show the order of two programs */
    PROGRAMS_TOGETHER = 64, /* a request with this many numbered programs does not show their order */
    UNITS_MAX = 1024,       /* maximum number of programs, because their pairs take memory and time */
};

/* Two programs are separate steps if at least this part of the requests that visit both has the same order. */
#define ORDER_MIN 0.95

/* In processes of one program, at least this part of the visits has names that also occur in the other processes. */
#define SAME_NAMES_MIN 0.9

/* Programs that the module treats as one program. At first, each unit contains one program. */
typedef struct unit {
    const char *name;
    GHashTable *names; /* maps the interned name of a span or event to its number of visits */
    double visits;
    uint32_t into; /* the number of the unit that replaces this unit, or its own number */
} unit;

/* How often requests visit two units, by their order. */
typedef struct unit_order {
    uint32_t forward, backward, other;
} unit_order;

typedef struct unit_pair {
    uint32_t a, b; /* a < b */
} unit_pair;

/* The time in which a request visits a unit. */
typedef struct stay {
    uint32_t unit;
    int64_t from_ns, to_ns;
} stay;

/* ---- units ---- */

static unit *unit_at(const GArray *units, uint32_t i)
{
    return &g_array_index(units, unit, i);
}

/* Returns the number of the unit that has replaced a unit. */
static uint32_t unit_now(const GArray *units, uint32_t i)
{
    while (unit_at(units, i)->into != i)
        i = unit_at(units, i)->into;
    return i;
}

static uint32_t unit_of_program(GArray *units, GHashTable *numbers, const char *program)
{
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(numbers, program));
    if (known == 0) {
        const unit new_unit = {.name = program, .names = g_hash_table_new(NULL, NULL), .into = units->len};
        g_array_append_val(units, new_unit);
        known = units->len;
        g_hash_table_insert(numbers, (gpointer)program, GUINT_TO_POINTER(known));
    }
    return known - 1;
}

static void unit_add_visits(unit *u, const char *name, uint32_t count)
{
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(u->names, name));
    g_hash_table_insert(u->names, (gpointer)name, GUINT_TO_POINTER(known + count));
    u->visits += count;
}

/* Returns the part of a unit's visits with names that also occur in the other unit. */
static double part_of_same_names(const unit *u, const unit *other)
{
    GHashTableIter i;
    gpointer name, count;
    double same = 0;
    g_hash_table_iter_init(&i, u->names);
    while (g_hash_table_iter_next(&i, &name, &count))
        same += g_hash_table_contains(other->names, name) ? GPOINTER_TO_UINT(count) : 0;
    return u->visits > 0 ? same / u->visits : 0;
}

static void unit_join(GArray *units, uint32_t number, uint32_t into)
{
    GHashTableIter i;
    gpointer name, count;
    g_hash_table_iter_init(&i, unit_at(units, number)->names);
    while (g_hash_table_iter_next(&i, &name, &count))
        unit_add_visits(unit_at(units, into), name, GPOINTER_TO_UINT(count));
    unit_at(units, number)->into = into;
}

/* ---- the order in which requests visit units ---- */

static guint unit_pair_hash(gconstpointer key)
{
    const unit_pair *p = key;
    return p->a * 0x9e3779b1u ^ p->b;
}

static gboolean unit_pair_equal(gconstpointer a, gconstpointer b)
{
    const unit_pair *x = a, *y = b;
    return x->a == y->a && x->b == y->b;
}

/* Returns whether a stay is before or around another stay. */
static bool is_before(const stay *a, const stay *b)
{
    return a->to_ns <= b->from_ns || (a->from_ns < b->from_ns && a->to_ns > b->to_ns);
}

static void add_order(GHashTable *orders, const stay *a, const stay *b)
{
    if (a->unit > b->unit) {
        const stay *first = a;
        a = b;
        b = first;
    }
    const unit_pair key = {a->unit, b->unit};
    unit_order *order = g_hash_table_lookup(orders, &key);
    if (order == NULL) {
        order = g_new0(unit_order, 1);
        g_hash_table_insert(orders, g_memdup2(&key, sizeof key), order);
    }
    if (is_before(a, b) == is_before(b, a))
        order->other++;
    else if (is_before(a, b))
        order->forward++;
    else
        order->backward++;
}

/* Extends the stay at a unit, or adds one. Returns the new number of stays. */
static size_t add_stay(stay *stays, size_t count, uint32_t number, int64_t from_ns, int64_t to_ns)
{
    size_t i = 0;
    while (i < count && stays[i].unit != number)
        i++;
    if (i == PROGRAMS_TOGETHER)
        return count;
    if (i == count)
        stays[count++] = (stay){number, from_ns, to_ns};
    stays[i].from_ns = MIN(stays[i].from_ns, from_ns);
    stays[i].to_ns = MAX(stays[i].to_ns, to_ns);
    return count;
}

/* Excludes the units that a request visits, because it visits too many units to show their order. */
static void exclude_units(const visits *v, const request *q, const GArray *units, const uint32_t *of_site,
                          const char **patterns)
{
    for (uint32_t i = q->first; i < q->first + q->count; i++) {
        uint32_t number = visit_at(v, i)->site;
        patterns[unit_now(units, of_site[2 * number])] = NULL;
        patterns[unit_now(units, of_site[2 * number + 1])] = NULL;
    }
}

/*
 * Counts the orders of all pairs of units that have the same pattern. `of_site` contains, for each site, the units in
 * which its visits end and begin. `patterns` contains the pattern of each unit, or NULL. The function sets the patterns
 * of units with an unknown order to NULL. The caller frees the table.
 */
static GHashTable *count_orders(const visits *v, const GArray *units, const uint32_t *of_site, const char **patterns)
{
    GHashTable *orders = g_hash_table_new_full(unit_pair_hash, unit_pair_equal, g_free, g_free);
    for (guint r = 0; r < v->requests->len; r++) {
        const request *q = request_at(v, r);
        stay stays[PROGRAMS_TOGETHER];
        size_t count = 0;
        for (uint32_t i = q->first; i < q->first + q->count; i++) {
            const visit *x = visit_at(v, i);
            uint32_t end = unit_now(units, of_site[2 * x->site]), begin = unit_now(units, of_site[2 * x->site + 1]);
            bool is_span = place_at(v, place_of_visit(v, x))->kind == PLACE_SPAN;
            if (patterns[end] != NULL)
                count = add_stay(stays, count, end, is_span ? x->from_ns : x->to_ns, x->to_ns);
            if (place_at(v, place_of_visit(v, x))->kind == PLACE_EDGE && patterns[begin] != NULL)
                count = add_stay(stays, count, begin, x->from_ns, x->from_ns);
        }
        if (count == PROGRAMS_TOGETHER)
            exclude_units(v, q, units, of_site, patterns);
        for (size_t a = 0; a < count && count < PROGRAMS_TOGETHER; a++)
            for (size_t b = a + 1; b < count; b++)
                if (patterns[stays[a].unit] == patterns[stays[b].unit])
                    add_order(orders, &stays[a], &stays[b]);
    }
    return orders;
}

/* Returns whether two units are separate steps: requests visit them in a fixed order. */
static bool are_steps(GHashTable *orders, uint32_t a, uint32_t b)
{
    const unit_pair key = {MIN(a, b), MAX(a, b)};
    const unit_order *order = g_hash_table_lookup(orders, &key);
    if (order == NULL)
        return false;
    uint32_t all = order->forward + order->backward + order->other;
    return all >= PAIR_MIN && MAX(order->forward, order->backward) >= ORDER_MIN * all;
}

/* Returns whether a unit can join a group of units, which have the numbers in `members`. */
static bool fits_group(const GArray *units, GHashTable *orders, const GArray *members, uint32_t number)
{
    const unit *largest = unit_at(units, g_array_index(members, uint32_t, 0));
    if (part_of_same_names(unit_at(units, number), largest) < SAME_NAMES_MIN)
        return false;
    for (guint i = 0; i < members->len; i++)
        if (are_steps(orders, number, g_array_index(members, uint32_t, i)))
            return false;
    return true;
}

static int by_visits(const void *a, const void *b, void *user)
{
    const GArray *units = user;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    double x = unit_at(units, i)->visits, y = unit_at(units, j)->visits;
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

/* Joins units that are processes of one program. For each pattern of names, these are the unit with the most visits and
 * the units that fits_group accepts. The other units with this pattern remain separate. */
static void join_units(const visits *v, GArray *units, const uint32_t *of_site, bool all)
{
    const char **patterns = g_new0(const char *, units->len + 1);
    uint32_t *order = g_new(uint32_t, units->len + 1), count = 0;
    GHashTable *counts = g_hash_table_new(NULL, NULL); /* maps a pattern to its number of units */
    for (guint i = 0; i < units->len; i++) {
        patterns[i] = unit_at(units, i)->into == i ? program_find_pattern(unit_at(units, i)->name, all) : NULL;
        if (patterns[i] == NULL)
            continue;
        order[count++] = i;
        guint known = GPOINTER_TO_UINT(g_hash_table_lookup(counts, patterns[i]));
        g_hash_table_insert(counts, (gpointer)patterns[i], GUINT_TO_POINTER(known + 1));
    }
    bool any = false;
    for (guint i = 0; i < units->len; i++) {
        if (patterns[i] != NULL && GPOINTER_TO_UINT(g_hash_table_lookup(counts, patterns[i])) < 2)
            patterns[i] = NULL;
        any = any || patterns[i] != NULL;
    }
    GHashTable *orders = any ? count_orders(v, units, of_site, patterns) : NULL;
    qsort_r(order, count, sizeof *order, by_visits, units);
    GArray *members = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t i = 0; i < count && any; i++) {
        const char *pattern = patterns[order[i]];
        if (pattern == NULL)
            continue;
        g_array_set_size(members, 0);
        g_array_append_val(members, order[i]);
        for (uint32_t k = i + 1; k < count; k++)
            if (patterns[order[k]] == pattern && fits_group(units, orders, members, order[k]))
                g_array_append_val(members, order[k]);
        for (guint n = 1; n < members->len; n++)
            unit_join(units, g_array_index(members, uint32_t, n), order[i]);
        if (members->len > 1)
            unit_at(units, order[i])->name = pattern;
        for (uint32_t k = i; k < count; k++)
            if (patterns[order[k]] == pattern)
                patterns[order[k]] = NULL;
    }
    g_array_free(members, TRUE);
    if (orders != NULL)
        g_hash_table_destroy(orders);
    g_hash_table_destroy(counts);
    g_free(patterns);
    g_free(order);
}

/* ---- places ---- */

/* Gives all places the names of their programs' units, and joins places that have become equal. */
static void join_places(visits *v, const GArray *units, const uint32_t *of_site)
{
    GHashTable *indices = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL); /* text -> index + 1 */
    GArray *joined = g_array_new(FALSE, FALSE, sizeof(place));
    for (guint i = 0; i < v->sites->len; i++) {
        site *at = site_at(v, i);
        place p = *place_at(v, at->place);
        p.program = unit_at(units, unit_now(units, of_site[2 * i]))->name;
        if (p.kind == PLACE_EDGE)
            p.from_program = unit_at(units, unit_now(units, of_site[2 * i + 1]))->name;
        const char *field = p.has_only_served ? p.server_field : "";
        char *text = g_strjoin("\n", p.span, p.from, p.to, p.program, p.from_program, field, NULL);
        guint known = GPOINTER_TO_UINT(g_hash_table_lookup(indices, text));
        if (known == 0) {
            p.sites = g_array_new(FALSE, FALSE, sizeof(uint32_t));
            g_array_append_val(joined, p);
            known = joined->len;
            g_hash_table_insert(indices, text, GUINT_TO_POINTER(known));
        } else {
            g_free(text);
        }
        place *of = &g_array_index(joined, place, known - 1);
        of->has_children = of->has_children || p.has_children;
        of->inferred = of->inferred || p.inferred;
        if (of->server_field == NULL) {
            of->server_field = p.server_field;
            of->has_value_hosts = p.has_value_hosts;
        }
        g_array_append_val(of->sites, i);
        at->place = known - 1;
    }
    for (guint i = 0; i < v->places->len; i++)
        g_array_free(place_at(v, i)->sites, TRUE);
    g_array_free(v->places, TRUE);
    v->places = joined;
    g_hash_table_destroy(indices);
}

/* The tables of number_instance. */
typedef struct instance_numbers {
    GHashTable *instances; /* maps "program\nhost" to the number of the instance + 1 */
    GHashTable *hosts;     /* maps a host to the number of its first instance + 1 */
} instance_numbers;

static uint32_t number_instance(visits *v, const instance_numbers *numbers, const char *program, const char *host)
{
    char *text = g_strconcat(program, "\n", host, NULL);
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(numbers->instances, text)),
          first = GPOINTER_TO_UINT(g_hash_table_lookup(numbers->hosts, host));
    if (known > 0) {
        g_free(text);
        return known - 1;
    }
    known = v->instances->len + 1;
    g_hash_table_insert(numbers->instances, text, GUINT_TO_POINTER(known));
    if (first == 0)
        g_hash_table_insert(numbers->hosts, (gpointer)host, GUINT_TO_POINTER(first = known));
    const instance new_instance = {program, host, first - 1, time_units_find(v->units, program)};
    g_array_append_val(v->instances, new_instance);
    return known - 1;
}

static void number_instances(visits *v)
{
    const instance_numbers numbers = {g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                                      g_hash_table_new(NULL, NULL)};
    for (guint i = 0; i < v->sites->len; i++) {
        site *at = site_at(v, i);
        const place *p = place_at(v, at->place);
        at->instance = number_instance(v, &numbers, p->program, at->host);
        at->from_instance = p->kind == PLACE_EDGE ? number_instance(v, &numbers, p->from_program, at->from_host)
                            : p->server_field != NULL && *at->from_host != '\0'
                                ? number_instance(v, &numbers, p->program, at->from_host)
                                : at->instance;
    }
    g_hash_table_destroy(numbers.instances);
    g_hash_table_destroy(numbers.hosts);
}

bool place_has_processes(const visits *v, const place *p)
{
    GHashTable *hosts = g_hash_table_new(NULL, NULL); /* maps a host to the number of an instance + 1 */
    bool several = false;
    for (guint n = 0; n < p->sites->len && v->has_processes && !several; n++) {
        const site *at = site_at(v, g_array_index(p->sites, uint32_t, n));
        guint known = GPOINTER_TO_UINT(g_hash_table_lookup(hosts, at->host));
        several = known > 0 && known != at->instance + 1;
        g_hash_table_insert(hosts, (gpointer)at->host, GUINT_TO_POINTER(at->instance + 1));
    }
    g_hash_table_destroy(hosts);
    return several;
}

void visits_join_processes(visits *v)
{
    GArray *units = g_array_new(FALSE, FALSE, sizeof(unit));
    GHashTable *numbers = g_hash_table_new(NULL, NULL); /* maps a program to the number of its unit + 1 */
    uint32_t *of_site = g_new(uint32_t, 2 * (size_t)v->sites->len + 1), *counts = g_new0(uint32_t, v->sites->len + 1);
    number_instances(v);
    for (guint i = 0; i < v->all->len; i++)
        counts[visit_at(v, i)->site]++;
    for (guint i = 0; i < v->sites->len; i++) {
        const place *p = place_at(v, site_at(v, i)->place);
        of_site[2 * i] = unit_of_program(units, numbers, p->program);
        of_site[2 * i + 1] = p->kind == PLACE_EDGE ? unit_of_program(units, numbers, p->from_program) : of_site[2 * i];
        unit_add_visits(unit_at(units, of_site[2 * i]), p->kind == PLACE_SPAN ? p->span : p->to, counts[i]);
        if (p->kind == PLACE_EDGE)
            unit_add_visits(unit_at(units, of_site[2 * i + 1]), p->from, counts[i]);
    }
    /* first join the processes of each host, whose names have most in common, and then all processes */
    for (int all = 0; all < 2 && units->len <= UNITS_MAX; all++)
        join_units(v, units, of_site, all == 1);
    bool any = false;
    for (guint i = 0; i < units->len; i++)
        any = any || unit_at(units, i)->into != i;
    v->has_processes = any;
    if (any)
        join_places(v, units, of_site);
    for (guint i = 0; i < units->len; i++)
        g_hash_table_destroy(unit_at(units, i)->names);
    g_array_free(units, TRUE);
    g_hash_table_destroy(numbers);
    g_free(counts);
    g_free(of_site);
}
