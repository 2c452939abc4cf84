/*
 * The causes that nldiag finds, each with the share of time that it explains, its certainty and its evidence.
 *
 * A rule is a function that searches an observed log and adds findings. The share is of the time of all objects; the
 * certainty is the probability that removing the cause would save that time. Findings are ranked by the product, and
 * dropped if it is below FINDING_MIN. Texts are interned: they last until the program ends. One thread.
 */
#ifndef NLDIAG_FINDINGS_H
#define NLDIAG_FINDINGS_H

#include "diag/observed.h"

#define FINDING_MIN 0.1

/* From this share of unread bytes on, a program does not keep up with its input. */
#define UNREAD 0.2

/* Minimum number of passages, or objects, for a finding. */
#define PASSAGES_TELLING 30

/* A member of a group is slower than the others if it is so certainly, and by more than the others differ. */
#define CERTAIN 4.0  /* standard errors: by chance once in ten thousands */
#define UNLIKE 3.0   /* standard deviations of the others' means */
#define OTHERS_MIN 3 /* for a spread of theirs */

/* From this share of its speed on, without headers, an interface is full. */
#define LINK_FULL 0.9

typedef struct finding {
    const char *cause; /* one word, for programs: those of nldiag(1) */
    const char *title;
    double share, sure;  /* 0 to 1 */
    GPtrArray *evidence; /* const char * */
    const char *advice;
    int64_t from_ns, to_ns; /* when */
    const char *host;       /* NULL when it is of no one host */
    const leg *leg;         /* whose time it is, NULL when it is no one's */
    bool is_of_objects;     /* share is of objects, not of their time */
    bool is_of_host;        /* share is of the time of objects that the host is known by */
} finding;

/* The load of a host's processors, disks and memory, from the records of its sensors. NAN: unknown. */
typedef struct pressure {
    double cpu_busy;      /* %, of all processors */
    double cpu_waited;    /* %, of the time some task waited for one */
    double softirq_most;  /* %, of the processor that had most of it */
    double softirq_busy;  /* %, that this processor was busy in all */
    double softirq_user;  /* %, that it ran programs' own code */
    double disk_busy;     /* %, of the busiest disk */
    double disk_ms;       /* a request took, of the slowest disk in use */
    double io_waited;     /* %, of the time some task waited for I/O */
    double memory_waited; /* %, of the time some task waited for memory */
    double swapped;       /* bytes/s to and from swap space */
    double major_faults;  /* faults/s */
    double retransmits;   /* share of TCP segments that were sent again */
    double link;          /* share of the nearest usual speed of an interface, of the one that carries most */
    double space_used;    /* share of the fullest filesystem of those written to */
    double sending;       /* share of time that its TCP connections had something to send */
    double unread;        /* share of what TCP would take in that came and waits to be read by the program */
} pressure;

typedef struct findings {
    const observed *observed;
    pressure *pressures; /* by host */
    GPtrArray *list;     /* finding; the weightiest first after findings_rank */
} findings;

findings *findings_new(const observed *o);
void findings_free(findings *f);

/* Adds a finding for the whole time, which the caller completes and the list owns. title is that of printf. */
finding *findings_add(findings *f, const char *cause, double share, double sure, const char *title, ...)
    G_GNUC_PRINTF(5, 6);

void finding_evidence(finding *f, const char *format, ...) G_GNUC_PRINTF(2, 3);
void finding_advice(finding *f, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Sets the host (0: none) and the leg (NULL: none). */
void finding_place(finding *f, const observed *o, guint host, const leg *l);

/* Merges and sorts the findings, and drops those that explain too little. */
void findings_rank(findings *f);

/* ---- the rules, in the order of their calls: the last ones depend on what others found ---- */

void find_clocks(findings *f); /* what was measured, and clocks.c's corrections: clock */
void find_peers(findings *f); /* one host slower than those that do the same: disk, cpu, memory, loss, softirq, balance,
                                 straggler */
void find_kinds(findings *f); /* objects with one value of a field slower than the others: kind */
void find_hosts(findings *f); /* a host's resource used up: cpu, disk, memory, softirq, link */
void find_network(findings *f); /* TCP: window, buffer, loss, streams */
void find_queues(findings *f);  /* so many at a time: lock */
void find_timers(findings *f);  /* waits of a constant time, and for a beat: timer */
void find_unended(findings *f); /* what never comes: unended */
void find_pauses(findings *f);  /* everything stops now and then: pause */
void find_changes(findings *f); /* slow at some times, and what goes with it: varies */
void find_courses(findings *f); /* slow from some time on, and what is different then: changed */

/* After all of them: what clocks make doubtful of the ways that causes were found in. */
void doubt_clocks(findings *f);

/* ---- what they share ---- */

/* Like printf. */
const char *text_format(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* "1.2 ms", "35 %", "DiskReadStart -> DiskReadEnd on dpss3", "... from a to b". */
const char *text_ns(double ns);
const char *text_share(double share);
const char *text_leg(const observed *o, const leg *l);

/* Returns the share of all objects' time that a leg takes. */
double leg_share(const observed *o, const leg *l);

/* Returns whether two legs are between the same events, on any hosts. Such legs are neighbours. */
bool leg_is_same_way(const leg *a, const leg *b);

/* Returns the index after the last leg between the same events as a leg. */
guint leg_way_end(const GPtrArray *legs, guint number);

/* Returns whether a leg is on one host. */
bool leg_is_local(const leg *l);

/* Returns whether passages end one at a time, at a minimum distance, although they did not begin so. */
bool leg_ends_singly(const leg *l);

/* What is known of a host's clock, as a sentence. NULL if its times are not compared with another's, or nothing is
 * known. */
const char *text_clock(const observed *o, guint host);

/* Returns the pressure of each host, by its number, for g_free. */
pressure *pressures_new(const observed *o);

#endif
