/*
 * Patterns of the names of programs. Many systems give each process of a program a name of its own: a number
 * (worker-12), a process ID (gunicorn.1234), or the name of a pod of Kubernetes. These names have the same pattern, in
 * which "*" stands for the parts that differ.
 *
 * The patterns are interned (g_intern_string). Any number of threads may call the functions.
 */
#ifndef NETLOGGER_REQUESTS_PROGRAM_NAMES_H
#define NETLOGGER_REQUESTS_PROGRAM_NAMES_H

#include <stdbool.h>

/*
 * Returns the pattern of a program's name: "*" replaces the last number, all numbers, or the random parts of a pod's
 * name. Returns NULL if the name has none of these, or no letters.
 */
const char *program_find_pattern(const char *name, bool all);

/* Returns the pattern of a program's name, in which "*" replaces all numbers and the random parts of a pod's name. If
 * the name has no such parts, or has only digits, returns the name. The pattern of a pattern is the same pattern. */
const char *program_pattern(const char *name);

#endif
