/*
 * Writing where nobody reads, or where a file must not grow further, raises a signal in the thread that writes, and
 * that signal ends a program that does not know of it. The library lives in other people's programs: threads of its own
 * block all signals, and where it writes in the caller's thread it holds these.
 */
#ifndef NETLOGGER_BASE_SIGNALS_H
#define NETLOGGER_BASE_SIGNALS_H

#include <netlogger.h>

#include <signal.h>

typedef struct nl_held_signals {
    sigset_t before;  /* the thread's mask */
    sigset_t pending; /* those of them that were pending already: the program's */
} nl_held_signals;

/* From here on SIGPIPE and SIGXFSZ do not reach this thread. */
void nl_signals_hold(nl_held_signals *held);

/* Until here: those that came in between are taken away. errno stays. */
void nl_signals_release(const nl_held_signals *held);

#endif
