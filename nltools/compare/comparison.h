/*
 * Compares two sides, each of which consists of one or more logs. Finds changes of the requests' time, of the mix of
 * requests, and of places. Also finds the values of fields that explain these changes.
 *
 * If the mix of requests has changed, the module separates the effect of the mix from the effect of the program
 * (Kitagawa, J. Am. Stat. Assoc. 1955; Oaxaca, Int. Econ. Rev. 1973). The effect of the mix is the change of the
 * requests' time that follows only from the new shares of a field's values. To compute this effect, the module uses the
 * old mean time of each value. Only a field of the requests' first events can define the mix, because fields of later
 * events may be results.
 *
 * If nothing has changed, the probability that a comparison reports a change is at most 3 * COMPARISON_RATE. If each
 * side has 3,000 requests and their times vary by 10 %, the comparison finds a change of 2 % in a place's time with a
 * probability of 95 % (tests/diagnosis/compare_trials.py). Not thread-safe.
 */
#ifndef NLTOOLS_COMPARISON_H
#define NLTOOLS_COMPARISON_H

#include "compare/profile.h"

/* Maximum probability of a false alarm for each of three families of tests: the requests' time, the mix, and all
 * places. */
#define COMPARISON_RATE 0.0015

/* Minimum relative change of a place or of the requests' time that a comparison reports, even for large logs. */
#define COMPARISON_CHANGE_MIN 0.005

/*
 * A comparison that finds no change of the requests' time must be able to detect a relative change of this size.
 * Otherwise, its verdict is COMPARISON_CANNOT_TELL.
 */
#define COMPARISON_DETECTABLE_MAX 0.25

typedef enum comparison_verdict {
    COMPARISON_EQUAL,
    COMPARISON_SLOWER,
    COMPARISON_FASTER,
    COMPARISON_FAILING,
    COMPARISON_PLACES, /* places changed, such as spans, but the requests' time did not */
    COMPARISON_CANNOT_TELL,
} comparison_verdict;

/* A place that has changed. own_ns and path_ns are its own time and its time on critical paths, in nanoseconds per
 * request. */
typedef struct place_change {
    const profile_row *row;
    contrast own;   /* nanoseconds per visit */
    contrast calls; /* visits per request */
    bool own_changed, calls_changed;
    double own_ns[SIDES], path_ns[SIDES];
    char *goes_with; /* a text that names the value of a field that explains the change; NULL: no value explains it */
} place_change;

typedef struct sensor_change {
    const profile_sensor *sensor;
    contrast value;
} sensor_change;

typedef struct comparison {
    const profile *profile;
    double requests[SIDES];
    const profile_field *strata; /* compare only requests with equal values of this field; NULL: compare all requests */
    contrast total; /* mean duration of a request in ns; with strata, weighted as if the second side had the same shares
                       of the field's values as the first side */
    contrast unadjusted;      /* the requests' time without this weighting */
    const profile_field *mix; /* the field whose mix has changed; NULL: the mix has not changed */
    contrast mix_effect;
    unsigned mix_bin; /* bin of the value whose share has changed most */
    double mix_shares[SIDES];
    contrast failed; /* share of the requests that have failed */
    bool total_changed, failed_changed;
    GArray *changes; /* elements are place_change; the largest change of time comes first */
    GArray *sensors; /* elements are sensor_change; empty if nothing has changed */
    double level;    /* error probability of the confidence intervals of changes */
    /* The time that all changes add to a request (ns), and half the width of its confidence interval. */
    double changes_ns, changes_half_ns;
    comparison_verdict verdict;
    bool of_changes; /* the verdict follows from changes_ns, because the requests' time varies too much */
    char *reason;    /* if the verdict is COMPARISON_CANNOT_TELL, the reason and the remedy; otherwise NULL */
    bool has_data;   /* false: only the profile, `requests`, `verdict` and `reason` are valid */
} comparison;

/* Compares the two sides of a profile, which must outlive the comparison. */
comparison *comparison_make(const profile *p);
void comparison_free(comparison *c);

void comparison_print(const comparison *c);
void comparison_print_json(const comparison *c);

/* Returns the smallest relative change of the requests' time that the comparison finds with a probability of 95 %. */
static inline double comparison_detectable(const comparison *c)
{
    return contrast_detectable(&c->total, COMPARISON_RATE) / c->total.before;
}

#endif
