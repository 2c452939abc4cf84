/*
 * What happens when memory runs out. Code of the library reports it with nl_memory_failed and returns a failure. A
 * program of ours ends instead: it defines program_memory_failed (program/program.c), which nl_memory_failed calls. So
 * programs need no checks of their own around calls of the library.
 *
 * A function that cannot return a status (it appends to a buffer or adds a field) does nothing when memory runs out.
 * Its caller compares nl_memory_failures before and after a group of such calls.
 */
#ifndef NETLOGGER_BASE_MEMORY_H
#define NETLOGGER_BASE_MEMORY_H

#include <netlogger.h>

/* How often memory ran out in this thread. */
extern __thread unsigned nl_memory_failures __attribute__((tls_model("initial-exec")));

/* Sets this thread's error message and counts the failure. Returns NL_FAILED. */
nl_status nl_memory_failed(void);

/* memory itself. NULL is reported as nl_memory_failed does. */
static inline void *nl_memory_check(void *memory)
{
    if (__builtin_expect(memory == NULL, 0))
        nl_memory_failed();
    return memory;
}

/* Ends a program with a message. Defined by our programs only. */
void program_memory_failed(void) __attribute__((weak));

#endif
