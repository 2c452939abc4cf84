/*
 * The threads of a trace, by number, with the current call and the program of each thread. While the traced program has
 * only one thread, strace prints no thread number; number 0 denotes this thread.
 */
#ifndef NETLOGGER_CONVERT_STRACE_THREADS_H
#define NETLOGGER_CONVERT_STRACE_THREADS_H

#include <netlogger.h>

enum { STRACE_TID_LIMIT = 1 << 22 }; /* the kernel's maximum */

typedef struct strace_thread {
    uint32_t tid;
    bool is_known, has_ended;
    uint16_t prog, next_prog; /* numbers of the names of the program that the thread runs, and of the program that
                                 execve is starting; 0 if unknown */
    uint64_t call;            /* number of the current call; 0 if the thread is in no call */
    int64_t start_ns;         /* start of this call */
} strace_thread;

/* Initialize the structure with zeros. */
typedef struct strace_threads {
    strace_thread *slots;
    size_t count, slot_count; /* slot_count is a power of two */
    size_t alive;             /* number of numbered threads that have not ended */
    uint32_t only;            /* if `alive` is 1, the number of that thread; 0 if it is unknown */
    nl_string *names;
    size_t name_count;
    uint16_t parent_prog; /* program of the thread that forked last; new threads run the same program */
} strace_threads;

void strace_threads_free(strace_threads *all);

/*
 * Returns the thread with this number, or the only numbered thread for the number 0. Adds a thread if the number is
 * new. The pointer is valid until the next call.
 */
strace_thread *strace_threads_get(strace_threads *all, uint32_t tid);

/* Moves the current call of the thread without a number to t. Returns whether that thread was in a call. */
bool strace_threads_adopt(strace_threads *all, strace_thread *t);

/* Notes the end of a thread. A new thread may use its number again. */
void strace_threads_end(strace_threads *all, strace_thread *t);

/*
 * Returns the number of a program's name. Copies the name if it is new. Returns 0 if the name is empty or longer than
 * 255 bytes, or there are too many names.
 */
uint16_t strace_threads_name(strace_threads *all, nl_string name);

/* Returns the name of the program that a thread runs; data is NULL if it is unknown. */
nl_string strace_threads_prog(const strace_threads *all, const strace_thread *t);

#endif
