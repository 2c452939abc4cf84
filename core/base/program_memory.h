/*
 * For programs and for code that only programs use: a program that cannot get memory ends. The library itself never
 * does (memory.h).
 */
#ifndef NETLOGGER_BASE_PROGRAM_MEMORY_H
#define NETLOGGER_BASE_PROGRAM_MEMORY_H

#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints "PROGRAM: FUNCTION: problem" and ends the program with status 1. */
static inline _Noreturn void program_end_at(const char *function, const char *problem)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, function, problem);
    exit(1);
}

#define PROGRAM_REQUIRE(condition, problem)                                                                            \
    do {                                                                                                               \
        if (__builtin_expect(!(condition), 0))                                                                         \
            program_end_at(__func__, problem);                                                                         \
    } while (0)

#endif
