/*
 * What the scheduler's events mean: how long each program ran at a time, how long it waited for a CPU when it could
 * have run, and who took the CPU from whom.
 *
 * From sched.sched_switch, sched.sched_wakeup and sched.sched_wakeup_new, in any order; NetLogger.Lost says where they
 * are not all there: what spans such a place is left out. One thread.
 */
#ifndef NLKERNEL_SCHEDULER_H
#define NLKERNEL_SCHEDULER_H

#include <netlogger.h>

typedef struct durations {
    int64_t *ns; /* rising, once all is computed */
    size_t count, capacity;
    int64_t sum_ns;
} durations;

typedef struct scheduler_program {
    char *name;
    durations quanta; /* from being switched in to being switched out */
    durations delays; /* from being able to run to being switched in */
    uint64_t ousted;  /* switched out although it could have run on, for another program or itself */
} scheduler_program;

typedef struct scheduler_ousting {
    unsigned victim, by; /* programs */
    uint64_t count;
} scheduler_ousting;

typedef struct scheduler {
    scheduler_program *programs; /* once computed: the one that ran longest first */
    size_t program_count;
    scheduler_ousting *oustings; /* once computed: the most frequent first */
    size_t ousting_count, ousting_capacity;
    uint64_t switches, lost;
    int64_t from_ns, to_ns;
    unsigned cpus;

    struct scheduler_event *events;
    size_t event_count, event_capacity;
    void *names; /* of programs, for tsearch(3) */
} scheduler;

/* Takes a record; others than those above are passed over. {0} is one that has seen none. */
void scheduler_take(scheduler *s, const nl_record *record);

/* Computes all, of what was taken. */
void scheduler_compute(scheduler *s);

/* The duration that a share (0 to 1) of them do not exceed; 0 when there are none. */
int64_t durations_at(const durations *d, double share);

void scheduler_free(scheduler *s);

#endif
