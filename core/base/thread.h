/*
 * Threads of the library and the daemons. They block signals, so that the program's other threads receive the signals.
 */
#ifndef NETLOGGER_BASE_THREAD_H
#define NETLOGGER_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/*
 * Starts a thread that blocks all signals except SIGSYS, which a system call filter sends to the calling thread. The
 * parameters and return value are those of pthread_create.
 */
static inline int nl_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *user),
                                   void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSYS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, attributes, run, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

#endif
