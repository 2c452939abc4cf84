/*
 * The process that starts sensors. nlagentd forks it first of all; afterwards nlagentd itself can run no program
 * (service/confine.h). Whoever takes over nlagentd can only ask this process, which runs the sensors of its own copy of
 * the configuration and "nlagent collect", and nothing else.
 *
 * Two sockets join the processes: one for requests and their answers, one for the ends of sensors. The process ends
 * when nlagentd does, and the sensors with it. If it ends first, nlagentd ends with a message.
 *
 * Owns the sockets and the list of sensors that ended and that nobody asked about yet. All functions are for the main
 * thread of nlagentd.
 */
#ifndef NLAGENT_STARTER_H
#define NLAGENT_STARTER_H

#include "agent/definition.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct starter_options {
    definitions *all;           /* as configured now */
    void (*reread)(void *user); /* reads the configuration again, into all; in the other process */
    void *user;
    const char *client; /* the path of nlagent, which runs collections */
    bool confined;      /* sensors lose system calls that none needs */
} starter_options;

/* Forks the process. Call it before there are threads. False after having reported why it cannot be started. */
bool starter_begin(const starter_options *options);

/*
 * Starts a sensor with these descriptors as its standard input, output and error. It leads a process group of its own.
 * Returns its process number, or -1 with errno.
 */
pid_t starter_start(const definition *d, const sensor_spec *spec, double interval_s, const int streams[3]);

/* Sends a signal to the process group of a sensor that has not ended. */
void starter_signal(pid_t pid, int signal);

/* As waitpid with WNOHANG: pid when that sensor has ended, once; 0 while it runs. The rest of its group is killed. */
pid_t starter_wait(pid_t pid, int *status);

/* Has the process read the configuration again, and waits until it has. */
void starter_reread(void);

#endif
