/*
 * The signals that a write can raise: SIGPIPE if no process reads the pipe or socket, and SIGXFSZ if a file would
 * exceed the process's file size limit. These signals end a program that does not handle them. The library's own
 * threads block all signals; where the library writes in the caller's thread, it blocks SIGPIPE and SIGXFSZ.
 */
#ifndef NETLOGGER_BASE_SIGNALS_H
#define NETLOGGER_BASE_SIGNALS_H

#include <netlogger.h>

#include <signal.h>

typedef struct nl_held_signals {
    sigset_t before;  /* the thread's signal mask before nl_signals_hold */
    sigset_t pending; /* signals that were already pending, which belong to the program */
} nl_held_signals;

/* Blocks SIGPIPE and SIGXFSZ in this thread. Sets *held to the state that nl_signals_release needs. */
void nl_signals_hold(nl_held_signals *held);

/* Discards SIGPIPE and SIGXFSZ if they arrived after nl_signals_hold, and restores the thread's mask. Keeps errno. */
void nl_signals_release(const nl_held_signals *held);

#endif
