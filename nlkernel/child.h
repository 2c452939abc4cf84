/*
 * Runs a command during a recording. child_prepare creates the process before the recording begins, so that the
 * recording can select the process. child_start then starts the command. Not thread-safe.
 */
#ifndef NLKERNEL_CHILD_H
#define NLKERNEL_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct child {
    pid_t pid;    /* 0: no process */
    int go_fd;    /* writing a byte starts the command; -1 after the start */
    int error_fd; /* receives errno if the command cannot be started */
    bool ended;
} child;

/* Creates a process that waits for child_start and then runs argv. Returns false and sets the error on failure. */
bool child_prepare(child *c, char **argv);

/* Starts the command. Returns false and sets the error if the process cannot be started. */
bool child_start(child *c);

/* Checks without waiting whether the process has ended, and sets `ended` if so. */
void child_poll(child *c);

/* Terminates the process and waits for its end. Sends SIGTERM if the command was started. Returns false if the process
 * is still running after 5 seconds. */
bool child_end(child *c);

/* Runs a command and returns whether its exit status is 0. Writes standard output and standard error of the command to
 * the file `output`. If `output` is NULL, the command inherits these descriptors from nlkernel. */
bool child_run(char *const *argv, const char *output);

#endif
