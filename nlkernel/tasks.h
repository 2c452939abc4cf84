/*
 * The processes and names of threads, by thread ID.
 *
 * The kernel's record of an event has only the thread ID. The process and the name come from /proc, from the names of
 * ended threads that the kernel keeps (saved_cmdlines), and from events: events of the scheduler have the names at
 * their time. Threads with the same name share a task_name. One thread; each lane has its own tasks.
 */
#ifndef NLKERNEL_TASKS_H
#define NLKERNEL_TASKS_H

#include <glib.h>
#include <netlogger.h>

enum { TASK_NAME_SIZE = 16 }; /* the kernel's size, with the terminating NUL */

/* A name, and its source and shapes in the lane's current block. */
typedef struct task_name {
    char text[TASK_NAME_SIZE + 8]; /* with a NUL */
    size_t size;
    unsigned generation; /* of the block to which source and shapes belong */
    unsigned source;
    unsigned *shapes; /* by the event's place: the shape's index plus 1; 0: no shape yet */
} task_name;

typedef struct task {
    int tid, pid;      /* pid 0: not known yet */
    int64_t looked_ns; /* when the name was last looked up, on the trace clock */
    task_name *name;   /* NULL: not known yet */
} task;

typedef struct tasks {
    GHashTable *by_tid, *names;
    task *last; /* the result of the last search */
    size_t event_count;
    int cpu;
    const char *saved_path; /* saved_cmdlines */
    int64_t saved_read_ns;
} tasks;

/* event_count: the number of shapes of a name. saved_path is borrowed. */
void tasks_start(tasks *t, int cpu, size_t event_count, const char *saved_path);
void tasks_free(tasks *t);

/* Like tasks_find, for a thread that is not the last one found, or whose name may be outdated. */
task *tasks_look(tasks *t, int tid, int64_t now_ns);

/* Returns a thread at a time of the trace clock, valid until the next call. */
static inline task *tasks_find(tasks *t, int tid, int64_t now_ns)
{
    task *last = t->last;
    if (__builtin_expect(last != NULL && last->tid == tid && now_ns - last->looked_ns < NL_NS_PER_SECOND, 1))
        return last;
    return tasks_look(t, tid, now_ns);
}

/* Sets the name of a thread, from an event. size: size of the field; a NUL may end the name earlier. */
void tasks_learn(tasks *t, int tid, const char *name, size_t size, int64_t now_ns);

#endif
