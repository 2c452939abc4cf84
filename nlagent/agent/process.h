/*
 * A sensor: a process that the starter (starter.h) starts. Its standard output is read as records. It is watched, and
 * started again when it ends.
 *
 * It is of a process group of its own, which is killed with it. One that hangs (of those that are known to write at
 * every look) is killed, and so is one that closes its output and does not end. One that ended is started again after
 * 1 s, then 2, 4 ... up to a minute; a minute of work makes that 1 s again. Each of these things is reported.
 */
#ifndef NLAGENT_PROCESS_H
#define NLAGENT_PROCESS_H

#include "agent/definition.h"

#include <event2/event.h>
#include <netlogger.h>

typedef struct sensor_process sensor_process;

typedef struct process_watcher {
    void (*on_record)(void *user, const nl_record *record);
    void (*on_ended)(void *user, const char *reason, double again_s); /* it is started again after so many seconds */
    void (*on_started)(void *user, bool again);
    void *user;
} process_watcher;

/* Starts one. What it is given must last until process_free. */
sensor_process *process_new(struct event_base *base, const definitions *all, const definition *d,
                            const sensor_spec *spec, double interval_s, const process_watcher *watcher);

/* Ends it: asks it to, and kills it a moment later. */
void process_free(sensor_process *p);

/* Has it look so often from now on, as far as it can be told. */
void process_set_interval(sensor_process *p, double interval_s);

/* Its number; 0 while it does not run. */
int process_id(const sensor_process *p);

/* How often it was started again. */
unsigned process_restarts(const sensor_process *p);

/* Takes leave of those that were freed and have ended; kills those that take too long about it. */
void process_reap(void);

/* Takes leave of all that were freed, at the end: waits a moment, then kills. */
void process_reap_all(void);

#endif
