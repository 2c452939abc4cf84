/*
 * What changed between two sides: the requests' time, the mix of requests, places, and what the changes go with.
 *
 * If the mix of requests changed, its effect is separated from that of the program (Kitagawa, J. Am. Stat. Assoc.
 * 1955; Oaxaca, Int. Econ. Rev. 1973): the effect is what the new shares of a field's values make of their old mean
 * times. Only a field of the
 * requests' first events counts as mix, because later fields may be results.
 *
 * Without any change, a comparison reports one with a probability of at most COMPARISON_RATES x 3. With 3,000 requests
 * on each side whose times vary by 10 %, it finds a change of a place's time by 2 % with a probability of 95 %
 * (tests/diagnosis/compare_trials.py). One thread at a time.
 */
#ifndef NLTOOLS_COMPARISON_H
#define NLTOOLS_COMPARISON_H

#include "compare/profile.h"

/* False alarms of each of three families of tests: the requests' time, the mix, and all places. */
#define COMPARISON_RATE 0.0015

/* Smaller changes of a place or of the requests' time are not reported, however many data there are. */
#define COMPARISON_CHANGE_MIN 0.005

typedef enum comparison_verdict {
    COMPARISON_EQUAL,
    COMPARISON_SLOWER,
    COMPARISON_FASTER,
    COMPARISON_FAILING,
} comparison_verdict;

/* A place that changed. Its time in the critical paths, and its own time, are nanoseconds for each request. */
typedef struct place_change {
    const profile_row *row;
    contrast own, calls; /* nanoseconds of a visit; visits of a request */
    bool own_changed, calls_changed;
    double own_ns[SIDES], path_ns[SIDES];
    char *goes_with; /* NULL: nothing found */
} place_change;

typedef struct sensor_change {
    const profile_sensor *sensor;
    contrast value;
} sensor_change;

typedef struct comparison {
    const profile *profile;
    double requests[SIDES];
    const profile_field *strata; /* requests with equal values of this field are compared; NULL: all requests */
    contrast total;              /* the requests' time; with strata, as if both sides had the first side's shares */
    contrast unadjusted;         /* the requests' time */
    const profile_field *mix;    /* NULL: no change found */
    contrast mix_effect;
    unsigned mix_bin; /* the value whose share changed most */
    double mix_shares[SIDES];
    contrast failed; /* failed requests of each request */
    bool total_changed, failed_changed;
    GArray *changes; /* place_change, by the change of time; the largest first */
    GArray *sensors; /* sensor_change; only if something changed */
    double level;    /* of the intervals of changes */
    comparison_verdict verdict;
} comparison;

/* The profile must outlive the comparison. */
comparison *comparison_make(const profile *p);
void comparison_free(comparison *c);

void comparison_print(const comparison *c);
void comparison_print_json(const comparison *c);

#endif
