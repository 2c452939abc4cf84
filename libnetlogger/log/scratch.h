/*
 * Memory that each thread keeps between calls of nl_write and similar functions, so that later calls allocate nothing.
 * This memory, and the array of fields for most events, are not on the heap, so that a thread's first call may be in a
 * signal handler. The memory is freed when the thread ends.
 */
#ifndef NETLOGGER_LOG_SCRATCH_H
#define NETLOGGER_LOG_SCRATCH_H

#include "log/format_site.h"

typedef struct nl_scratch {
    nl_format_cache cache;
    nl_field *fields; /* `usual`, or a larger array from nl_scratch_want_fields */
    size_t field_capacity;
    nl_buffer bytes; /* text of printed values */
    nl_field usual[NL_FIELDS_MAX];

    /* The following members are for the classic calls, which also use the members above, because they call
     * nl_vwrite_after. */
    nl_record *record; /* NULL before the first call */
    nl_buffer text;
} nl_scratch;

/* The parts of the scratch that a call in progress uses. A signal handler that interrupts the call must not use these
 * parts. */
typedef struct nl_scratch_use {
    bool by_write, by_classic;
} nl_scratch_use;

extern __thread nl_scratch *nl_scratch_here __attribute__((tls_model("initial-exec")));
extern __thread nl_scratch_use nl_scratch_used __attribute__((tls_model("initial-exec")));

/* Creates the calling thread's scratch. Returns NULL if memory runs out. */
nl_scratch *nl_scratch_make(void);

/* Returns the calling thread's scratch; NULL if memory runs out. */
static inline nl_scratch *nl_scratch_own(void)
{
    return nl_scratch_here != NULL ? nl_scratch_here : nl_scratch_make();
}

/* Makes space for `count` fields, whose contents may be lost. Returns false if memory runs out. */
bool nl_scratch_want_fields(nl_scratch *scratch, size_t count);

#endif
