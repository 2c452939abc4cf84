/*
 * Finds the process and the name of a thread by thread ID.
 *
 * The kernel's record of an event has only the thread ID. The process and the name come from /proc, from the kernel's
 * list of the names of ended threads (saved_cmdlines), and from scheduler events. Scheduler events contain the name at
 * the time of the event. Threads with the same name share a task_name. Not thread-safe; each lane has its own tasks.
 */
#ifndef NLKERNEL_TASKS_H
#define NLKERNEL_TASKS_H

#include <glib.h>
#include <netlogger.h>

enum { TASK_NAME_SIZE = 16 }; /* the kernel's size, with the terminating NUL */

/* A name, with its source and shapes in the lane's current block. */
typedef struct task_name {
    char text[TASK_NAME_SIZE + 8]; /* NUL-terminated */
    size_t size;
    unsigned generation; /* lane.generation of the block to which `source` and `shapes` belong */
    unsigned source;
    unsigned *shapes; /* for each event (index: kernel_event.place), 1 plus the index of its shape; 0: no shape yet */
} task_name;

typedef struct task {
    int tid, pid;      /* pid 0: not known yet */
    int64_t looked_ns; /* time on the trace clock at which the name was last set or looked up in /proc */
    task_name *name;   /* NULL: not known yet */
} task;

typedef struct tasks {
    GHashTable *by_tid, *names;
    task *last; /* the result of the last search */
    size_t event_count;
    int cpu;
    const char *saved_path; /* path of saved_cmdlines */
    int64_t saved_read_ns;
} tasks;

/* Initializes `t` for the events of a CPU. `event_count` is the number of chosen events. Borrows `saved_path`. */
void tasks_start(tasks *t, int cpu, size_t event_count, const char *saved_path);
void tasks_free(tasks *t);

/* Like tasks_find, but always searches. tasks_find returns the result of the last search if that search had the same ID
 * and was less than a second ago. */
task *tasks_look(tasks *t, int tid, int64_t now_ns);

/* Returns the thread with an ID at the time now_ns of the trace clock. Never returns NULL. The result is valid until
 * the next call. */
static inline task *tasks_find(tasks *t, int tid, int64_t now_ns)
{
    task *last = t->last;
    if (__builtin_expect(last != NULL && last->tid == tid && now_ns - last->looked_ns < NL_NS_PER_SECOND, 1))
        return last;
    return tasks_look(t, tid, now_ns);
}

/* Sets the name of a thread from a field of an event. `size` is the field's size; a NUL may end the name earlier. */
void tasks_learn(tasks *t, int tid, const char *name, size_t size, int64_t now_ns);

#endif
