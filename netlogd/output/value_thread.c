#include "config.h"

#include "value_thread.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "program/program.h"

#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

enum {
    JOBS_MAX = 10000, /* maximum number of files that wait for the thread */
    STOP_SIZE =
        2 * VALUE_SEGMENT_SIZE, /* approximate maximum number of bytes that are read after the thread has stopped */
};

struct value_job {
    value_job *next;
    char *path;
    value_source source;
    uint64_t announced; /* `end` when the thread was last woken; only the server's thread uses `announced` */
    _Atomic uint64_t end;
    atomic_bool ended;
    uint64_t tried; /* the thread continues when `end` exceeds `tried` by a segment, or when the job has ended */
};

static _Atomic(value_job *) added; /* jobs that the thread has not yet taken, latest first */
static value_job *jobs; /* jobs that the thread has taken, oldest first; only the thread uses them while it runs */
static atomic_uint job_count;
static atomic_bool stopping;
static bool allowed, running;
static pthread_t thread;
static sem_t wakeups;

static void *run_value_thread(void *user);

/* ---- the server's thread ---- */

static void start_value_thread(void)
{
    if (running || !allowed)
        return;
    sem_init(&wakeups, 0, 0);
    running = nl_thread_create(&thread, NULL, run_value_thread, NULL) == 0;
    if (!running)
        program_error("cannot start the thread that creates indexes of values; searches by value take longer");
}

void value_thread_allow(void)
{
    allowed = true;
    if (atomic_load(&job_count) > 0)
        start_value_thread();
}

value_job *value_thread_add(const char *path, uint64_t inode, uint64_t size, nl_format format,
                            const value_choice *choice)
{
    if (choice->none || atomic_load(&job_count) >= JOBS_MAX)
        return NULL;
    value_job *job = nl_memory_check(calloc(1, sizeof *job));
    job->path = program_copy(path);
    job->source = (value_source){
        .path = job->path, .inode = inode, .choice = *choice, .format = format, .own = size, .stop = &stopping};
    atomic_fetch_add(&job_count, 1);
    job->next = atomic_load(&added);
    while (!atomic_compare_exchange_weak(&added, &job->next, job))
        ;
    start_value_thread();
    return job;
}

static void wake_value_thread(void)
{
    if (running)
        sem_post(&wakeups);
}

void value_thread_advance(value_job *job, uint64_t end)
{
    if (job == NULL)
        return;
    atomic_store(&job->end, end);
    if (end - job->announced < VALUE_SEGMENT_SIZE)
        return;
    job->announced = end;
    wake_value_thread();
}

void value_thread_end(value_job *job)
{
    if (job == NULL)
        return;
    atomic_store(&job->ended, true);
    wake_value_thread();
}

/* ---- the thread ---- */

/* Moves the added jobs to the end of the list. */
static void take_added_jobs(void)
{
    value_job *latest = atomic_exchange(&added, NULL), *oldest = NULL, **end = &jobs;
    while (latest != NULL) {
        value_job *job = latest;
        latest = job->next;
        job->next = oldest;
        oldest = job;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = oldest;
}

static void free_value_job(value_job **place)
{
    value_job *job = *place;
    *place = job->next;
    free(job->path);
    free(job);
    atomic_fetch_sub(&job_count, 1);
}

static value_job **find_value_job(void)
{
    take_added_jobs();
    for (value_job **place = &jobs; *place != NULL; place = &(*place)->next) {
        const value_job *job = *place;
        if (atomic_load(&job->ended) || atomic_load(&job->end) >= job->tried + VALUE_SEGMENT_SIZE)
            return place;
    }
    return NULL;
}

/*
 * Extends the index of the job's file as far as possible. Frees the job if it has ended, unless the thread must stop.
 */
static void run_value_job(value_job **place)
{
    value_job *job = *place;
    const bool ended = atomic_load(&job->ended);
    const uint64_t end = atomic_load(&job->end);
    value_file *v = value_file_open(&job->source);
    while (v != NULL && value_file_extend(v, ended))
        ;
    uint64_t covered = v != NULL ? value_file_covered(v) : end;
    value_file_close(v);
    job->tried = covered > job->tried ? covered : end;
    if (ended && !atomic_load(&stopping))
        free_value_job(place);
}

static void *run_value_thread(void *user)
{
    const struct sched_param none = {0};
    if (sched_setscheduler(0, SCHED_IDLE, &none) != 0)
        program_error("cannot give the lowest priority to the thread that creates indexes of values: %m");
    while (!atomic_load(&stopping)) {
        value_job **place = find_value_job();
        if (place != NULL)
            run_value_job(place);
        else
            while (sem_wait(&wakeups) != 0)
                ;
    }
    return user;
}

/* ---- stopping ---- */

/* Completes the index of a file while `*left` bytes may be read. */
static void complete_value_job(const value_job *job, uint64_t *left)
{
    value_file *v = value_file_open(&job->source);
    for (bool more = v != NULL; more && *left > 0;) {
        const uint64_t before = value_file_covered(v);
        more = value_file_extend(v, true);
        const uint64_t size = value_file_covered(v) - before;
        *left -= size < *left ? size : *left;
    }
    value_file_close(v);
}

void value_thread_stop(void)
{
    uint64_t left = STOP_SIZE;
    if (running) {
        atomic_store(&stopping, true);
        sem_post(&wakeups);
        pthread_join(thread, NULL);
        sem_destroy(&wakeups);
        running = allowed = false;
        atomic_store(&stopping, false);
    }
    for (take_added_jobs(); jobs != NULL; free_value_job(&jobs))
        if (left > 0)
            complete_value_job(jobs, &left);
}
