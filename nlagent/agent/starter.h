/*
 * The starter is the process that starts sensors. After forking the starter, nlagentd gives up its own right to run
 * programs (service/confine.h). An attacker who controls nlagentd can therefore only send requests to the starter. The
 * starter runs only "nlagent collect", and the sensors in its own copy of the configuration.
 *
 * Two sockets connect nlagentd and the starter. One socket carries requests and replies. The other socket carries
 * reports of the exits of sensors. The starter and its sensors exit when nlagentd exits. If the starter ends first,
 * nlagentd exits with a message.
 *
 * The module owns the sockets and the reported exits that starter_wait has not returned yet. Not thread-safe.
 */
#ifndef NLAGENT_STARTER_H
#define NLAGENT_STARTER_H

#include "agent/definition.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct starter_options {
    definitions *all;           /* the definitions of the current configuration */
    void (*reread)(void *user); /* reads the configuration again; called in the starter */
    void *user;
    const char *client; /* path of nlagent, which runs collections */
    bool confined;      /* block the system calls that no sensor needs */
} starter_options;

/* Forks the starter. Call this function before starting threads. On failure, reports the problem and returns false. */
bool starter_begin(const starter_options *options);

/*
 * Starts a sensor in its own process group, with these descriptors as its standard input, output and error. Returns the
 * process ID, or -1 with errno set.
 */
pid_t starter_start(const definition *d, const sensor_spec *spec, double interval_s, const int streams[3]);

/* Sends a signal to the process group of a running sensor. */
void starter_signal(pid_t pid, int signal);

/* Like waitpid with WNOHANG: returns `pid` once, after the sensor has exited and the starter has killed the rest of its
 * process group. At other times, returns 0. */
pid_t starter_wait(pid_t pid, int *status);

/* Makes the starter read the configuration again, and waits until the starter has read it. */
void starter_reread(void);

#endif
