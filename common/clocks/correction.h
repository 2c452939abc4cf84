/*
 * One time base for the records of many hosts, out of what the log itself holds: how the hosts' clocks were measured
 * against one another (ClockOffset, which every log of the binary protocol writes), when clocks were set (ClockStep),
 * and messages, which cannot have come before they went.
 *
 *   c = correction_new(&options);
 *   for each record: correction_learn(c, record);     in any order
 *   correction_solve(c);
 *   for each record: correction_apply(c, record);
 *
 * A message is two records of different hosts whose events are said to be its sending and receiving, or are by their
 * names (Ping.Send and Ping.Receive: the same but for such words), and whose ids are the same. All clocks are set to
 * that of the reference host, the collector if there is one. Aborts when there is no memory. One thread.
 */
#ifndef NETLOGGER_TIMEKEEPING_CORRECTION_H
#define NETLOGGER_TIMEKEEPING_CORRECTION_H

#include <netlogger.h>

typedef struct correction correction;

/* A pair of events that are a message's. */
typedef struct correction_message {
    const char *sent, *received;
} correction_message;

/* Texts are to outlive the correction. */
typedef struct correction_options {
    const char *reference;  /* a host; NULL: the collector against which most was measured, or who has most messages */
    const char *const *ids; /* fields that tell messages apart; NULL: all those whose names end in ID, and SEQ */
    size_t id_count;
    const correction_message *messages; /* none: by names */
    size_t message_count;
} correction_options;

/* The options are copied, their texts and lists not. The caller's, for correction_free. */
correction *correction_new(const correction_options *options);

/* Takes from a record what can be learnt; nothing of it is kept. */
void correction_learn(correction *c, const nl_record *record);

/* Finds the corrections, once, when all is learnt. */
void correction_solve(correction *c);

/*
 * A host's time, corrected: time_ns itself where nothing is known of its clock. *error_ns (NULL: not wanted) becomes
 * what may be wrong with it at most; infinite where nothing, or only one direction, is known. Any number of threads at
 * a time.
 */
int64_t correction_time(const correction *c, nl_string host, int64_t time_ns, double *error_ns);

/*
 * Corrects the time of a record, which becomes out with the field DATE.ORIGINAL behind the others, its time as it was
 * logged; a record that was corrected before keeps the one it has. Whether it was to be corrected: out is untouched
 * otherwise. The bytes of out's strings are its own.
 */
bool correction_apply(const correction *c, const nl_record *record, nl_record *out);

/* What became of a host. */
typedef struct correction_host {
    const char *name; /* the correction's */
    bool is_reference;
    bool is_known;            /* a correction was found */
    double offset_ns;         /* what is added to its times, in the middle of what is known of it */
    double least_ns, most_ns; /* of that, over all its time */
    double drift;             /* of its clock against the reference's: 1e-4 is 100 ppm fast */
    double error_ns;          /* that remains at most: infinite where only one direction is bounded */
    uint64_t measurements, messages, contradictions; /* of messages that cannot be true, by what was measured */
    unsigned pieces, steps;
} correction_host;

size_t correction_host_count(const correction *c);
correction_host correction_get_host(const correction *c, size_t i);

/* The reference host's name; NULL when there is none. */
const char *correction_reference(const correction *c);

void correction_free(correction *c);

#endif
