/* What observed.c, legs.c, clocks.c, measured_clocks.c and resource.c share. */
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

/* An object's steps, hosts being those of the observed. */
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

/* By time, then place: how an object's steps are ordered. */
int step_compare(const void *a, const void *b);

/* ---- measured_clocks.c ---- */

typedef struct measured_clocks measured_clocks;

measured_clocks *measured_clocks_new(void);
void measured_clocks_free(measured_clocks *m);

/* Takes a record that says something of a clock; others are passed over. */
void measured_clocks_learn(measured_clocks *m, const nl_record *record);

/*
 * After the last record: host_clock of each of the hosts (char *), the caller's to free, but with texts of m. The times
 * of steps by clocks that are off become what they were by the reference's.
 */
host_clock *measured_clocks_correct(measured_clocks *m, const GPtrArray *hosts, walks *all);

/* A time by the clock of a host, corrected if that is off. */
int64_t measured_clocks_time(const measured_clocks *m, const host_clock *clock, const char *host, int64_t time_ns);

/* ---- clocks.c ---- */

/*
 * Finds hosts whose clocks are wrong, by messages that came before they were sent, takes that off the times of their
 * steps (and puts each object's steps in order again), and returns what was found: clock_error.
 */
GArray *clocks_correct(walks *all, guint host_count);

/* What was taken off a host's times. */
int64_t clocks_taken_ns(const GArray *errors, guint host);

/*
 * Returns the legs of all walks: leg, whose passages lie in *passages, which the caller frees. *left_out counts the
 * passages that were left out because there are too many legs.
 */
GPtrArray *legs_make(const walks *all, const GArray *objects, const drawing *d, passage **passages, uint64_t *left_out);

#endif
