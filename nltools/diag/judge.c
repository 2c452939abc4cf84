/* Decides the verdict. A log without findings is healthy only if the log would have shown a cause. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/findings.h"

/* The log may hide a cause if more than this share of the time belongs to a place about which the log shows nothing. */
#define UNEXPLAINED_MAX 0.5

enum {
    ZONE_COUNT_MIN = 10,
    FAST_ONE_OF = 10 /* one in FAST_ONE_OF messages is a fast message */
};
_Static_assert(REQUESTS_MIN == 60, "a reason names this number");

/* Returns the expected gain from removing a cause, as a share of the requests' time. */
static double worth_of(const finding *x)
{
    const finding *of = x->rival_of;
    return of != NULL ? fmin(worth_of(of), x->possible * x->sure) : (x->gain > 0 ? x->gain : x->share) * x->sure;
}

/* Orders findings by descending expected gain. Wrong clocks come first, because all times depend on them. Ordinary
 * findings come last. */
static int by_worth(gconstpointer a, gconstpointer b)
{
    const finding *x = *(finding *const *)a, *y = *(finding *const *)b;
    bool first = strcmp(x->cause, "clock") == 0, second = strcmp(y->cause, "clock") == 0;
    if (first != second)
        return second - first;
    if (x->is_ordinary != y->is_ordinary)
        return x->is_ordinary - y->is_ordinary;
    int order = (worth_of(x) < worth_of(y)) - (worth_of(x) > worth_of(y));
    return order != 0 ? order : (x->rival_of != NULL) - (y->rival_of != NULL);
}

/* The probability that a rival is the true cause if its finding is wrong: 16 of 48 rivals in the runs of the
 * calibration. */
#define RIVAL_RIGHT 0.34

/* Moves the rivals of all findings to the list. */
static void list_rivals(findings *f)
{
    for (guint i = 0, count = f->list->len; i < count; i++) {
        const finding *x = g_ptr_array_index(f->list, i);
        while (x->rivals->len > 0) {
            finding *rival = g_ptr_array_steal_index(x->rivals, x->rivals->len - 1);
            rival->sure = fmin(RIVAL_RIGHT * (1 - x->sure), x->sure); /* the rival explains less */
            rival->is_ordinary = x->is_ordinary;
            g_ptr_array_add(f->list, rival);
        }
    }
}

static bool has_connections(const visits *v, const char *host)
{
    const GPtrArray *all = series_of_host(v->series, host);
    for (guint i = 0; all != NULL && i < all->len; i++) {
        const sensor_series *s = g_ptr_array_index(all, i);
        if (strcmp(s->event, "TcpConnection") == 0)
            return true;
    }
    return false;
}

/*
 * Returns whether the log shows nothing about a place: the path between hosts without sensors of connections, or the
 * time between two events that no record connects.
 */
static bool is_unobserved(const visits *v, const place *p)
{
    const site *at = site_at(v, g_array_index(p->sites, uint32_t, 0));
    if (p->kind != PLACE_EDGE)
        return p->kind == PLACE_UNKNOWN;
    if (at->host != at->from_host)
        return !has_connections(v, at->from_host) && !has_connections(v, at->host);
    return p->inferred || (*p->program == '\0' && *at->host == '\0');
}

/* Returns whether the log shows nothing about a place, or only that a message was on its way from one program to
 * another. */
static bool is_hidden(const visits *v, const place *p)
{
    return is_unobserved(v, p) || (p->kind == PLACE_EDGE && p->program != p->from_program);
}

/* Returns the number of the place with the largest part of the requests' time. */
static uint32_t largest_place(const visits *v)
{
    uint32_t largest = 0;
    for (guint i = 1; i < v->places->len; i++)
        if (place_at(v, i)->path_ns > place_at(v, largest)->path_ns)
            largest = i;
    return largest;
}

/*
 * Returns the difference of time zones, in nanoseconds, by which all visits of an edge seem too long. Returns 0 if
 * there is no such difference.
 */
static int64_t zone_of_edge(const visits *v, const place *p)
{
    int64_t shortest_ns = INT64_MAX;
    for (uint32_t i = 0; i < p->count; i++) {
        const visit *x = visit_at(v, v->by_place[p->first + i]);
        shortest_ns = MIN(shortest_ns, x->to_ns - x->from_ns);
    }
    return p->kind == PLACE_EDGE && p->count >= ZONE_COUNT_MIN ? request_find_zone(shortest_ns) : 0;
}

/* Returns whether a place is a mixture: it contains all places that exceed the maximum number of names (NAME_OTHER). */
static bool is_mixture(const place *p)
{
    const char *const names[] = {p->span, p->from, p->to, p->program, p->from_program};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (strcmp(names[i], NAME_OTHER) == 0)
            return true;
    return false;
}

/* If most of the requests' time belongs to mixtures, returns a text that explains the mixtures; otherwise, returns
 * NULL. The caller frees the text with g_free. */
static char *reason_mixture(const visits *v)
{
    double sum = 0;
    for (guint i = 0; i < v->places->len; i++)
        sum += is_mixture(place_at(v, i)) ? place_at(v, i)->path_ns : 0;
    if (sum <= UNEXPLAINED_MAX * v->total_ns)
        return NULL;
    char *part = text_share(sum / v->total_ns),
         *reason =
             g_strdup_printf("the log has too many event names, and %s of the requests' time belongs to names beyond "
                             "the maximum; log the varying parts of the names as fields, or select events with --where",
                             part);
    g_free(part);
    return reason;
}

/*
 * Returns a text that names the edge with most of the requests' time if its ends are in different time zones, or NULL.
 */
static char *reason_zone(const visits *v)
{
    uint32_t largest = largest_place(v);
    const place *p = place_at(v, largest);
    int64_t zone_ns = p->path_ns > UNEXPLAINED_MAX * v->total_ns ? zone_of_edge(v, p) : 0;
    if (zone_ns == 0)
        return NULL;
    char *name = text_place(v, largest, NULL), *shortest = text_ns((double)zone_ns),
         *reason = g_strdup_printf("each %s takes at least %s: the two events are in different time zones, or the "
                                   "clock of a host is wrong; log times in UTC",
                                   name, shortest);
    g_free(name);
    g_free(shortest);
    return reason;
}

/* Returns the unexplained waits of the messages at an edge, in nanoseconds: the sum of the times beyond twice the time
 * of a fast message, without the time that findings claim. The factor 2 allows for the usual variation of a network. */
static double unexplained_waits(const findings *f, const place *p)
{
    const visits *v = f->visits;
    double *times = g_new(double, p->count + 1), sum = 0;
    for (uint32_t i = 0; i < p->count; i++)
        times[i] = (double)visit_at(v, v->by_place[p->first + i])->own_ns;
    sort_doubles(times, p->count);
    double fast_ns = times[p->count / FAST_ONE_OF];
    g_free(times);
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        uint32_t index = v->by_place[i];
        const visit *x = visit_at(v, index);
        sum += fmax(0, (double)x->own_ns - (double)f->claimed[index] - 2 * fast_ns) * path_weight(x);
    }
    return sum;
}

/* Returns a text that names an edge at which messages wait for an unknown reason, or NULL. */
static char *reason_waits(const findings *f)
{
    const visits *v = f->visits;
    for (guint i = 0; i < v->places->len; i++) {
        const place *p = place_at(v, i);
        double waits_ns = p->path_ns >= CAUSE_SHARE * v->total_ns && p->kind == PLACE_EDGE && is_unobserved(v, p)
                              ? unexplained_waits(f, p)
                              : 0;
        if (waits_ns < CAUSE_SHARE * v->total_ns)
            continue;
        char *part = text_share(waits_ns / v->total_ns), *where = text_place(v, i, NULL),
             *reason = g_strdup_printf(
                 "%s sometimes takes much longer, which costs %s of the requests' time, and the log does "
                 "not show why; log when requests leave the queue there, or run nlsensor tcp",
                 where, part);
        g_free(part);
        g_free(where);
        return reason;
    }
    return NULL;
}

/*
 * Returns a text that names a place at which a few visits take very long for an unknown reason, or NULL. A fault that
 * affects few visits, such as a pause or a lost message, may be the reason, but no field separates these visits from
 * the others.
 */
static char *reason_tail(const findings *f)
{
    const visits *v = f->visits;
    for (guint i = 0; i < v->places->len; i++) {
        const place *p = place_at(v, i);
        double tail_ns = p->path_ns >= CAUSE_SHARE * v->total_ns ? place_find_tail(f, i) : 0;
        if (tail_ns < CAUSE_SHARE * v->total_ns)
            continue;
        char *part = text_share(tail_ns / v->total_ns), *where = text_place(v, i, NULL),
             *reason =
                 g_strdup_printf("some visits to %s take more than %.0f times as long as usual, which costs %s of "
                                 "the requests' time, and the log does not show why; log what these visits do as "
                                 "fields or events",
                                 where, TAIL_FACTOR, part);
        g_free(part);
        g_free(where);
        return reason;
    }
    return NULL;
}

/* Returns the time of a place, in nanoseconds, that no finding claims. */
static double unexplained_time(const findings *f, const place *p)
{
    double sum = p->path_ns;
    for (uint32_t i = p->first; i < p->first + p->count; i++) {
        uint32_t index = f->visits->by_place[i];
        sum -= (double)f->claimed[index] * path_weight(visit_at(f->visits, index));
    }
    return sum;
}

/* Returns the reason why the log may hide a cause, or NULL. */
static char *reason_unobserved(const findings *f)
{
    const visits *v = f->visits;
    uint32_t largest = largest_place(v);
    const place *p = place_at(v, largest);
    if (unexplained_time(f, p) <= UNEXPLAINED_MAX * v->total_ns || !is_hidden(v, p))
        return NULL;
    char *zone = reason_zone(v);
    if (zone != NULL)
        return zone;
    const bool doubts_clocks = p->kind == PLACE_EDGE && !place_clocks_are_known(v, p, p->path_ns / MAX(p->count, 1));
    char *part = text_share(p->path_ns / v->total_ns), *where = text_place(v, largest, NULL),
         *reason = g_strdup_printf(
             "%s accounts for %s of the requests' time, and the log does not show what happens there; "
             "log more events in this part of the program%s",
             where, part, doubts_clocks ? ", and ClockOffset records, because the hosts' clocks may differ" : "");
    g_free(part);
    g_free(where);
    return reason;
}

/* Returns a text that names a place whose visits vary too much or are too few to show a cause, or NULL. */
static char *reason_no_power(const findings *f)
{
    const visits *v = f->visits;
    for (guint i = 0; i < v->places->len; i++) {
        const place *p = place_at(v, i);
        if (p->path_ns < CAUSE_SHARE * v->total_ns || place_shows_causes(f, i))
            continue;
        char *part = text_share(p->path_ns / v->total_ns), *where = text_place(v, i, NULL),
             *reason = g_strdup_printf("the %u visits to %s (%s of the requests' time) vary too much or are too few to "
                                       "show a cause that takes a tenth of the time; log more requests",
                                       p->count, where, part);
        g_free(part);
        g_free(where);
        return reason;
    }
    return NULL;
}

void findings_judge(findings *f, const char *no_requests)
{
    const visits *v = f->visits;
    const char *reason = f->cannot_tell;
    list_rivals(f);
    g_ptr_array_sort(f->list, by_worth);
    f->cannot_tell = NULL;
    if (findings_have_fault(f))
        return;
    if (reason != NULL)
        ;
    else if (visits_overlap(v))
        reason = "requests overlap and have no ID, so it is unknown which events belong to which request; log "
                 "TRACE.ID, or TID if each thread serves one request at a time";
    else if (v->requests->len == 0)
        reason = no_requests;
    else if (v->sites_dropped > v->requests->len)
        reason = "the log has too many programs, spans and hosts; select some of them with --where";
    else if (v->requests->len < REQUESTS_MIN && (f->cannot_tell = reason_zone(v)) != NULL)
        return;
    else if (v->requests->len < REQUESTS_MIN)
        reason = "the log has too few requests; log at least 60 requests";
    else if (v->total_ns <= 0)
        reason = "all events of a request have the same time; log times with more digits";
    f->cannot_tell = reason != NULL ? g_strdup(reason) : reason_mixture(v);
    if (f->cannot_tell == NULL)
        f->cannot_tell = reason_unobserved(f);
    if (f->cannot_tell == NULL)
        f->cannot_tell = reason_waits(f);
    if (f->cannot_tell == NULL)
        f->cannot_tell = reason_tail(f);
    if (f->cannot_tell == NULL)
        f->cannot_tell = reason_no_power(f);
    f->healthy = f->cannot_tell == NULL;
}
