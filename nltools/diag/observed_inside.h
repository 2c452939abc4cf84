/* Shared by observed.c, legs.c, clocks.c, measured_clocks.c and resource.c. */
#ifndef NLDIAG_OBSERVED_INSIDE_H
#define NLDIAG_OBSERVED_INSIDE_H

#include "diag/observed.h"
#include "stat/gather.h"

typedef struct resources {
    GPtrArray *list;                  /* resource */
    GHashTable *by_key;               /* host, event, field and instance to resource */
    size_t sample_count, string_size; /* of all resources; bytes */
    guint samples_max;                /* of one resource */
    GStringChunk *strings;
    GString *key, *instance; /* scratch */
} resources;

void resources_init(resources *all);
void resources_clear(resources *all);
void resources_add(resources *all, guint host, const nl_record *record);
void resources_finish(resources *all);

/* All objects and their steps. */
typedef struct walks {
    GArray *objects; /* object */
    GArray *steps;   /* step; those of an object one after the other */
} walks;

static inline object *walks_object(const walks *all, guint index)
{
    return &g_array_index(all->objects, object, index);
}

static inline step *walks_steps(const walks *all, const object *of)
{
    return &g_array_index(all->steps, step, of->first_step);
}

/* Orders the steps of an object by time, then place. */
int step_compare(const void *a, const void *b);

/* ---- measured_clocks.c ---- */

typedef struct measured_clocks measured_clocks;

measured_clocks *measured_clocks_new(void);
void measured_clocks_free(measured_clocks *m);

/* Learns from a record about clocks; ignores others. */
void measured_clocks_learn(measured_clocks *m, const nl_record *record);

/* Returns the clocks of the hosts (char *), for g_free; their texts belong to m. Corrects the times of steps by clocks
 * that are off. */
host_clock *measured_clocks_correct(measured_clocks *m, const GPtrArray *hosts, walks *all);

/* Corrects a time by the clock of a host. */
int64_t measured_clocks_time(const measured_clocks *m, const host_clock *clock, const char *host, int64_t time_ns);

/* ---- clocks.c ---- */

/* Finds hosts with wrong clocks, from messages that arrive before they are sent. Corrects the times of their steps, and
 * sorts the steps again. Returns the errors: clock_error. */
GArray *clocks_correct(walks *all, guint host_count);

/* Returns what was subtracted from the times of a host. */
int64_t clocks_taken_ns(const GArray *errors, guint host);

/*
 * Returns the legs of all objects: leg, whose passages are in *passages, for g_free. *left_out counts the passages that
 * were left out because there are too many legs.
 */
GPtrArray *legs_make(const walks *all, const drawing *d, passage **passages, uint64_t *left_out);

#endif
