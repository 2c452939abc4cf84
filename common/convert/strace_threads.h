/*
 * The threads of a trace, indexed by their numbers, with the call that each thread has begun and the program that it
 * runs. While the program has only one thread, strace does not print a thread number; number 0 denotes this thread.
 */
#ifndef NETLOGGER_CONVERT_STRACE_THREADS_H
#define NETLOGGER_CONVERT_STRACE_THREADS_H

#include <netlogger.h>

enum { STRACE_TID_LIMIT = 1 << 22 }; /* the kernel's maximum */

typedef struct strace_thread {
    uint32_t tid;
    bool is_known, has_ended;
    uint16_t prog, next_prog; /* name numbers of the program that the thread runs, and of the program that it is about
                               * to run; 0 if unknown */
    uint64_t call;            /* number of the call that the thread has begun; 0 if it is in no call */
    int64_t start_ns;         /* time at which this call began */
} strace_thread;

/* Initialize the structure with zeros. */
typedef struct strace_threads {
    strace_thread *slots;
    size_t count, slot_count; /* slot_count is a power of two */
    size_t alive;             /* number of numbered threads that have not ended */
    uint32_t only;            /* number of the only such thread; 0 if it is unknown */
    nl_string *names;
    size_t name_count;
    uint16_t parent_prog; /* program of the process that forked last, which a new thread runs */
} strace_threads;

void strace_threads_free(strace_threads *all);

/* Returns the thread with this number, which is valid until the next call. Adds a thread if the number is new. */
strace_thread *strace_threads_get(strace_threads *all, uint32_t tid);

/* Moves the call of the thread without a number to t. Returns whether that thread had a call. */
bool strace_threads_adopt(strace_threads *all, strace_thread *t);

/* Records the end of a thread. Its number may be used again. */
void strace_threads_end(strace_threads *all, strace_thread *t);

/* Returns the number of a program's name, which is copied. Returns 0 if there are too many names. */
uint16_t strace_threads_name(strace_threads *all, nl_string name);

/* Returns the name of the program that a thread runs; data is NULL if it is unknown. */
nl_string strace_threads_prog(const strace_threads *all, const strace_thread *t);

#endif
