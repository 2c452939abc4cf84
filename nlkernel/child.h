/*
 * The command that is run while we record. It is made before anything is recorded, and starts when told to. One thread.
 */
#ifndef NLKERNEL_CHILD_H
#define NLKERNEL_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct child {
    pid_t pid;    /* 0: there is none */
    int go_fd;    /* it starts when a byte comes through */
    int error_fd; /* errno comes through when it can't be started */
    bool ended;
    int status; /* as waitpid has it */
} child;

/* Makes a process for argv, which waits. False with the reason in nl_error_message(). */
bool child_prepare(child *c, char **argv);

/* Starts it. False with the reason: it can't be found, or run. */
bool child_start(child *c);

/* Notes whether it has ended. */
void child_look(child *c);

/* Ends it when it runs (SIGTERM), or has never started, and waits for it. False when it goes on all the same. */
bool child_end(child *c);

#endif
