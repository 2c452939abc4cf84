/*
 * Searches for causes of a log's times, and produces findings.
 *
 * For each place, the search looks for the reasons why the own times of the place's visits vary. Candidates are the
 * hosts (peers), fields of the records, the time, sensors, the number of calls, and mechanisms (mechanisms.h). The
 * candidate that explains most of the variation claims its excess time. The search continues with the remaining time,
 * so that no time is claimed twice. Shares are shares of all requests' time. Not thread-safe.
 */
#ifndef NLDIAG_FINDINGS_H
#define NLDIAG_FINDINGS_H

#include "diag/branches.h"
#include "diag/mechanisms.h"

/* Minimum share of the requests' time that a finding claims. A finding often claims somewhat less than the cost of its
 * fault, so this is less than CAUSE_SHARE. */
#define FINDING_MIN 0.07

/* The same for a pause of several programs, because the pauses of the others confirm the pause of each program. */
#define JOINT_SHARE_MIN 0.05

/* A log is healthy only if the search would have found any cause with at least this share of the time. */
#define CAUSE_SHARE 0.1

/* Minimum number of requests for a verdict. A log with fewer requests may not show a fault that costs a tenth of the
 * time. */
enum { REQUESTS_MIN = 60 };

typedef struct finding {
    const char *cause;   /* one word, for programs; nldiag(1) lists them */
    uint32_t place;      /* number of the place, or VISIT_NONE */
    const char *host;    /* NULL: no single host */
    const char *process; /* if the place has several processes, the name of the process in the records; NULL: no single
                            process */
    double share;        /* share of the requests' time; for failures: share of the requests */
    double gain;         /* share of the requests' time that the requests would save without the finding's cause */
    double sure;         /* certainty of the finding, 0 to 1 */
    double explained;    /* part of the place's variation that the cause explains */
    double chance;       /* probability of at least this effect by chance */
    double margin;       /* 1 minus the ratio of the best rival's score to the finding's score; 1: no rival */
    char *answer;        /* a sentence */
    GPtrArray *evidence; /* char * */
    const char *advice;
    int64_t from_ns, to_ns;
    float *cut;           /* for each visit, the part of its own time that the finding claims */
    GArray *others;       /* uint32_t: numbers of further places with the same cause */
    const column *column; /* the field, if the cause is a field */
    const branch *branch; /* see candidate.branch; valid only during the search */
    double value;
    bool confirmed;          /* sensors confirm the cause */
    bool of_connections;     /* the cause is a limit of the connections on which the visits waited */
    bool is_joint;           /* for a pause: several programs stop at the same time */
    bool is_quota;           /* for a pause: a CPU quota stops the program */
    bool is_acknowledgement; /* for a timer: the visits wait for TCP's delayed acknowledgements */
    bool is_sometimes;       /* for a timer: some visits take longer by a constant time, as for a timeout */
    /* The time depends only on the amount or the kind of the requested work, so the finding is not a fault. The
     * finding's rivals are also ordinary. The search removes this time before it looks for other causes. */
    bool is_ordinary;
    /* Other explanations of the same place, the best first (elements are finding). findings_judge moves them to the
     * list. Rivals claim no time: share and gain are 0. */
    GPtrArray *rivals;
    const struct finding *rival_of; /* for a rival, the finding that it would replace; otherwise NULL */
    double possible;                /* for a rival: share of the requests' time that the rival would claim */
} finding;

typedef struct findings {
    const visits *visits;
    GPtrArray *list;          /* elements are finding; findings_judge sorts them */
    GPtrArray *tried;         /* char *: texts about candidates that explain part of the variation, for --explain */
    uint32_t tests;           /* number of candidates that the search has tried */
    float *claimed;           /* for each visit, the time that findings claim */
    char *cannot_tell;        /* reason why there is no verdict, and remedy; or NULL */
    uint32_t failed;          /* number of requests that failed */
    bool is_failure_searched; /* enough requests failed to search for a cause of the failures */
    bool healthy;             /* no cause was found, although the data was sufficient to find one */
} findings;

findings *findings_find(const visits *v);

/* Returns whether a finding is a fault: neither ordinary, nor a rival of another finding. */
bool finding_is_fault(const finding *x);

/* Returns the minimum share of a finding: FINDING_MIN or JOINT_SHARE_MIN. */
double finding_min(const finding *x);

/* Returns whether a place is among the places of a finding. */
bool finding_is_at(const finding *x, uint32_t place);

/* Returns whether the list contains a fault. */
bool findings_have_fault(const findings *f);
void findings_free(findings *f);

/*
 * Sorts the findings in descending order of expected gain, and decides the verdict. `no_requests` is the reason to
 * print if the log has no requests.
 */
void findings_judge(findings *f, const char *no_requests);

/* Returns a new finding that is not in a list. */
finding *finding_new(const visits *v, const char *cause);

/* Adds a new finding with this cause to the list, and returns it. */
finding *findings_add(findings *f, const char *cause);

/*
 * Adds the time of the finding with index `number` to x, which has the same cause. Removes that finding from the list.
 */
void findings_join(findings *f, finding *x, guint number);

/* Makes `rival` a rival of x, which then owns it. */
void finding_add_rival(finding *x, finding *rival);
/* Notes a tried explanation for --explain, unless an equal text is noted. Takes ownership of the text. */
void findings_note(findings *f, char *text);

void finding_evidence(finding *f, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Returns whether the log would have shown a cause that affects one in eight visits of a place (power.c). */
bool place_shows_causes(const findings *f, uint32_t place);

/* A visit takes very long if its time is at least this multiple of the median of its kind. */
#define TAIL_FACTOR 4.0

/* Returns the time, in nanoseconds, that visits to a place take beyond TAIL_FACTOR times the median of their kind.
 * Subtracts the time that findings or the spread of the times explain (power.c). */
double place_find_tail(const findings *f, uint32_t place);

/* Removes the findings below finding_min whose causes no sensor confirms. */
void findings_drop_small(findings *f);

void find_failures(findings *f);

/* Makes limits of hosts and of TCP the causes of the findings that these limits explain. Adds a finding for a limit
 * that slows all requests in the same way. */
void find_limits(findings *f);

/* Returns the share of all time that requests would save if each visit were shorter by `scale` times its element of
 * `cut`. */
double replay_gain(const visits *v, const float *cut, double scale);

/* Return texts for people, such as "1.5 ms", "8 %" and "PLACE on HOST". The caller frees them with g_free. */
char *text_ns(double ns);
char *text_share(double share);
char *text_place(const visits *v, uint32_t place, const char *host);

/* Returns whether a place's host is a value of a field (place.has_value_hosts). `host` may also be the callers' host.
 */
bool host_is_value(const visits *v, const place *p, const char *host);

/* Returns the name of a place's host: "HOST", or "FIELD=HOST" if the host is a value of a field. The caller frees it
 * with g_free. */
char *text_host(const visits *v, const place *p, const char *host);

/* Returns the name of a process, or of a place's program if `process` is NULL, followed by the host unless `host` is
 * NULL. If the records do not name the program, returns the name of the place's span or event instead. */
char *text_program(const visits *v, const place *p, const char *process, const char *host);

/* Like text_place, with the name of a process, which may be NULL, instead of the name of its program. */
char *text_process_place(const visits *v, uint32_t place, const char *process, const char *host);
char *text_of_place(const visits *v, const place *p, const char *process, const char *host);

/* Like text_place, for an edge, with the host where the visits begin. */
char *text_place_from(const visits *v, uint32_t place, const char *from_host);

#endif
