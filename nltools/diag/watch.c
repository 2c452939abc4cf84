#include "config.h"

#include "diag/watch.h"

#include "diag/place_names.h"

#include <math.h>
#include <string.h>

/* Minimum standard error, as a part of the mean, because requests change a little with the time of day. */
#define WATCH_ERROR_MIN 0.02

enum { TOGETHER_PANES = 5, OUTLIER_DEVIATIONS = 4 };

typedef struct watched_place {
    uint32_t name;         /* number in the names of places; PLACE_NAME_NONE: failed requests */
    uint32_t now_at;       /* index of the place in the current pane, or VISIT_NONE */
    double mean, variance; /* mean time per request (ns), and variance of the time of a single request (ns²) */
    unsigned panes;        /* number of healthy panes so far */
    unsigned bad, good;    /* numbers of consecutive bad panes and of consecutive good panes */
    unsigned since;        /* number of the pane with which the consecutive bad panes began */
    int64_t since_ns;
    double now, excess; /* now: own time per request in the latest pane (ns); excess: excess over the mean, as a share
                           of the requests' time */
    double sum;         /* sum of the place's own times in the current pane */
    unsigned alert;     /* number of the alert to which the place belongs; 0: no alert */
    bool leads;         /* the alert is named after this place */
} watched_place;

struct watch {
    watch_take *take;
    void *user;
    place_names *names;
    GPtrArray *places;   /* watched_place */
    GHashTable *by_name; /* maps the number of a name + 1 to its place */
    unsigned pane, alerts;
    unsigned latest_begin; /* pane in which the latest alert began */
};

watch *watch_new(watch_take *take, void *user)
{
    watch *w = g_new0(watch, 1);
    w->take = take;
    w->user = user;
    w->places = g_ptr_array_new_with_free_func(g_free);
    w->names = place_names_new();
    w->by_name = g_hash_table_new(NULL, NULL);
    return w;
}

void watch_free(watch *w)
{
    g_hash_table_destroy(w->by_name);
    g_ptr_array_free(w->places, TRUE);
    place_names_free(w->names);
    g_free(w);
}

/* Returns the watched place with a name, and adds the place if it is new. Returns NULL if there are too many places. */
static watched_place *watch_find(watch *w, uint32_t name)
{
    watched_place *p = g_hash_table_lookup(w->by_name, GUINT_TO_POINTER(name + 1));
    if (p == NULL && w->places->len < WATCH_PLACES_MAX) {
        p = g_new0(watched_place, 1);
        p->name = name;
        p->panes = MIN(w->pane, (unsigned)WATCH_MEMORY); /* the place did not occur in the earlier panes */
        g_ptr_array_add(w->places, p);
        g_hash_table_insert(w->by_name, GUINT_TO_POINTER(name + 1), p);
    }
    return p;
}

static const char *name_of(const watch *w, const watched_place *p)
{
    return p->name == PLACE_NAME_NONE ? WATCH_FAILURES : place_names_text(w->names, p->name);
}

static watched_place *place_number(const watch *w, guint i)
{
    return g_ptr_array_index(w->places, i);
}

/* Adds up the own times of a pane's visits by place, and the durations of its failed requests. Adds the durations of
 * all its requests to *total_ns. Returns the number of requests. */
static uint32_t sum_pane(watch *w, const visits *v, int64_t from_ns, int64_t to_ns, double *total_ns)
{
    watched_place **map = g_new(watched_place *, v->places->len + 1), *failed = watch_find(w, PLACE_NAME_NONE);
    uint32_t count = 0, *names = place_names_add(w->names, v);
    for (guint i = 0; i < w->places->len; i++) {
        place_number(w, i)->sum = 0;
        place_number(w, i)->now_at = VISIT_NONE;
    }
    for (guint i = 0; i < v->places->len; i++) {
        map[i] = names[i] != PLACE_NAME_NONE ? watch_find(w, names[i]) : NULL;
        if (map[i] != NULL)
            map[i]->now_at = i;
    }
    g_free(names);
    for (guint i = 0; i < v->requests->len; i++) {
        const request *q = request_at(v, i);
        if (q->to_ns <= from_ns || q->to_ns > to_ns)
            continue;
        count++;
        *total_ns += (double)(q->to_ns - q->from_ns);
        if (q->failed && failed != NULL)
            failed->sum += (double)(q->to_ns - q->from_ns);
        for (uint32_t n = 0; n < q->count; n++) {
            const visit *x = visit_at(v, q->first + n);
            watched_place *p = map[place_of_visit(v, x)];
            if (p != NULL && x->own_ns > 0)
                p->sum += (double)x->own_ns;
        }
    }
    g_free(map);
    return count;
}

/* Updates a place's mean and variance with a healthy pane of `count` requests. */
static void learn_pane(watched_place *p, uint32_t count)
{
    double weight = 1.0 / MIN(p->panes + 1, WATCH_MEMORY), off = p->now - p->mean,
           limit = OUTLIER_DEVIATIONS * sqrt(p->variance / count);
    if (p->panes >= WATCH_WARM_UP)
        off = fmin(fmax(off, -limit), limit);
    p->mean += weight * off;
    p->variance += weight * ((1 - weight) * off * off * count - p->variance);
    p->panes++;
}

static void judge_pane(watch *w, watched_place *p, uint32_t count, double total_ns, int64_t from_ns)
{
    p->now = p->sum / count;
    double error = sqrt(p->variance / count * (1 + 1.0 / MAX(p->panes, 1U)) +
                        WATCH_ERROR_MIN * WATCH_ERROR_MIN * p->mean * p->mean),
           off = p->now - p->mean;
    p->excess = total_ns > 0 ? off * count / total_ns : 0;
    /* a place that is new after the first panes has the mean 0, so all of its time is excess */
    bool known = p->panes >= WATCH_WARM_UP, bad = known && off > WATCH_DEVIATIONS * error && p->excess >= WATCH_EXCESS;
    if (bad && p->bad++ == 0) {
        p->since = w->pane;
        p->since_ns = from_ns;
    }
    if (!bad)
        p->bad = 0;
    p->good = bad ? 0 : p->good + 1;
    if (!bad && p->alert == 0)
        learn_pane(p, count);
}

static void begin_alerts(watch *w, const visits *v, int64_t to_ns)
{
    watched_place *largest = NULL;
    bool joins = w->alerts > 0 && w->pane - w->latest_begin <= TOGETHER_PANES;
    for (guint i = 0; i < w->places->len; i++) {
        watched_place *p = place_number(w, i);
        if (p->bad >= 2 && p->alert == 0 && joins)
            p->alert = w->alerts;
        else if (p->bad >= 2 && p->alert == 0 && (largest == NULL || p->excess > largest->excess))
            largest = p;
    }
    if (largest == NULL)
        return;
    w->alerts++;
    w->latest_begin = w->pane;
    largest->leads = true;
    for (guint i = 0; i < w->places->len; i++) {
        watched_place *p = place_number(w, i);
        if (p->bad >= 2 && p->alert == 0)
            p->alert = w->alerts;
    }
    const watch_alert a = {.number = w->alerts,
                           .place = name_of(w, largest),
                           .number_of_place = largest->now_at,
                           .from_ns = largest->since_ns,
                           .to_ns = to_ns,
                           .usual_ns = largest->mean,
                           .now_ns = largest->now,
                           .share = largest->excess};
    w->take(w->user, &a, v);
}

static bool is_over(const watch *w, unsigned alert)
{
    for (guint i = 0; i < w->places->len; i++)
        if (place_number(w, i)->alert == alert && place_number(w, i)->good < WATCH_GOOD)
            return false;
    return true;
}

/* Reports the end of alerts whose places were all good in the last WATCH_GOOD panes. */
static void end_alerts(watch *w, int64_t to_ns)
{
    for (guint i = 0; i < w->places->len; i++) {
        watched_place *p = place_number(w, i);
        if (!p->leads || !is_over(w, p->alert))
            continue;
        const watch_alert a = {.number = p->alert,
                               .ends = true,
                               .place = name_of(w, p),
                               .number_of_place = VISIT_NONE,
                               .from_ns = p->since_ns,
                               .to_ns = to_ns,
                               .usual_ns = p->mean,
                               .now_ns = p->now,
                               .share = p->excess};
        for (guint k = 0; k < w->places->len; k++)
            if (place_number(w, k)->alert == a.number)
                place_number(w, k)->alert = 0;
        p->leads = false;
        w->take(w->user, &a, NULL);
    }
}

uint32_t watch_add(watch *w, const visits *v, int64_t from_ns, int64_t to_ns)
{
    double total_ns = 0;
    uint32_t count = sum_pane(w, v, from_ns, to_ns, &total_ns);
    if (count == 0)
        return 0;
    w->pane++;
    for (guint i = 0; i < w->places->len; i++)
        judge_pane(w, place_number(w, i), count, total_ns, from_ns);
    begin_alerts(w, v, to_ns);
    end_alerts(w, to_ns);
    return count;
}

bool watch_is_calm(const watch *w)
{
    for (guint i = 0; i < w->places->len; i++)
        if (place_number(w, i)->bad > 0 || place_number(w, i)->alert != 0)
            return false;
    return w->pane >= WATCH_WARM_UP;
}
