#include "config.h"

#include "recovery.h"

#include "program/program.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { TOLD_MOST = 256 };

struct recovery {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stop;
    unsigned interval_s;
    nl_log *log;
    int told[TOLD_MOST]; /* processes whose recovery failed */
    size_t next_told;
};

/* Whether that process's failure was told already; otherwise it counts as told. Of very many the first are forgotten.
 */
static bool was_told(recovery *r, int process)
{
    for (size_t i = 0; i < TOLD_MOST; i++)
        if (r->told[i] == process)
            return true;
    r->told[r->next_told++ % TOLD_MOST] = process;
    return false;
}

static void report(void *user, const nl_recovered *what)
{
    recovery *r = user;
    /* What cannot be recovered keeps its process's other logs, of which nothing is left. */
    bool nothing = what->status == NL_OK && what->records == 0;
    if (nothing || (what->status != NL_OK && was_told(r, what->process)))
        return;
    if (what->status == NL_OK)
        nl_write(r->log, NL_USAGE, "Netlogd.Recovered", "PROCESS=%d PROGRAM=%s RECORDS=%" PRIu64 " URL=%s",
                 what->process, what->prog, what->records, what->url);
    else
        nl_write(r->log, NL_WARNING, "Netlogd.RecoverFailed",
                 "PROCESS=%d PROGRAM=%s RECORDS=%" PRIu64 " URL=%s REASON=%s", what->process, what->prog, what->records,
                 what->url, what->message);
}

/* False when it is time to end. */
static bool wait_a_while(recovery *r)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += r->interval_s;
    pthread_mutex_lock(&r->mutex);
    int result = 0;
    while (!r->stop && result == 0)
        result = pthread_cond_timedwait(&r->changed, &r->mutex, &until);
    bool go_on = !r->stop;
    pthread_mutex_unlock(&r->mutex);
    return go_on;
}

static void *run(void *user)
{
    do
        nl_recover(NULL, report, user);
    while (wait_a_while(user));
    return NULL;
}

recovery *recovery_start(unsigned interval_s, nl_log *log)
{
    recovery *r = calloc(1, sizeof *r);
    if (r == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    r->interval_s = interval_s;
    r->log = log;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->changed, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&r->thread, NULL, run, r) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        return r;
    free(r);
    return NULL;
}

void recovery_stop(recovery *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->mutex);
    r->stop = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    pthread_join(r->thread, NULL);
    free(r);
}
