/*
 * Reads a log as requests for nldiag and nlstat. A request consists of visits.
 *
 * A visit is one span, one edge of a request's critical path, or one message between a span and its child. A site is
 * where visits occur: a span of a program on a host, or the path from one event to another. A place is the same span or
 * path on any host and in any process of a program (processes.h), and its sites are peers. The times on the critical
 * path add up to the requests' time. The own time of a visit is the time in which none of the visit's children was
 * running. For a span with children, only the part of this time on the critical path counts.
 *
 * Memory is bounded: when the module reaches the limit, it drops every second request. Not thread-safe.
 */
#ifndef NLDIAG_VISITS_H
#define NLDIAG_VISITS_H

#include "connections/connection_causes.h"
#include "diag/columns.h"
#include "diag/host_orders.h"
#include "diag/series.h"
#include "diag/span_parts.h"
#include "diag/time_units.h"
#include "diag/visit_ends.h"
#include "requests/assembler.h"
#include "stat/subject.h"

#define VISIT_NONE UINT32_MAX

typedef struct visit {
    int64_t from_ns, to_ns;
    float own_ns;  /* own time in nanoseconds */
    float path_ns; /* time on the critical path in nanoseconds */
    uint32_t request, site;
    uint32_t parent; /* index of the parent visit, or VISIT_NONE */
    uint32_t span;   /* for an edge: the visit of the span that begins at the edge's end or, if no span begins there, of
                        the span that ends at its start; otherwise VISIT_NONE */
    uint32_t ends;   /* number of the TCP connection that the visit's records name (visit_ends.h), or 0 */
    uint64_t begin_columns; /* bit c: the record of the span's start has a value in column c */
    bool failed;
} visit;

/* A program on a host, with the name that its records contain. */
typedef struct instance {
    const char *program, *host;
    uint32_t first;      /* number of the first instance on the same host */
    double time_unit_ns; /* see time_units.h */
} instance;

typedef struct site {
    uint32_t place;
    uint32_t instance, from_instance; /* instance: number of the instance of the span or of the edge's end;
                                         from_instance: of the edge's start */
    const char *host;                 /* host of the span, or of the edge's end */
    const char *from_host;            /* host of the edge's start, or of the caller; otherwise "" */
    double path_ns;
    uint32_t count;
    uint32_t kind, from_number, number; /* kind of request, and numbers of the hosts in the reader of this kind */
    double clock_ns; /* for an edge: the maximum difference of its hosts' clocks in nanoseconds; INFINITY: unknown */
    uint32_t span_count, parent_count; /* number of spans, and number of spans with children */
} site;

typedef enum place_kind { PLACE_SPAN, PLACE_EDGE, PLACE_UNKNOWN } place_kind;

typedef struct place {
    place_kind kind;
    const char *span;                   /* name of the span, for spans */
    const char *from, *to;              /* names of the events, for edges */
    const char *program, *from_program; /* the name of a program, or the pattern of the names of its processes */
    double path_ns;
    uint32_t first, count;       /* range in by_place */
    uint32_t work_count;         /* number of the place's visits in by_work, which begin at `first` */
    uint32_t repeats;            /* number of elements of `repeats` that belong to the place's visits */
    bool has_children, inferred; /* inferred: the place is an edge that no record names */
    const char *server_field; /* the field that names the visits' servers, which are then the visits' hosts (servers.h);
                                 NULL: no field */
    bool has_value_hosts;     /* the visits' hosts are values of server_field, and no host of the log has such a name */
    bool has_only_served;     /* another place has the visits without server_field */
    GArray *sites;            /* uint32_t */
} place;

typedef struct request {
    int64_t from_ns, to_ns;
    uint32_t first, count; /* range of visits */
    bool failed;
} request;

/* The end of a repeat in a joined visit (repeats.h), except for the visit's last repeat. */
typedef struct repeat_end {
    uint32_t visit; /* index of the visit */
    int64_t time_ns;
} repeat_end;

enum { CLOCK_CALLS_MAX = 512 };

/* Bounds on the difference between two hosts' clocks, computed from calls whose records name the parent span. */
typedef struct clock_bound {
    const char *a, *b;             /* hosts */
    const char *program;           /* program on host b */
    uint64_t forward, late, early; /* forward: number of calls; late: calls that end after their callers; early: calls
                                      that begin before their callers */
    float *begins_ns, *ends_ns;    /* for a sample of the calls: the callee's time minus the caller's time, at the start
                                      and at the end */
    uint32_t kept;                 /* size of the sample */
    uint32_t stride;               /* number of calls for each call in the sample */
    double low_ns, high_ns; /* limits of the time by which b's clock is ahead of a's clock, from 19 of 20 calls */
    bool measured;          /* sensors have measured the difference of these clocks */
    uint32_t kind, a_number, b_number;
} clock_bound;

/* A host whose times were corrected, and the maximum error of the corrected times. */
typedef struct clock_correction {
    const char *host;
    double error_ns;
} clock_correction;

typedef struct visits {
    GArray *requests, *all; /* elements are request; elements are visit */
    GArray *sites;          /* elements are site */
    GArray *places;         /* elements are place */
    GArray *instances;      /* elements are instance */
    bool has_processes;     /* the module has joined the places of several processes */
    GArray *repeats;        /* elements are repeat_end, sorted by visit and then by time */
    uint32_t *by_place;     /* indices of visits, sorted by place and then by time */
    /*
     * Like by_place, but without spans that contain other spans and have no own time on a critical path. These spans
     * are not fast visits, because their requests waited elsewhere. Places have the same first positions as in
     * by_place.
     */
    uint32_t *by_work;
    columns *columns;
    visit_ends *ends;
    span_parts *parts;
    time_units *units;
    series_set *series;
    connection_table *connections;
    GPtrArray *connection_results; /* const connection_result *, with slices */
    uint64_t records, cut;
    bool selects_records;   /* the requests consist only of records that match --where */
    uint64_t lossy;         /* number of requests that lack records */
    GArray *corrections;    /* elements are clock_correction */
    GArray *clock_doubts;   /* elements are visits_clock_doubt, the largest difference of each kind of request first */
    uint32_t dropped;       /* number of requests that the module has dropped because of the memory limit */
    uint32_t sites_dropped; /* number of requests that the module has dropped because there were too many sites */
    double total_ns;
    bool has_nanoseconds;     /* see request_reader_has_nanoseconds */
    const char *failure_test; /* an expression that matches the records that report a failure; NULL: no record does */
    uint64_t overlapping;     /* number of spans without IDs that overlap and cannot be separated (assembler.h) */
    uint64_t separate;        /* number of requests without such spans, including dropped requests */
    int64_t from_ns, to_ns;
    GPtrArray *ids; /* names of the ID fields, for reports */
    GArray *bounds; /* elements are clock_bound */
    host_orders *orders;
    uint32_t lifelines; /* number of kinds of lifelines found, including kinds that are not requests */
} visits;

/* Two hosts whose clocks seem to differ (requests/clock_doubts.h). */
typedef struct visits_clock_doubt {
    const char *host, *other; /* interned */
    double ahead_ns;
} visits_clock_doubt;

typedef struct visits_reader visits_reader;

/* Returns the time to use for a record, in nanoseconds since 1970. */
typedef int64_t visits_clock(void *user, const nl_record *record);

/* Returns a new reader. `clock`, which is called with `user`, may be NULL. `options` must outlive the reader. */
visits_reader *visits_reader_new(subject_options *options, visits_clock *clock, void *user);
bool visits_read(visits_reader *r, const char *source);

void visits_add(visits_reader *r, const nl_record *record);

/* Ends reading and frees the reader. Returns the visits, which the caller frees with visits_free. */
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

/* Returns whether the share of overlapping spans without IDs is more than 5 %, so that the other requests do not
 * represent the log. */
static inline bool visits_overlap(const visits *v)
{
    return (double)v->overlapping > 0.05 * (double)(v->overlapping + v->separate);
}

static inline uint32_t place_of_visit(const visits *v, const visit *x)
{
    return site_at(v, x->site)->place;
}

/* Returns the host of all sites of a place, or NULL if there are several hosts. */
static inline const char *place_only_host(const visits *v, const place *p)
{
    const char *host = site_at(v, g_array_index(p->sites, uint32_t, 0))->host;
    for (guint n = 1; n < p->sites->len; n++)
        if (site_at(v, g_array_index(p->sites, uint32_t, n))->host != host)
            return NULL;
    return host;
}

/* Returns whether the clocks of a place's hosts are known well enough for an effect of effect_ns nanoseconds. */
static inline bool place_clocks_are_known(const visits *v, const place *p, double effect_ns)
{
    for (guint n = 0; n < p->sites->len; n++)
        if (2 * site_at(v, g_array_index(p->sites, uint32_t, n))->clock_ns > effect_ns)
            return false;
    return true;
}

static inline const instance *instance_at(const visits *v, size_t i)
{
    return &g_array_index(v->instances, instance, i);
}

static inline request *request_at(const visits *v, size_t i)
{
    return &g_array_index(v->requests, request, i);
}

#endif
