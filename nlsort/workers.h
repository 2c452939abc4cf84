/* Runs a function in several threads. */
#ifndef NLSORT_WORKERS_H
#define NLSORT_WORKERS_H

#include <stddef.h>

enum { WORKERS_MAX = 8 };

/* Returns the number of processors that the program may use, but at most WORKERS_MAX; 2 if the number is unknown. */
size_t workers_count(void);

/*
 * Calls work(user, 0) to work(user, count - 1), each in its own thread; the first call is in the caller's thread.
 * `count` is at most WORKERS_MAX. Returns when all calls have returned.
 */
void workers_run(size_t count, void (*work)(void *user, size_t worker), void *user);

#endif
