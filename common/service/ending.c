#include "config.h"

#include "service/ending.h"

#include "base/monotonic.h"
#include "base/thread.h"
#include "program/program.h"

#include <errno.h>
#include <netlogger.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_S = 10 };

static int64_t until_ns; /* 0 until the shutdown begins */
static unsigned allowed_s = DEFAULT_S;
static const char *to_remove;

void ending_begin(unsigned seconds)
{
    until_ns = nl_monotonic_ns() + seconds * NL_NS_PER_SECOND;
    allowed_s = seconds;
}

int64_t ending_left_ms(void)
{
    if (until_ns == 0)
        return DEFAULT_S * INT64_C(1000);
    int64_t left_ns = until_ns - nl_monotonic_ns();
    return left_ns > 0 ? left_ns / 1000000 : 0;
}

void ending_remove_pid_file(const char *path)
{
    long process = 0;
    FILE *file = fopen(path, "re");
    bool mine = file != NULL && fscanf(file, "%ld", &process) == 1 && process == getpid();
    if (file != NULL)
        fclose(file);
    if (mine)
        unlink(path);
}

static void *ending_end(void *unused)
{
    (void)unused;
    struct timespec until = nl_monotonic_timespec(until_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
    program_error("exiting after %u s with undelivered records, which remain in the spools", allowed_s);
    if (to_remove != NULL)
        ending_remove_pid_file(to_remove);
    _exit(PROGRAM_DONE);
}

void ending_enforce(const char *pid_file)
{
    pthread_t thread;
    to_remove = pid_file;
    int error = nl_thread_create(&thread, NULL, ending_end, NULL);
    if (error == 0)
        pthread_detach(thread);
    else
        program_error("cannot start a thread: %s", strerror(error));
}
