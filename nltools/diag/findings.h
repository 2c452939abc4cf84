/*
 * Causes: what nldiag says of why a program is slow, each with what it explains, how sure it is, and its evidence.
 *
 * A principle is a function that looks at an observed log and adds the causes that it finds. It claims a share of the
 * time of all objects, and says how sure it is that removing the cause would give that time back; the product is what
 * causes are ranked by. One that explains less than FINDING_MIN is not told.
 */
#ifndef NLDIAG_FINDINGS_H
#define NLDIAG_FINDINGS_H

#include "diag/observed.h"

#define FINDING_MIN 0.1

/* From this share on what is unread says that a program does not keep up with what comes. */
#define UNREAD 0.2

/* So many passages, or objects, say what they wait for. */
#define PASSAGES_TELLING 30

/* What is slower than others of its sort: certainly, and more than these differ by, if they are enough for that. */
#define CERTAIN 4.0  /* standard errors: by chance once in ten thousands */
#define UNLIKE 3.0   /* standard deviations of the others' means */
#define OTHERS_MIN 3 /* for a spread of theirs */

/* From this share of its speed on, headers aside, an interface carries no more. */
#define LINK_FULL 0.9

typedef struct finding {
    const char *cause; /* one word, for programs: those of nldiag(1) */
    char *title;
    double share, sure;  /* 0 to 1 */
    GPtrArray *evidence; /* char * */
    char *advice;
    int64_t from_ns, to_ns; /* when */
    const char *host;       /* NULL when it is of no one host */
    const leg *leg;         /* whose time it is, NULL when it is no one's */
    bool is_of_objects;     /* share is of objects, not of their time */
    bool is_of_host;        /* share is of the time of objects that the host is known by */
} finding;

/* What a host's processors, disks and memory were under, from whatever sensors the log has; NAN where it has none. */
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

/* A new finding that holds for the time of all objects, to be filled in; the list's own. title is printf's. */
finding *findings_add(findings *f, const char *cause, double share, double sure, const char *title, ...)
    G_GNUC_PRINTF(5, 6);

void finding_evidence(finding *f, const char *format, ...) G_GNUC_PRINTF(2, 3);
void finding_advice(finding *f, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Where: the host's name and the leg. Either may be 0 or NULL. */
void finding_place(finding *f, const observed *o, guint host, const leg *l);

/* Puts them in order, and takes out those that explain too little. */
void findings_rank(findings *f);

/* ---- the principles, in this order: the last one goes by what the others found ---- */

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

/* "1.2 ms", "35 %": the caller's to free. */
char *text_ns(double ns);
char *text_share(double share);

/* "DiskReadStart -> DiskReadEnd on dpss3", "... from a to b": the caller's to free. */
char *text_leg(const observed *o, const leg *l);

/* The share of all objects' time that a leg takes. */
double leg_share(const observed *o, const leg *l);

/* Whether two legs are between the same events of a lifeline, on whatever hosts. Such lie beside each other. */
bool leg_is_same_way(const leg *a, const leg *b);

/* The number after the last leg of the same way as one of a list. */
guint leg_way_end(const GPtrArray *legs, guint number);

/* Whether a leg stays on one host. */
bool leg_is_local(const leg *l);

/* Whether passages end one at a time, as they did not begin, at a distance that several keep. */
bool leg_ends_singly(const leg *l);

/* What is known of a host's clock, as a sentence: the caller's to free; NULL when its times are compared with nobody's,
 * or nothing is known. */
char *text_clock(const observed *o, guint host);

/* Of each host, by its number; the caller's to free. */
pressure *pressures_new(const observed *o);

#endif
