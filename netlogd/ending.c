#include "config.h"

#include "ending.h"

#include "program/program.h"

#include <errno.h>
#include <netlogger.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { UNLESS_SAID_S = 10 };

/* A process ends once. */
static struct timespec until;
static unsigned allowed_s = UNLESS_SAID_S;
static const char *to_remove;

void ending_begin(unsigned seconds)
{
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    allowed_s = seconds;
}

int64_t ending_left_ms(void)
{
    struct timespec now;
    if (until.tv_sec == 0)
        return UNLESS_SAID_S * INT64_C(1000);
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t left = (int64_t)(until.tv_sec - now.tv_sec) * 1000 + (until.tv_nsec - now.tv_nsec) / 1000000;
    return left > 0 ? left : 0;
}

static void *end(void *unused)
{
    (void)unused;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
    program_error("somebody does not take what is on its way, and %u s have passed: ending; it stays in its spool",
                  allowed_s);
    if (to_remove != NULL)
        unlink(to_remove);
    _exit(PROGRAM_DONE);
}

void ending_enforce(const char *pid_file)
{
    pthread_t thread;
    sigset_t all, before;
    to_remove = pid_file;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, end, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_detach(thread);
    else
        program_error("begin a thread: %s", strerror(error));
}
