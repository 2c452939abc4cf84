#include "config.h"

#include "recovery.h"

#include "base/monotonic.h"
#include "base/thread.h"
#include "program/program.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TOLD_MAX = 256,
    NS_PER_MS = 1000000,
};

struct recovery {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stop;
    bool ended;          /* the thread */
    bool left;           /* by its server, and by the log with it */
    int64_t patience_ns; /* once it is to stop: until then it is waited for, by the monotonic clock */
    unsigned interval_s;
    nl_log *log;
    int told[TOLD_MAX]; /* processes whose recovery failed */
    size_t next_told;
};

/* Whether that process's failure was told already; otherwise it counts as told. Of very many the first are forgotten.
 */
static bool was_told(recovery *r, int process)
{
    for (size_t i = 0; i < TOLD_MAX; i++)
        if (r->told[i] == process)
            return true;
    r->told[r->next_told++ % TOLD_MAX] = process;
    return false;
}

static void tell(recovery *r, const nl_recovered *what)
{
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

static void report(void *user, const nl_recovered *what)
{
    recovery *r = user;
    pthread_mutex_lock(&r->mutex);
    if (!r->left)
        tell(r, what);
    pthread_mutex_unlock(&r->mutex);
}

/* Waits for a change, with the mutex held; false when the time is over. */
static bool wait_until(recovery *r, int64_t ns)
{
    struct timespec until = nl_monotonic_timespec(ns);
    return pthread_cond_timedwait(&r->changed, &r->mutex, &until) == 0;
}

/* False when it is time to end. */
static bool wait_a_while(recovery *r)
{
    int64_t until_ns = nl_monotonic_ns() + r->interval_s * NL_NS_PER_SECOND;
    pthread_mutex_lock(&r->mutex);
    while (!r->stop && wait_until(r, until_ns))
        ;
    bool go_on = !r->stop;
    pthread_mutex_unlock(&r->mutex);
    return go_on;
}

static void *run(void *user)
{
    recovery *r = user;
    do
        nl_recover(NULL, report, r);
    while (wait_a_while(r));
    pthread_mutex_lock(&r->mutex);
    r->ended = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->mutex);
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
    nl_monotonic_cond_init(&r->changed);
    int error = nl_thread_create(&r->thread, NULL, run, r);
    if (error == 0)
        return r;
    program_error("what killed programs leave is not recovered: begin a thread: %s", strerror(error));
    free(r);
    return NULL;
}

void recovery_end(recovery *r, int64_t patience_ms)
{
    if (r == NULL)
        return;
    int64_t until_ns = nl_monotonic_ns() + patience_ms * NS_PER_MS;
    pthread_mutex_lock(&r->mutex);
    if (!r->stop || until_ns < r->patience_ns)
        r->patience_ns = until_ns;
    r->stop = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

bool recovery_is_over(recovery *r)
{
    if (r == NULL)
        return true;
    pthread_mutex_lock(&r->mutex);
    bool over = r->ended || nl_monotonic_ns() >= r->patience_ns;
    pthread_mutex_unlock(&r->mutex);
    return over;
}

void recovery_free(recovery *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->mutex);
    while (!r->ended && wait_until(r, r->patience_ns))
        ;
    bool ended = r->ended;
    r->left = !ended;
    pthread_mutex_unlock(&r->mutex);
    /* Otherwise the process's end ends it in the middle of its work, which the next recovery does again. */
    if (!ended)
        return;
    pthread_join(r->thread, NULL);
    free(r);
}
