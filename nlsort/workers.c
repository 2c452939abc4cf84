#include "config.h"

#include "workers.h"

#include "program/program.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

size_t workers_count(void)
{
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0)
        return 2;
    int count = CPU_COUNT(&usable);
    return count < 1 ? 1 : count > WORKERS_MAX ? WORKERS_MAX : (size_t)count;
}

typedef struct task {
    void (*work)(void *user, size_t worker);
    void *user;
    size_t worker;
} task;

static void *nlsort_workers_run(void *argument)
{
    const task *t = argument;
    t->work(t->user, t->worker);
    return NULL;
}

void workers_run(size_t count, void (*work)(void *user, size_t worker), void *user)
{
    pthread_t threads[WORKERS_MAX];
    task tasks[WORKERS_MAX];
    for (size_t i = 1; i < count; i++) {
        tasks[i] = (task){work, user, i};
        int error = pthread_create(&threads[i], NULL, nlsort_workers_run, &tasks[i]);
        if (error != 0)
            program_fail(PROGRAM_PROBLEM, "cannot start a thread: %s", strerror(error));
    }
    work(user, 0);
    for (size_t i = 1; i < count; i++)
        pthread_join(threads[i], NULL);
}
