/* The threads of an strace, by their numbers: what each has begun, and what program it runs. */
#ifndef NETLOGGER_CONVERT_STRACE_THREADS_H
#define NETLOGGER_CONVERT_STRACE_THREADS_H

#include <netlogger.h>

enum { STRACE_TID_LIMIT = 1 << 22 }; /* no kernel has a number so high */

typedef struct strace_thread {
    uint32_t tid;
    bool is_known, has_ended;
    uint16_t prog, next_prog; /* numbers of names, 0: none; what it runs, what it wants to run */
    uint64_t call;            /* the number of what it has begun; 0: nothing */
    int64_t start_ns;         /* of that */
} strace_thread;

/* Zeroes at first. */
typedef struct strace_threads {
    strace_thread *slots;
    size_t count, slot_count; /* a power of two */
    size_t alive;             /* of those with a number */
    uint32_t only;            /* the number of the only one that is; 0: to be looked for */
    nl_string *names;
    size_t name_count;
    uint16_t parent_prog; /* of the process that forked last: what a new one runs */
} strace_threads;

void strace_threads_free(strace_threads *all);

/*
 * The thread of that number, made when it is new; it is good until the next call. Number 0 is a line without one:
 * strace leaves numbers out while there is one thread only.
 */
strace_thread *strace_threads_get(strace_threads *all, uint32_t tid);

/* The thread goes on with something that it has not begun by its number. True when it did so while it had none. */
bool strace_threads_adopt(strace_threads *all, strace_thread *t);

/* The thread has ended; its number may come again. */
void strace_threads_end(strace_threads *all, strace_thread *t);

/* The number of a program's name, which is copied; 0 when there are too many. */
uint16_t strace_threads_name(strace_threads *all, nl_string name);

/* The name of the program that a thread runs; data is NULL when it is not known. */
nl_string strace_threads_prog(const strace_threads *all, const strace_thread *t);

#endif
