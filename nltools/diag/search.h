/*
 * The interface between the modules of the search (findings.c): the candidates, and the functions that try explanations
 * of a place. Each function passes its candidates to candidate_offer, which keeps the best candidate of each place and
 * its rivals.
 */
#ifndef NLDIAG_SEARCH_H
#define NLDIAG_SEARCH_H

#include "diag/branches.h"
#include "diag/findings.h"

/* Maximum probability that a log without causes has a significant effect. */
#define FALSE_ALARMS_MAX 0.02

/* The number of families of tests, which share this probability: divisions, sensors, mechanisms, failures, and the
 * groups of very slow visits. */
enum { FAMILIES = 5 };

/*
 * Minimum factor by which slow visits take longer than other visits. Smaller differences between kinds of requests or
 * hosts are normal.
 */
#define EFFECT_MIN 1.5

/* What the numbers of a column measure, according to the column's name (ordinary.c). */
typedef enum number_meaning {
    NUMBER_NONE,       /* the column contains texts, or there is no column */
    NUMBER_WORK,       /* an amount of work */
    NUMBER_CONTENTION, /* waits, repetitions or failures, which are consequences of a fault */
    NUMBER_UNKNOWN
} number_meaning;

enum { SLOW_VALUES_MAX = 6, SLOW_VALUES_NAMED = 3 }; /* maximum numbers of slow values: of a field, and named */

/* A possible explanation of the times of a place. */
typedef struct candidate {
    const char *cause;
    uint32_t place;
    const char *host, *process; /* NULL: no single host; no single process */
    const column *column;
    double value;
    uint32_t values;                      /* for a field: the number of its slow values; `value` is one of them */
    float slow_values[SLOW_VALUES_NAMED]; /* the first slow values; NAN: values without a name */
    const column *caller_column; /* for "calls": the field that identifies the callers with many calls, or NULL */
    float caller_value;
    const sensor_series *sensor;
    const branch *branch; /* branch that visits take more often on one host or in one time range; NULL if the candidate
                             is not a branch */
    bool falls;           /* visits are slow while the sensor's or the column's value is low */
    bool is_ordinary;     /* see finding */
    bool is_evened_out;   /* the candidate comes from a sample in which all operations take the same time */
    visit_kind kind;      /* the visits that the candidate compares */
    bool is_within_kind;  /* the fault explains the main kind of visits better than ordinary work does */
    bool is_uneven;       /* the candidate is not ordinary only because its slow visits are distributed unevenly */
    const char *uneven_host; /* the host with the largest share of slow values, if it is much larger than on other
                                hosts; NULL: no such host */
    double uneven_share, other_share; /* shares of the slow values on uneven_host and on the other hosts */
    bool is_since;                    /* for "peer" and "field": the host, process or value is slow only from from_ns to
                                         to_ns */
    number_meaning meaning;           /* the meaning of the column */
    const column *amount; /* for an ordinary field: the amount of work that explains the field's slow visits, or NULL */
    double power;         /* for "size": the time of a visit is approximately proportional to the size to this power */
    mechanism m;          /* the mechanism, without its waits */
    double p;             /* probability of at least this effect by chance */
    double explained, score, claim_ns;
    double part; /* sample.part: `explained` times `part` is a share of the variation of all visits of the place */
    double slow_ns, other_ns;               /* mean times of slow visits and of other visits; 0: unknown */
    double slow_logged_ns, other_logged_ns; /* see explanation */
    uint32_t slow_count, count;             /* number of slow visits, and number of all visits, in the sample */
    bool is_sampled;                        /* the sample does not contain all visits of the place */
    int64_t from_ns, to_ns;
    uint32_t hours;  /* bit h: visits are slow from h to h + 1 o'clock UTC */
    bool is_of_rest; /* see explanation */
    bool is_tree; /* the candidate also claims time of the children of its place's visits, and of the edges beside these
                     visits */
    int queue_servers; /* the number of servers of a queue whose waits the candidate also claims; 0: no queue */
    float *cut;        /* for each visit, the time that the candidate claims */
} candidate;

/* The maximum numbers of tests at a place, for each of three families of tests. */
typedef struct test_counts {
    uint32_t divisions, sensors, mechanisms;
} test_counts;

/* A cause that the search does not offer at a place again. */
typedef struct exclusion {
    uint32_t place;
    const char *cause;
    bool has_host; /* exclude the cause only with this host and process, which may be NULL */
    const char *host, *process;
    const column *column; /* exclude the cause only with this column; NULL: with any column */
    const branch *branch; /* exclude only with this branch or, if the branch has a column, also without a branch */
} exclusion;

typedef struct search {
    findings *f;
    const visits *v;
    GArray *pauses;
    GArray *branches;          /* elements are branch */
    candidate *best;           /* indexed by place; cause is NULL: no candidate */
    GArray *rivals;            /* elements are candidate without cut; significant, but not the best of their place */
    GArray *excluded;          /* elements are exclusion */
    bool *dirty, *has_finding; /* indexed by place */
    double *doubtful_ns;       /* for each place, the largest claim that a wrong clock may explain */
    test_counts tests;
    const finding *only; /* candidates with other causes are not placed; NULL: all causes are placed */
    GArray *collected;   /* elements are candidate, which candidate_place has not processed; NULL: candidate_offer calls
                            candidate_place */
} search;

#define HOUR_NS (3600 * NL_NS_PER_SECOND)

/* Minimum number of days of a log that shows whether a fault recurs at the same time of day. */
enum { DAYS_MIN = 3 };

/* Returns whether a log is long enough to compare the times of day. */
static inline bool visits_span_days(const visits *v)
{
    return v->to_ns - v->from_ns > (DAYS_MIN - 1) * 24 * HOUR_NS;
}

/* Returns the maximum numbers of tests for each place of a log. */
test_counts search_count_tests(const visits *v);

/* Returns whether a place has enough time and visits to be examined. */
bool place_is_examined(const visits *v, uint32_t place);

/*
 * Returns the significance level of a place: an effect is significant if its probability by chance is at most this
 * level. `tests` is the number of tests of the effect's family at the place. The method is Bonferroni's procedure with
 * weights (Genovese, Roeder and Wasserman, Biometrika 93, 2006). The weight of a place is its share of the requests'
 * time, because a fault that matters takes time. The weights add up to at most 1, so in a log without causes, the
 * probability of any significant effect is at most 2 % (FALSE_ALARMS_MAX). The tests may depend on each other, but the
 * requests must be independent.
 */
double significance_level(const visits *v, uint32_t place, uint32_t tests);

/* Returns whether an effect is large enough to count. The criteria are `explained` (part of the variation), `share` (of
 * the time) and the ratio of slow_ns to other_ns. If slow_ns is 0 (unknown), ignores the ratio. */
bool effect_counts(double explained, double share, double slow_ns, double other_ns);

void candidate_clear(candidate *c);

/* Creates a candidate from an explanation, and frees the explanation's memory. `preference` is a factor of the
 * score. */
candidate candidate_of(const sample *s, const char *cause, explanation *e, double preference);

/*
 * Computes the time that a candidate claims. Extends the cut from the sample to all visits of the place, and limits the
 * cut of each visit to the time that is not in `claimed`. Sets claim_ns to the sum. Returns the gain as a share of all
 * time.
 */
double candidate_settle(candidate *c, const visits *v, const float *claimed);

/* Takes ownership of a candidate. If the candidate is significant, makes it the best candidate of its place or a rival.
 * Otherwise, frees it. */
void candidate_offer(search *s, candidate *c);

/* Returns whether a candidate has the same cause as a finding, so that the finding also claims the candidate's time. */
bool finding_has_cause(const search *s, const finding *f, const candidate *c);

/* Makes a significant candidate the best candidate of its place, or a rival. Takes ownership of the candidate. */
void candidate_place(search *s, candidate *c);

/* Tries fields, hosts, the time and sensors as causes, whose values divide the visits (divisions.c). */
void try_divisions(search *s, const sample *x);

/* The part of the level of divisions that belongs to the tests of values in a time range. */
#define IN_TIME_PART 0.1

/* A bin whose visits are slow only in a time range. `ranges` is the number of tests of ranges and bins. */
typedef struct slow_bin {
    int bin;
    double ranges;
    int64_t from_ns, to_ns;
} slow_bin;

/*
 * Finds a bin whose visits are slow in a time range. If times change slowly, a bin is also slow in some range by
 * chance. Similar ranges of other bins, and ranges in which a bin is faster, show the size of this chance effect. The
 * chosen range must differ twice as much as the best of these ranges. If `only_more` is true, the bin must also differ
 * more from the other bins than at other times, because bins that are kinds of work always differ. Sets inside[i] to
 * whether visit i belongs to the bin and the range (divisions.c).
 */
bool sample_find_slow_bin(const sample *x, const uint8_t *bins, int count, bool only_more, uint8_t *inside,
                          slow_bin *slowest);

/* Limits a candidate to the range of a slow bin. */
static inline void candidate_set_range(candidate *c, const slow_bin *slowest)
{
    c->p *= slowest->ranges;
    c->is_since = true;
    c->from_ns = slowest->from_ns;
    c->to_ns = slowest->to_ns;
}

/*
 * Tries a column as a cause (field_divisions.c). `original` is the sample of the place or of a kind of its visits;
 * `even` is the same sample after the operations were evened out. If only a part of the place's visits has the field,
 * the function compares only these visits.
 */
void try_column(search *s, const sample *original, const sample *even, const column *c);

/*
 * Returns a sample of the kind of visits that takes most of the place's time, because a cause that slows only this kind
 * hardly changes the median of all visits. Returns NULL unless this kind has at least half of the time and at most
 * three quarters of the visits (field_divisions.c).
 */
sample *sample_select_main_kind(const search *s, const sample *x);

/*
 * Returns whether the visits that wait are a kind of visits, and their times vary. This kind then explains the longer
 * times, although the distribution of all times looks like a timeout (field_divisions.c). `waits` has an element for
 * each visit of the log.
 */
bool sample_waits_are_kind(const search *s, const sample *x, const float *waits);

/* Returns a copy of a sample in which visits take the same time with any amount of work, or NULL if no amount explains
 * the times (amounts.c). */
sample *sample_even_out_amounts(const search *s, const sample *x);

/* Returns a sample in which all operations take the same time, or NULL if the place has fewer than two operations
 * (field_divisions.c). */
sample *sample_even_out_operations(const search *s, const sample *x);

/* Returns the value of a column for a visit, or NAN. Uses the first available source: the visit's own records, the
 * start of the nearest span around the visit, or a record of the request before the visit began. */
float column_of_visit(const column *c, const visits *v, uint32_t index);

/* Returns false if the value of a column for a visit was logged after the visit began. */
bool column_is_at_begin(const column *c, const visits *v, uint32_t index);

/* A division of a sample's visits by the values of a column. */
typedef struct division {
    const float *values;
    const uint8_t *bins;
    const float *of_bin; /* the value of each bin, unless `ordered` */
    int count;
    bool ordered;
    uint64_t slow; /* bit mask of the slow bins */
} division;

/*
 * Returns the sample with which the search tries a column. For a column that names servers, returns `amounts`, the
 * sample with evened-out amounts of work, unless it is NULL. For other columns, returns `of_work`, because kinds of
 * work often have different amounts (field_divisions.c).
 */
const sample *sample_choose_work(const column *c, const sample *of_work, const sample *amounts);

/* Returns whether the numbers of a column are amounts of work or lengths of work (ordinary.c). */
bool column_is_amount(const sample *x, const column *c);

/* Returns whether the visits' time grows at most in proportion to the amounts of a division (ordinary.c). */
bool division_is_proportional(const search *s, const sample *x, const division *d);

/*
 * Decides whether a candidate for a field is ordinary: the field describes the requested work, and the relation of the
 * time to this work is the same on all hosts and at all times. Sets the candidate's is_ordinary, is_uneven, meaning,
 * amount, falls and power (ordinary.c).
 */
void candidate_find_ordinary(const search *s, candidate *c, const sample *x, const division *d);

/* Returns whether a column of texts names the operations of spans whose name does not (ordinary.c). */
bool column_is_operation(const visits *v, uint32_t place, const column *c);

/*
 * If a column names the operations of a place whose span name does not, stores in `groups` the number of the operation
 * of each visit. All operations with few visits have the number COLUMN_TEXTS_MAX. Returns the number of the other
 * operations (field_divisions.c).
 */
uint32_t sample_group_operations(const search *s, const sample *x, uint32_t *groups);

/*
 * Stores the kind of each visit of a sample in `groups`, a number from 0. The visits of a kind have the same operation,
 * values in the same columns, and the same results of cache lookups. Visits of rare kinds have the number
 * UINT32_MAX. Returns the number of kinds (field_divisions.c).
 */
uint32_t sample_group_kinds(const search *s, const sample *x, uint32_t *groups);

/* Returns whether all values of a column of texts are results of lookups in a cache (ordinary.c). */
bool column_is_of_cache(const column *c);

/* Returns whether a value of a column with cache results is a hit (ordinary.c). */
bool column_is_hit(const column *c, float value);

/* Returns whether the large values in a sample of numbers of calls are ordinary: a field that describes the requested
 * work explains most of their variation. The sample's values are `call_ns` times the numbers (field_divisions.c). */
bool calls_are_ordinary(const visits *v, const sample *x, double call_ns);

/* Returns what the numbers of a column measure, according to the column's name (ordinary.c). */
number_meaning column_meaning(const column *c);

/* Returns whether a column contains results, such as messages, according to its name (ordinary.c). */
bool column_is_result(const column *c);

/* Returns whether a value of a column with results names a failure (ordinary.c). */
bool column_value_is_failure(const column *c, float value);

/* Returns the time of visit `i` of the sample, in nanoseconds, before ordinary findings claimed a part. */
double time_before_ordinary(const search *s, const sample *x, uint32_t i);

/* Tries the branches of a place as causes (waits.c). */
void try_branches(search *s, uint32_t place);

/*
 * Finds visits that take longer than the usual time of their kind by a constant time, such as a timeout (steps.c). The
 * host of the mechanism is the host of most of these visits.
 */
mechanism find_step(const search *s, const sample *x);

/* Adds a finding if one host's link delays messages at several places by a constant time, for example by losing packets
 * (steps.c). */
void find_losses(findings *f);

/* Try the number of calls, pauses, and the other mechanisms in mechanisms.h, as causes (waits.c). */
void try_calls(search *s, uint32_t place);
void try_pauses(search *s, const sample *x);
void try_mechanisms(search *s, const sample *x);

/* Sets the answer, the advice and the evidence of a finding (describe.c). */
void finding_describe(const search *s, finding *f, const candidate *c);

#endif
