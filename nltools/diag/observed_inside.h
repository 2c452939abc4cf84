/* What observed.c, legs.c, clocks.c and resource.c share. */
#ifndef NLDIAG_OBSERVED_INSIDE_H
#define NLDIAG_OBSERVED_INSIDE_H

#include "diag/observed.h"
#include "stat/gather.h"

typedef struct resources {
    GPtrArray *list;    /* resource */
    GHashTable *by_key; /* host, event, field and instance to resource */
    GStringChunk *strings;
    GString *key, *instance; /* scratch */
} resources;

void resources_init(resources *all);
void resources_clear(resources *all);
void resources_add(resources *all, guint host, const nl_record *record);
void resources_finish(resources *all);

/* An object's steps, hosts being those of the observed. */
typedef struct step {
    int64_t time_ns;
    uint16_t place, host;
} step;

typedef struct walk {
    uint32_t object; /* of objects */
    uint32_t count;
    size_t first; /* of steps */
} walk;

/* The steps of all objects, as they were gathered. */
typedef struct walks {
    GArray *steps; /* step */
    GArray *list;  /* walk */
} walks;

/*
 * Finds hosts whose clocks are wrong, by messages that came before they were sent, takes that off the times of their
 * steps (and puts each object's steps in order again), and returns what was found: clock_error.
 */
GArray *clocks_correct(walks *all, guint host_count);

/* What was taken off a host's times. */
int64_t clocks_taken_ns(const GArray *errors, guint host);

/* The legs of all walks: leg, whose passages lie in *passages, an array of the caller's to free. */
GPtrArray *legs_make(const walks *all, const GArray *objects, const drawing *d, passage **passages);

#endif
