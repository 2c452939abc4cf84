/*
 * The process that starts sensors. nlagentd forks it first; afterwards, nlagentd itself cannot run programs
 * (service/confine.h). An attacker who controls nlagentd can only send requests to this process, which runs the sensors
 * of its own copy of the configuration, and "nlagent collect".
 *
 * Two sockets connect the processes: one for requests and replies, one for the ends of sensors. The process and its
 * sensors end with nlagentd. If the process ends first, nlagentd exits with a message.
 *
 * The module owns the sockets and the ends that starter_wait has not returned yet. One thread.
 */
#ifndef NLAGENT_STARTER_H
#define NLAGENT_STARTER_H

#include "agent/definition.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct starter_options {
    definitions *all;           /* of the present configuration */
    void (*reread)(void *user); /* reads the configuration again; runs in the other process */
    void *user;
    const char *client; /* the path of nlagent, which runs collections */
    bool confined;      /* sensors lose the system calls that no sensor needs */
} starter_options;

/* Forks the process. Call it before starting threads. Returns false after reporting the problem. */
bool starter_begin(const starter_options *options);

/*
 * Starts a sensor with these descriptors as its standard input, output and error, in its own process group. Returns the
 * process ID, or -1 with errno.
 */
pid_t starter_start(const definition *d, const sensor_spec *spec, double interval_s, const int streams[3]);

/* Sends a signal to the process group of a sensor that has not ended. */
void starter_signal(pid_t pid, int signal);

/*
 * Like waitpid with WNOHANG: returns pid once after the sensor has ended, else 0. Kills its process group in that case.
 */
pid_t starter_wait(pid_t pid, int *status);

/* Makes the process read the configuration again, and waits until it has done so. */
void starter_reread(void);

#endif
