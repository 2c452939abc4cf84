/* Work that several threads do together: as many as there are processors, within reason. */
#ifndef NLSORT_WORKERS_H
#define NLSORT_WORKERS_H

#include <stddef.h>

enum { WORKERS_MAX = 8 };

size_t workers_count(void);

/* Calls work(user, 0) to work(user, count - 1), each in a thread of its own, the caller's the first; returns when all
 * have. */
void workers_run(size_t count, void (*work)(void *user, size_t worker), void *user);

#endif
