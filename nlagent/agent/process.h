/*
 * A sensor's process: the starter (starter.h) starts it, and this module reads records from its standard output,
 * watches it, and starts it again when it ends.
 *
 * Records are passed on as lines of ULM. A line that begins as a record of ULM and holds no control characters is
 * passed on unread; anything else (another format, blocks, a line cut off) goes through a decoder and is encoded again.
 *
 * A process leads its own process group, which ends with it. nlagentd kills a process that hangs (if its definition
 * says that it writes at each measurement), and one that closes its output but does not end. nlagentd starts a process
 * that ended after 1 s, then after 2, 4 ... up to 60 s; after a minute of work the delay is 1 s again.
 */
#ifndef NLAGENT_PROCESS_H
#define NLAGENT_PROCESS_H

#include "agent/definition.h"

#include <event2/event.h>
#include <netlogger.h>

typedef struct sensor_process sensor_process;

/* Any function may be NULL. */
typedef struct process_watcher {
    void (*on_line)(void *user, const char *line, size_t size); /* a record, without its newline */
    void (*on_ended)(void *user, const char *reason, double retry_s);
    void (*on_started)(void *user, bool again);
    void *user;
} process_watcher;

/* Starts a process. What the arguments point to must last until process_free, except for the watcher, which is copied.
 */
sensor_process *process_new(struct event_base *base, const definition *d, const sensor_spec *spec, double interval_s,
                            const process_watcher *watcher);

/* Asks the process to end. process_reap kills it if it does not. */
void process_free(sensor_process *p);

/* Changes the interval between measurements, if the sensor accepts commands. */
void process_set_interval(sensor_process *p, double interval_s);

/* Returns the process ID, or 0 while the process does not run. */
int process_id(const sensor_process *p);

/* Returns how often the process was started again. */
unsigned process_restarts(const sensor_process *p);

/* Kills freed processes that take too long to end. Call it every second. */
void process_reap(void);

/* Waits briefly for all freed processes to end, then kills them. Call it once, at the end. */
void process_reap_all(void);

#endif
