/*
 * Threads by their numbers: which process each belongs to, and what it is called.
 *
 * The kernel's record of an event holds the thread's number only. The rest comes from /proc, from the names that the
 * kernel keeps of threads that are gone (saved_cmdlines), and from the events themselves: those of the scheduler tell
 * names as they are at that time. Threads of the same name share one task_name. One thread; each lane has its own.
 */
#ifndef NLKERNEL_TASKS_H
#define NLKERNEL_TASKS_H

#include <netlogger.h>

enum { TASK_NAME_SIZE = 16 }; /* the kernel's, with its terminating NUL */

/* A name, with what the lane's present block has of it. */
typedef struct task_name {
    char text[TASK_NAME_SIZE + 8];
    size_t size;
    unsigned generation; /* of the block that the rest is about */
    unsigned source;
    unsigned *shapes; /* by the event's place: the shape's and one, 0 when there is none yet */
} task_name;

typedef struct task {
    int tid, pid; /* pid is 0 while it is not known */
    bool used;
    int64_t looked_ns; /* when its name was taken last, on the trace clock */
    task_name *name;
} task;

typedef struct tasks {
    task *slots;
    size_t capacity, count;
    task_name **names;
    size_t name_capacity, name_count;
    task *last; /* that was found */
    size_t event_count;
    int cpu;
    const char *saved_path; /* saved_cmdlines */
    int64_t saved_read_ns;
} tasks;

/* event_count: how many shapes a name may have; saved_path belongs to the caller. */
void tasks_start(tasks *t, int cpu, size_t event_count, const char *saved_path);
void tasks_free(tasks *t);

/* tasks_find for one that was not the last, or whose name may be old. */
task *tasks_look(tasks *t, int tid, int64_t now_ns);

/* The thread of that number, at a time of the trace clock. It lasts until the next call. */
static inline task *tasks_find(tasks *t, int tid, int64_t now_ns)
{
    task *last = t->last;
    if (__builtin_expect(last != NULL && last->tid == tid && now_ns - last->looked_ns < NL_NS_PER_SECOND, 1))
        return last;
    return tasks_look(t, tid, now_ns);
}

/* An event said that the thread is called that; size is that of the field, which a NUL may end. */
void tasks_learn(tasks *t, int tid, const char *name, size_t size, int64_t now_ns);

#endif
