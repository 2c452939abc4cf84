/*
 * Loads the part of nlkernel trace that runs in the kernel (bpf/trace.bpf.c), chooses the processes, and delivers the
 * events in the order in which the kernel wrote them.
 *
 * The module chooses a process by its ID, name or control group, or because a chosen process has started the process.
 * With ports, the module chooses every process. Only one thread may use a probe. The callers of probe_start and
 * probe_choose must have raised their rights (rights.h).
 */
#ifndef NLKERNEL_TRACE_PROBE_H
#define NLKERNEL_TRACE_PROBE_H

#include "bpf/trace.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct probe probe;

/* The processes and connections to trace. */
typedef struct probe_choice {
    int *pids;
    size_t pid_count;
    GArray *ports;       /* uint16_t: trace only connections with one of these ports */
    GPtrArray *programs; /* char *: names of programs, as in /proc/PID/comm */
    GPtrArray *cgroups;  /* char *: directories of control groups */
} probe_choice;

/* Receives an event, which is valid only during the call. */
typedef void probe_take(void *user, const struct trace_event *event);

/* Starts tracing. probe_read passes events to `take` with `user`. `choice` must outlive the probe. Returns NULL and
 * sets the error on failure. */
probe *probe_start(const probe_choice *choice, probe_take *take, void *user);

/* Chooses the running processes that match. Returns the number of traced processes. */
size_t probe_choose(probe *p);

/* Passes the events since the last call to `take`. Returns the number of events. */
size_t probe_read(probe *p);

/*
 * Starts or stops counting the waits and reporting the wake-ups of threads (trace_event.counts_waits), which makes all
 * system calls of the machine slower. probe_start starts counting. Does nothing before Linux 6.3, where the programs
 * that report calls also count. The caller must have raised its rights.
 */
void probe_count_waits(probe *p, bool wanted);

/* Returns whether a process receives DNS messages whose senders are known only while the kernel counts waits. */
bool probe_has_late_senders(const probe *p);

/* Stops tracing. A later call of probe_read delivers the last events. */
void probe_stop(probe *p);

/* Returns the number of events that were lost because the kernel's buffer was full. */
uint64_t probe_missed(const probe *p);

/* Returns whether the kernel rejected probes in TLS libraries, or the search for these libraries in a process. */
bool probe_refused_tls(const probe *p);

/* Returns the number of calls on Unix sockets that nlkernel does not trace. */
uint64_t probe_unix_calls(const probe *p);

void probe_free(probe *p); /* NULL is allowed */

#endif
