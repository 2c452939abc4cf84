/* Memory without which a program cannot go on: what was allocated, or the process aborts. */
#ifndef NETLOGGER_TIMEKEEPING_OR_ABORT_H
#define NETLOGGER_TIMEKEEPING_OR_ABORT_H

#include <stdlib.h>

static inline void *or_abort(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

#endif
