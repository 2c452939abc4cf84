/*
 * Runs a sensor's process. The starter (starter.h) starts the process. This module reads records from the process's
 * standard output, watches the process, and restarts the process when it ends.
 *
 * The module passes records on as ULM lines. The module passes on a line without decoding if the line begins like a ULM
 * record, and contains neither control characters nor a second DATE field. The module decodes all other input (another
 * format, blocks, two records in a line), and encodes its records as ULM.
 *
 * Each process is the leader of its own process group, which ends with the process. If the sensor writes at each
 * measurement (definition.beats), nlagentd kills a process that has stopped writing. nlagentd also kills a process that
 * has closed its output but does not exit. nlagentd restarts a process 1 s after its exit. The delay doubles with each
 * further exit, up to 60 s, and returns to 1 s after the process has run for a minute.
 */
#ifndef NLAGENT_PROCESS_H
#define NLAGENT_PROCESS_H

#include "agent/definition.h"

#include <event2/event.h>
#include <netlogger.h>

typedef struct sensor_process sensor_process;

/* Functions that the module calls. Any function may be NULL. */
typedef struct process_watcher {
    void (*on_line)(void *user, const char *line, size_t size); /* a record, without its newline */
    void (*on_ended)(void *user, const char *reason, double retry_s);
    void (*on_started)(void *user, bool again);
    void *user;
} process_watcher;

/* Starts a process, and returns its state. Copies `watcher`. The objects to which the other arguments point must remain
 * valid until process_free. */
sensor_process *process_new(struct event_base *base, const definition *d, const sensor_spec *spec, double interval_s,
                            const process_watcher *watcher);

/* Requests the process to exit, and frees `p`. If the process does not exit, process_reap kills it. */
void process_free(sensor_process *p);

/* If the sensor accepts commands, changes the interval between measurements. */
void process_set_interval(sensor_process *p, double interval_s);

/* Returns the process ID, or 0 while the process is not running. */
int process_id(const sensor_process *p);

unsigned process_restarts(const sensor_process *p);

/* Kills freed processes that take too long to end. Call this function every second. */
void process_reap(void);

/* Waits briefly until all freed processes have ended, and then kills the remaining processes. Call this function once,
 * at the end. */
void process_reap_all(void);

#endif
