/*
 * Shared by the parts of the search (findings.c): the candidates, and the functions that try explanations of one place.
 * Each offers what it finds to candidate_offer, which keeps the best one of each place.
 */
#ifndef NLDIAG_SEARCH_H
#define NLDIAG_SEARCH_H

#include "diag/findings.h"

/* Something that may explain the times of a place. */
typedef struct candidate {
    const char *cause;
    uint32_t place;
    const char *host;
    const column *column;
    double value;
    const sensor_series *sensor;
    mechanism m; /* without waits */
    double p;    /* the probability of at least this effect by chance */
    double explained, score, claim_ns, scale;
    double slow_ns, other_ns;
    uint32_t slow_count, count;
    int64_t from_ns, to_ns;
    float *cut; /* by visit */
} candidate;

/* How many tests a search makes, at most, by family: values that divide visits, sensors, and mechanisms. */
typedef struct test_counts {
    uint32_t divisions, sensors, mechanisms;
} test_counts;

typedef struct search {
    findings *f;
    const visits *v;
    GArray *pauses;
    candidate *best;           /* by place; cause NULL: none */
    bool *dirty, *has_finding; /* by place */
    test_counts tests;
} search;

/* Counts the tests of a search: of all places that are examined. */
test_counts search_count_tests(const visits *v);

/* Whether a place has enough time and visits to be examined. */
bool place_is_examined(const visits *v, uint32_t place);

/*
 * The largest probability of a chance effect that counts, after so many findings: by Benjamini and Yekutieli's
 * procedure (Annals of Statistics 29, 2001), at most 2 % of the findings are chance, however the tests depend on each
 * other.
 */
double significance_level(uint32_t tests, uint32_t found);

/* Whether an effect is large enough to count. slow_ns 0: unknown. */
bool effect_counts(double explained, double share, double slow_ns, double other_ns);

void candidate_clear(candidate *c);

/* Makes a candidate of an explanation, which it frees. preference: factor of the score. */
candidate candidate_of(const sample *s, const char *cause, explanation *e, double preference);

/* Keeps a candidate if it is significant and explains more than the best one so far; frees it otherwise. */
void candidate_offer(search *s, candidate *c);

/* Values that divide visits: fields, hosts, the time, sensors (divisions.c). */
void try_divisions(search *s, const sample *x);

/* The number of calls, and the mechanisms of mechanisms.h (waits.c). */
void try_calls(search *s, uint32_t place);
void try_mechanisms(search *s, const sample *x);

/* Sets the answer, the advice and the evidence of a finding (describe.c). */
void finding_describe(const search *s, finding *f, const candidate *c);

#endif
