/*
 * The steps of objects, gathered from records as they come, as compactly as they can be kept: 16 bytes a step.
 *
 * An object is what the values of the id fields name; a step is a record of it with one of the lifeline's events. When
 * there are more steps than may be kept, those objects are handed out and forgotten that had no step among the latest
 * half: what comes for one of them later begins an object anew, which is counted. One thread at a time.
 */
#ifndef NLSTAT_GATHER_H
#define NLSTAT_GATHER_H

#include "requests/drawing.h"

typedef struct gather_step {
    int64_t time_ns;
    uint32_t object;
    uint16_t event; /* its place in the lifeline's order */
    uint16_t by;    /* the value that objects are told apart by, of this record: see gather_by; 0: none */
} gather_step;

/* An object with its steps by time; those of the same time as they came. */
typedef struct gather_object {
    const char *name; /* the values of its id fields, with / between */
    size_t name_size; /* bytes */
    uint64_t hash;    /* of the name, never 0 */
    const gather_step *steps;
    size_t step_count;
    uint16_t by;
} gather_object;

typedef struct gather gather;

/* Gets an object that will not be seen again, all its parts valid until it returns. */
typedef void gather_take(void *user, const gather_object *object);

/*
 * For a lifeline of a drawing, which must outlive it. by is the field that tells objects apart, HOST being the least
 * common host that an object visits, any other the first value that it has; NULL for none. At most steps_most steps are
 * kept.
 */
gather *gather_new(const drawing_lifeline *definition, const char *by, size_t steps_most, gather_take *take,
                   void *user);
void gather_free(gather *g);

/* Adds a record, if it is a step of an object: then the hash of that object's name, else 0. */
uint64_t gather_add(gather *g, const nl_record *record);

/* Hands out all that are left, in the order of their first steps. */
void gather_finish(gather *g);

/* The text of a value of by. The gatherer's own. */
const char *gather_by(const gather *g, uint16_t by);

/* How many objects were handed out before the end because steps were too many. */
uint64_t gather_early(const gather *g);

#endif
