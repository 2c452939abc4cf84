/*
 * Groups the records of a lifeline into requests as the records arrive.
 *
 * The values of the ID fields name a request. A step is a record of the request that has one of the lifeline's events.
 * A step takes 16 bytes. When the memory limit is reached, the gatherer hands out the incomplete requests that have no
 * step among the latest half of all steps. A later step with the same ID begins a new request. One thread at a time.
 */
#ifndef NLSTAT_GATHER_H
#define NLSTAT_GATHER_H

#include "requests/drawing.h"

enum { GATHER_BY_OTHERS = UINT16_MAX /* the group of all requests beyond the maximum number of groups */ };

typedef struct gather_step {
    int64_t time_ns;
    uint32_t request;
    uint16_t event; /* index in the lifeline's events */
    uint16_t by;    /* number of this record's group (gather_by); 0: none */
} gather_step;

/* A request with its steps in order of time. Steps with equal times are in the order of arrival. */
typedef struct gather_request {
    const char *name; /* the values of its ID fields, joined by "/" */
    size_t name_size; /* bytes */
    uint64_t hash;    /* hash of the name, never 0 */
    const gather_step *steps;
    size_t step_count;
    uint16_t by;
} gather_request;

typedef struct gather gather;

/* Receives a request, which is valid until the function returns. */
typedef void gather_take(void *user, const gather_request *request);

/*
 * Returns a new gatherer for a lifeline, which must outlive it. by is the field that groups requests, or NULL. The
 * group of a request is the first value of this field in the request. If the field is HOST, the group is the host that
 * the fewest requests visit. memory_max limits the memory for incomplete requests, in bytes.
 */
gather *gather_new(const drawing_lifeline *definition, const char *by, size_t memory_max, gather_take *take,
                   void *user);
void gather_free(gather *g);

/* Adds a record. Returns the hash of its request's name, or 0 if the record is not a step or not in the sample. */
uint64_t gather_add(gather *g, const nl_record *record);

/* Sets the sample: after this call, gather_add adds only steps of requests with (hash & mask) == value. */
void gather_sample(gather *g, uint64_t mask, uint64_t value);

/* Hands out all remaining requests, in the order of their first steps. */
void gather_finish(gather *g);

/* Returns the text of a group's number, which belongs to the gatherer. */
const char *gather_by(const gather *g, uint16_t by);

/* Returns the number of steps, including those not in the sample. */
uint64_t gather_steps(const gather *g);

/* Returns the number of requests that were handed out without their last event because the memory limit was reached. */
uint64_t gather_early(const gather *g);

#endif
