/*
 * The command that runs during a recording. Its process is created before the recording, so that the recording can
 * select it; child_start then starts the command. One thread.
 */
#ifndef NLKERNEL_CHILD_H
#define NLKERNEL_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct child {
    pid_t pid;    /* 0: none */
    int go_fd;    /* a byte here starts the command; -1 afterwards */
    int error_fd; /* gets errno if the command cannot be started */
    bool ended;
} child;

/* Creates a process for argv, which waits. Returns false and sets the error on failure. */
bool child_prepare(child *c, char **argv);

/* Starts the command. Returns false and sets the error if it cannot be started. */
bool child_start(child *c);

/* Updates ended. */
void child_poll(child *c);

/* Ends the process (SIGTERM) and waits for it. Returns false if it still runs after five seconds. */
bool child_end(child *c);

/* Runs a command with its output in a file (NULL: nlkernel's standard output). Returns whether its exit status is 0. */
bool child_run(char *const *argv, const char *output);

#endif
