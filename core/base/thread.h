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

/*
 * Like nl_thread_create, for a thread that uses at most stack_size bytes of its stack. The C library puts the
 * thread-local variables of the program and its libraries on the same stack, so the function adds their size.
 */
int nl_thread_create_small(pthread_t *thread, size_t stack_size, void *(*run)(void *user), void *user);

/*
 * Defines `name`, a key of threads, and name_set, which sets the calling thread's value and returns 0 or an error
 * number. When the thread ends, destructor frees the value. The key is created when the library is loaded, because a
 * thread that sets a key beyond the first 32 keys of the process allocates memory, and the call may be in a signal
 * handler. The constructor of another library may call name_set before the key exists; name_set then creates the key.
 */
#define NL_THREAD_KEY(name, destructor)                                                                                \
    static pthread_key_t name;                                                                                         \
    static pthread_once_t name##_once = PTHREAD_ONCE_INIT;                                                             \
    static void name##_create(void)                                                                                    \
    {                                                                                                                  \
        pthread_key_create(&name, destructor);                                                                         \
    }                                                                                                                  \
    __attribute__((constructor)) static void name##_load(void)                                                         \
    {                                                                                                                  \
        pthread_once(&name##_once, name##_create);                                                                     \
    }                                                                                                                  \
    static int name##_set(const void *value)                                                                           \
    {                                                                                                                  \
        name##_load();                                                                                                 \
        return pthread_setspecific(name, value);                                                                       \
    }

#endif
