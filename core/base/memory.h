/*
 * Out-of-memory handling. Code in core and libnetlogger calls nl_memory_failed and returns a failure. NetLogger's
 * programs exit instead: they define program_memory_failed (common/program/program.c), which nl_memory_failed calls.
 * Therefore, these programs need not check whether a library call ran out of memory.
 *
 * Functions that return no status, such as those that add fields, do nothing when memory runs out. Their callers
 * compare nl_memory_failures before and after a group of calls.
 */
#ifndef NETLOGGER_BASE_MEMORY_H
#define NETLOGGER_BASE_MEMORY_H

#include <netlogger.h>

#include <stdlib.h>

/* The number of times that memory ran out in this thread. */
extern __thread unsigned nl_memory_failures __attribute__((tls_model("initial-exec")));

/* Sets NL_ERROR_MEMORY and counts the failure. Returns NL_FAILED. */
nl_status nl_memory_failed(void);

/* Returns its argument. If the argument is NULL, first calls nl_memory_failed. */
static inline void *nl_memory_check(void *memory)
{
    if (__builtin_expect(memory == NULL, 0))
        nl_memory_failed();
#ifdef __clang_analyzer__
    if (memory == NULL)
        __builtin_trap(); /* In programs, nl_memory_failed does not return. */
#endif
    return memory;
}

/*
 * Enlarges an array of elements of `size` bytes if it has no space for the element at index `count`. Returns the array.
 * Returns NULL if memory runs out and the program does not define program_memory_failed.
 */
static inline void *nl_array_grow(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity == 0 ? 16 : 2 * *capacity;
    return nl_memory_check(reallocarray(array, *capacity, size));
}

#define NL_ARRAY_GROW(array, count, capacity) ((array) = nl_array_grow(array, count, &(capacity), sizeof *(array)))

/* Prints a message and exits. Only NetLogger's programs define this function. */
void program_memory_failed(void) __attribute__((weak));

#endif
