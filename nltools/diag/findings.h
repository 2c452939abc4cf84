/*
 * The search for what explains a log's times, and its findings.
 *
 * Each place is examined: what explains the variation of its visits' own times? Candidates are the hosts (peers),
 * fields of the records, the time, sensors, the number of calls, and mechanisms (mechanisms.h). The candidate that
 * explains most claims its excess time; the search continues with what is left, so that no time is claimed twice.
 * Shares are of all requests' time. One thread at a time.
 */
#ifndef NLDIAG_FINDINGS_H
#define NLDIAG_FINDINGS_H

#include "diag/mechanisms.h"

/* A finding claims at least this share of the requests' time. */
#define FINDING_MIN 0.08

/* A log is healthy if a cause with this share of the time would have been found. */
#define CAUSE_SHARE 0.1

/* Below, the log would not show a fault that costs a tenth of the time. */
enum { REQUESTS_MIN = 60 };

typedef struct finding {
    const char *cause;   /* one word, for programs: those of nldiag(1) */
    uint32_t place;      /* or VISIT_NONE */
    const char *host;    /* NULL: no single host */
    double share;        /* of the requests' time; of failures: of the requests */
    double gain;         /* of the requests' time, if the excess were gone */
    double sure;         /* 0 to 1 */
    double explained;    /* part of the place's variation */
    char *answer;        /* a sentence */
    GPtrArray *evidence; /* char * */
    const char *advice;
    int64_t from_ns, to_ns;
    float *cut;           /* by visit: what the finding claims of its own time */
    GArray *others;       /* uint32_t: further places with the same cause */
    const column *column; /* of fields */
    double value;
    bool confirmed; /* by sensors */
} finding;

typedef struct findings {
    const visits *visits;
    GPtrArray *list;   /* finding; the largest first */
    GPtrArray *tried;  /* char *: candidates that were rejected, for --explain */
    uint32_t tests;    /* candidates tried */
    float *claimed;    /* by visit */
    char *cannot_tell; /* reason and remedy, or NULL */
    bool healthy;      /* nothing found, and a cause would have been found */
} findings;

findings *findings_find(const visits *v);
void findings_free(findings *f);

/* Sorts the findings and decides between healthy and cannot tell. no_requests: why the log has no requests. */
void findings_judge(findings *f, const char *no_requests);

/* Adds a finding about clocks or failures. */
finding *findings_add(findings *f, const char *cause);
void finding_evidence(finding *f, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Whether the log would have shown a cause that takes a tenth of the time in one visit of eight of a place (power.c).
 */
bool place_shows_causes(const findings *f, uint32_t place);

/* Removes the findings below FINDING_MIN. */
void findings_drop_small(findings *f);

void find_failures(findings *f);

/* Names the findings that limits of hosts and of TCP explain, and adds a limit that slows all requests alike. */
void find_limits(findings *f);

/* The share of all time that requests would save if each visit's own time were shorter by cut. */
double replay_gain(const visits *v, const float *cut, double scale);

/* Texts, for g_free. */
char *text_ns(double ns);
char *text_share(double share);
char *text_place(const visits *v, uint32_t place, const char *host);

#endif
