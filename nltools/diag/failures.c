#include "config.h"

#include "diag/search.h"

#include <math.h>
#include <string.h>

enum { FAILED_MIN = 5, PARTIAL_MIN = 20 };

/*
 * Minimum part of the requests that fail; minimum part of the requests that contain a failure but succeed; in the
 * latter case, minimum part of the visits that fail.
 */
#define SHARE_MIN 0.02
#define PARTIAL_SHARE_MIN 0.05
#define PARTIAL_HERE_MIN 0.5

/* Minimum ratio of the failures on a host to the failures on other hosts if the host is named; maximum probability of
 * this difference, or of so many failures, by chance. */
#define HOST_FACTOR 3
#define CHANCE_MAX (FALSE_ALARMS_MAX / FAMILIES)

/* Minimum length of the span that stands for a request, as a part of the request's time. */
#define ROOT_MIN 0.9

/*
 * Returns the span that stands for a request, which is a span without a parent that lasts nearly as long as the
 * request. Returns NULL if there is no such span.
 */
static const visit *root_of(const visits *v, const request *q)
{
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (x->parent == VISIT_NONE && place_at(v, place_of_visit(v, x))->kind == PLACE_SPAN &&
            (double)(x->to_ns - x->from_ns) >= ROOT_MIN * (double)(q->to_ns - q->from_ns))
            return x;
    }
    return NULL;
}

/*
 * Returns whether two visits are attempts at the same operation: visits of one place, or edges that begin with the same
 * event.
 */
static bool is_same_attempt(const visits *v, const visit *x, const visit *y)
{
    const place *p = place_at(v, place_of_visit(v, x)), *q = place_at(v, place_of_visit(v, y));
    return p == q ||
           (p->kind == PLACE_EDGE && q->kind == PLACE_EDGE && p->from == q->from && p->from_program == q->from_program);
}

/* Returns whether a request has a successful attempt after a failed visit. */
static bool is_repaired(const visits *v, const request *q, const visit *failed)
{
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (!x->failed && x->from_ns >= failed->to_ns && is_same_attempt(v, x, failed))
            return true;
    }
    return false;
}

/* Returns whether a request has failed. If a span stands for the request, the status of this span decides. Otherwise,
 * the last failure counts, unless a later attempt succeeds. */
static bool has_failed(const visits *v, const request *q)
{
    const visit *root = root_of(v, q), *last = NULL;
    if (root != NULL || !q->failed)
        return root != NULL && root->failed;
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (x->failed && (last == NULL || x->to_ns >= last->to_ns))
            last = x;
    }
    return last != NULL && !is_repaired(v, q, last);
}

/* Returns the visit in which a failure began: the failed visit that ended first. */
static const visit *origin_of(const visits *v, const request *q)
{
    const visit *origin = NULL;
    for (uint32_t i = 0; i < q->count; i++) {
        const visit *x = visit_at(v, q->first + i);
        if (x->failed && (origin == NULL || x->to_ns < origin->to_ns))
            origin = x;
    }
    return origin;
}

/*
 * For a successful request, returns the failed visit that ended first. Returns NULL if the request has no failed visit,
 * or if a later attempt succeeded.
 */
static const visit *partial_failure_of(const visits *v, const request *q)
{
    const visit *origin = q->failed ? origin_of(v, q) : NULL;
    return origin != NULL && !is_repaired(v, q, origin) ? origin : NULL;
}

/* The failures of one kind, by the place where they began. */
typedef struct failure_counts {
    uint32_t *by_site, *by_place;
    uint32_t failed, most; /* number of requests with a failure; the place where most failures began */
} failure_counts;

static failure_counts failure_counts_new(const visits *v)
{
    return (failure_counts){.by_site = g_new0(uint32_t, v->sites->len + 1),
                            .by_place = g_new0(uint32_t, v->places->len + 1)};
}

static void failure_counts_free(failure_counts *c)
{
    g_free(c->by_site);
    g_free(c->by_place);
}

static void count_failure(failure_counts *c, const visits *v, const visit *x)
{
    uint32_t place = place_of_visit(v, x);
    c->failed++;
    c->by_site[x->site]++;
    c->by_place[place]++;
    c->most = c->by_place[place] > c->by_place[c->most] ? place : c->most;
}

/* The host with most failures at the place with most failures. */
typedef struct failing_host {
    const char *name;         /* NULL: other hosts may fail as often */
    double here;              /* part of the visits to the host (or, without a name, to the place) that failed */
    uint32_t failed, visited; /* numbers of visits to the place */
    bool is_only;             /* the place has no other hosts */
} failing_host;

/* The numbers of failures and visits of a host at a place. */
typedef struct host_failures {
    uint32_t failed, visited;
} host_failures;

/* Returns whether a host fails more often than the other hosts, by a factor of HOST_FACTOR. The probability by chance
 * is that of the host with most failures. */
static bool fails_more(const host_failures *here, const failing_host *all, guint host_count)
{
    double others = (all->failed - here->failed + 0.5) / fmax((double)(all->visited - here->visited), 0.5);
    return here->failed > HOST_FACTOR * others * here->visited &&
           host_count * hypergeometric_tail(all->visited, all->failed, here->visited, here->failed) <= CHANCE_MAX;
}

static failing_host find_host(const failure_counts *c, const visits *v)
{
    const place *p = place_at(v, c->most);
    GHashTable *hosts = g_hash_table_new_full(NULL, NULL, NULL, g_free); /* host -> host_failures */
    failing_host found = {0};
    const host_failures *most = NULL;
    const char *host = NULL;
    for (guint i = 0; i < p->sites->len; i++) {
        uint32_t n = g_array_index(p->sites, uint32_t, i);
        const site *at = site_at(v, n);
        host_failures *of = g_hash_table_lookup(hosts, at->host);
        if (of == NULL) {
            of = g_new0(host_failures, 1);
            g_hash_table_insert(hosts, (gpointer)at->host, of);
        }
        of->failed += c->by_site[n];
        of->visited += at->count;
        found.failed += c->by_site[n];
        found.visited += at->count;
        if (most == NULL || of->failed > most->failed) {
            most = of;
            host = at->host;
        }
    }
    found.is_only = g_hash_table_size(hosts) == 1;
    found.here = (double)found.failed / MAX(found.visited, 1);
    if (!found.is_only && fails_more(most, &found, g_hash_table_size(hosts))) {
        found.name = host;
        found.here = (double)most->failed / MAX(most->visited, 1);
    }
    g_hash_table_destroy(hosts);
    return found;
}

/*
 * Returns whether failures of a part of successful requests are a fault. Programs often expect that a step fails. It is
 * a fault if one of several hosts fails, or if significantly more than PARTIAL_HERE_MIN of the visits to an only host
 * fail.
 */
static bool is_partial_fault(const failing_host *host)
{
    uint32_t succeeded = host->visited - MIN(host->failed, host->visited);
    if (host->failed < PARTIAL_MIN)
        return false;
    return host->name != NULL || (host->is_only && host->here > PARTIAL_HERE_MIN &&
                                  binomial_tail(succeeded, host->visited, 1 - PARTIAL_HERE_MIN) <= CHANCE_MAX);
}

/* Adds a finding. `partial` is true if the requests succeed. */
static void add_finding(findings *f, const failure_counts *c, const failing_host *host, bool partial)
{
    const visits *v = f->visits;
    finding *x = findings_add(f, "failures");
    x->host = host->name;
    x->place = c->most;
    x->share = (double)c->failed / v->requests->len;
    x->sure = 0.95;
    x->explained = (double)c->by_place[c->most] / c->failed;
    char *where = text_place(v, c->most, x->host), *part = text_share(x->share);
    x->answer = partial
                    ? g_strdup_printf("%s of the requests succeed although a part of them fails, most of them in %s",
                                      part, where)
                    : g_strdup_printf("%s of the requests fail, most of them in %s", part, where);
    x->advice = "look at the messages of the failed requests: nlstat --slowest, or nlv";
    finding_evidence(x,
                     partial ? "%u of %u requests contain a failure; in %u of them, this place failed first"
                             : "%u of %u requests failed; in %u of them, this place failed first",
                     c->failed, v->requests->len, c->by_place[c->most]);
    finding_evidence(x, "%.1f %% of the visits to this place failed%s", 100 * host->here,
                     x->host != NULL ? " on this host" : "");
    g_free(where);
    g_free(part);
}

void find_failures(findings *f)
{
    const visits *v = f->visits;
    failure_counts whole = failure_counts_new(v), partial = failure_counts_new(v);
    for (guint i = 0; i < v->requests->len; i++) {
        const request *q = request_at(v, i);
        bool failed = has_failed(v, q);
        const visit *x = failed ? origin_of(v, q) : partial_failure_of(v, q);
        if (x != NULL)
            count_failure(failed ? &whole : &partial, v, x);
    }
    if (whole.failed >= FAILED_MIN && whole.failed >= SHARE_MIN * v->requests->len) {
        failing_host host = find_host(&whole, v);
        add_finding(f, &whole, &host, false);
    }
    /*
     * Programs often expect that a step fails. A failed step is a fault only if it fails on one of several hosts, or if
     * nearly every visit of the only host fails.
     */
    if (partial.failed >= PARTIAL_MIN && partial.failed >= PARTIAL_SHARE_MIN * v->requests->len) {
        failing_host host = find_host(&partial, v);
        if (is_partial_fault(&host))
            add_finding(f, &partial, &host, true);
    }
    failure_counts_free(&whole);
    failure_counts_free(&partial);
}
