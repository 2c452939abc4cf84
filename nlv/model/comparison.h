/*
 * Compares the requests of two sides: two logs, two groups of requests, or the requests of two time ranges.
 *
 * request_reading.c adds the requests of the first side and then the requests of the second side. The module keeps the
 * sums of a side in at most UNITS_MAX blocks of consecutive requests, because requests of one run depend on each other
 * (requests/contrast.h). The rows' times on the critical paths, divided by the number of requests, add up to the
 * requests' mean duration. Memory is bounded: one row contains the sums of all rows beyond COMPARED_ROWS_MAX. The
 * caller locks a comparison that several threads use.
 */
#ifndef NLV_COMPARISON_H
#define NLV_COMPARISON_H

#include "base/distribution.h"
#include "model/heat_map.h"
#include "requests/contrast.h"
#include "requests/request_reader.h"

enum { COMPARED_SIDES = 2, COMPARED_ROWS_MAX = 4096 };

/* The error probability of the confidence intervals, and the false discovery rate of all tests of a comparison. */
#define COMPARED_LEVEL 0.05

/* A span, or an edge between two events. */
typedef struct compared_row {
    char *name, *program; /* program is "" for an edge */
    bool is_edge;
    unit_sums path[COMPARED_SIDES]; /* sums in each unit: time on critical paths in nanoseconds; `count` is not used */
    contrast time;                  /* time on the critical path, per request; set by comparison_finish */
    bool changed;
} compared_row;

/* One request of a side. */
typedef struct compared_request {
    int64_t duration_ns, step_ns; /* step_ns: time of one of the request's records that the drawing shows as steps */
    uint64_t step_place;          /* place of this record (batch.h) */
    size_t lifeline;
} compared_request;

typedef struct comparison_side {
    char *name; /* the side's name, as shown to the user */
    uint64_t requests, failed;
    uint64_t cut;             /* number of the side's requests that are incomplete because of the memory limit */
    uint64_t unselected;      /* number of requests in the side's logs that the side does not include */
    uint64_t undrawn;         /* number of excluded requests, whose events the drawing does not show */
    uint64_t overlapping;     /* number of excluded spans that cannot be assigned to requests */
    uint64_t bins[HEAT_ROWS]; /* number of requests by duration (heat_map.h) */
    uint32_t unit_bins[UNITS_MAX][HEAT_ROWS];
    nl_distribution distribution; /* durations; empty after comparison_finish */
    int64_t median_ns, p99_ns;    /* quantiles of the durations; set by comparison_finish */
    unit_sums durations;          /* number of requests in each unit, and the sum of their durations */
    uint64_t unit_size;           /* number of requests per unit */
    GArray *sample;               /* compared_request: every sample_step-th request */
    uint64_t sample_step;
    compared_request typical; /* the request of median duration; set by comparison_finish */
} comparison_side;

typedef struct comparison {
    comparison_side sides[COMPARED_SIDES];
    GPtrArray *rows; /* compared_row; after comparison_finish, the largest difference of time comes first */
    contrast total;  /* the requests' duration */
    bool changed;    /* the mean durations differ */
    /* The share of a side's requests that are slower than the median of both sides. A few very slow requests can hide a
     * difference of the means, but cannot hide a difference of these shares. */
    contrast slower;
    bool most_changed; /* these shares differ */
    char *reason;      /* a sentence with the reason why nothing can be compared, or NULL */
    char *filter;      /* the filter that the requests of both sides match, or NULL */
    GHashTable *index; /* maps names to rows */
} comparison;

/* Returns an empty comparison. `names` contains the names of the sides, which the function copies. */
comparison *comparison_new(const char *const names[COMPARED_SIDES]);
void comparison_free(comparison *c); /* NULL is allowed */

/* Maps the numbers that a reader gives to names to rows of the comparison. Each reader of each side has its own map. */
typedef GHashTable comparison_map;
comparison_map *comparison_map_new(void);

/* Adds a request to a side. `g` is the request's graph, `request` describes the request, and `map` belongs to `reader`.
 */
void comparison_add(comparison *c, unsigned side, comparison_map *map, const request_graph *g,
                    const request_reader *reader, const compared_request *request);

/* Computes the differences and sorts the rows. Call the function after the last request. */
void comparison_finish(comparison *c);

static inline const compared_row *comparison_row(const comparison *c, guint i)
{
    return g_ptr_array_index(c->rows, i);
}

#endif
