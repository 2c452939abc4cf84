/* Threads of the library's and of daemons' own, which leave the program's signals to its other threads. */
#ifndef NETLOGGER_BASE_THREAD_H
#define NETLOGGER_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create, whose error number it returns (0: it runs); no signal is ever delivered to the thread but SIGSYS,
 * which a filter of system calls sends to the thread that made a call. */
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
