/*
 * A log as nldiag examines it: requests, and the visits of which they consist.
 *
 * A visit is one span, or one edge of a request's critical path. A site is where visits are: a span of a program on a
 * host, or the way from one event to another. A place is the same on any host: its sites are peers. Time on the
 * critical path adds up to the requests' time. The own time of a visit is the time in which no child ran.
 *
 * Memory is bounded: beyond the limit, every second request is dropped, as often as needed. One thread at a time.
 */
#ifndef NLDIAG_VISITS_H
#define NLDIAG_VISITS_H

#include "diag/columns.h"
#include "diag/series.h"
#include "requests/assembler.h"
#include "stat/subject.h"

#define VISIT_NONE UINT32_MAX

typedef struct visit {
    int64_t from_ns, to_ns;
    float own_ns;  /* without children */
    float path_ns; /* on the critical path */
    uint32_t request, site;
    uint32_t parent; /* index of a visit, or VISIT_NONE */
    bool failed;
} visit;

typedef struct site {
    uint32_t place;
    const char *host;      /* of the span, or of the edge's end */
    const char *from_host; /* of the edge's begin; "" otherwise */
    double path_ns;
    uint32_t count;
    uint32_t kind, from_number, number; /* of its hosts, in the reader of its kind */
    double clock_ns;                    /* of an edge: the maximum difference of its hosts' clocks; or INFINITY */
} site;

typedef enum place_kind { PLACE_SPAN, PLACE_EDGE, PLACE_UNKNOWN } place_kind;

typedef struct place {
    place_kind kind;
    const char *span;      /* of spans */
    const char *from, *to; /* of edges: events */
    const char *program, *from_program;
    double path_ns;
    uint32_t first, count;       /* in by_place */
    bool has_children, inferred; /* inferred: an edge that no record names */
    GArray *sites;               /* uint32_t */
} place;

typedef struct request {
    int64_t from_ns, to_ns;
    uint32_t first, count; /* visits */
    bool failed;
} request;

enum { CLOCK_CALLS_MAX = 512 };

/* How far the clocks of two hosts may differ, from calls with explicit parents. */
typedef struct clock_bound {
    const char *a, *b;             /* hosts */
    const char *program;           /* of b */
    uint64_t forward, late, early; /* calls; those that end after the caller, and begin before it */
    float *begins_ns, *ends_ns;    /* of a sample of the calls: the callee's time less the caller's */
    uint32_t kept, stride;         /* size of the sample; it has one call of so many */
    double low_ns, high_ns;        /* how far b's clock is ahead of a's, in 19 of 20 calls */
    bool measured;                 /* sensors measured the difference of these clocks */
    uint32_t kind, a_number, b_number;
} clock_bound;

typedef struct visits {
    GArray *requests, *all; /* request, visit */
    GArray *sites;          /* site */
    GArray *places;         /* place */
    uint32_t *by_place;     /* indices of visits: by place, then by time */
    columns *columns;
    series_set *series;
    uint64_t records, in_requests, cut, failed_requests;
    request_problems problems;
    uint32_t dropped;       /* requests, because of memory */
    uint32_t sites_dropped; /* requests, because of the maximum of sites */
    double total_ns;
    int64_t from_ns, to_ns;
    GPtrArray *ids;     /* names of ID fields, for people */
    GArray *bounds;     /* clock_bound */
    uint32_t lifelines; /* kinds of requests found, also those that are none */
} visits;

typedef struct visits_reader visits_reader;

/* Returns the time to use for a record. */
typedef int64_t visits_clock(void *user, const nl_record *record);

/* clock may be NULL. options must outlive the reader. */
visits_reader *visits_reader_new(subject_options *options, visits_clock *clock, void *user);
bool visits_read(visits_reader *r, const char *source);

/* Ends the reading and frees the reader. */
visits *visits_finish(visits_reader *r);
void visits_free(visits *v);

static inline visit *visit_at(const visits *v, size_t i)
{
    return &g_array_index(v->all, visit, i);
}

static inline site *site_at(const visits *v, size_t i)
{
    return &g_array_index(v->sites, site, i);
}

static inline place *place_at(const visits *v, size_t i)
{
    return &g_array_index(v->places, place, i);
}

static inline uint32_t place_of_visit(const visits *v, const visit *x)
{
    return site_at(v, x->site)->place;
}

static inline request *request_at(const visits *v, size_t i)
{
    return &g_array_index(v->requests, request, i);
}

#endif
