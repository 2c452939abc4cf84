/*
 * What a thread needs to write, kept so that nothing is allocated once warm. Itself it is from no heap, nor are the
 * fields of most events, so that a signal handler's call may be the thread's first. It goes with the thread.
 */
#ifndef NETLOGGER_LOG_SCRATCH_H
#define NETLOGGER_LOG_SCRATCH_H

#include "log/format_site.h"

typedef struct nl_scratch {
    nl_format_cache cache;
    nl_field *fields; /* nl_scratch_want_fields */
    size_t field_capacity;
    nl_buffer bytes; /* of printed values */
    nl_field usual[NL_FIELDS_MAX];

    /* The classic calls', which use what is above by way of nl_vwrite_after. */
    nl_record *record; /* NULL before the first */
    nl_buffer text;
} nl_scratch;

/* Which half of it is being used: a signal handler's call finds it in no state to be used then. */
typedef struct nl_scratch_use {
    bool by_write, by_classic;
} nl_scratch_use;

extern __thread nl_scratch *nl_scratch_here __attribute__((tls_model("initial-exec")));
extern __thread nl_scratch_use nl_scratch_used __attribute__((tls_model("initial-exec")));

nl_scratch *nl_scratch_make(void);

/* The calling thread's. NULL when there is no memory. */
static inline nl_scratch *nl_scratch_own(void)
{
    return nl_scratch_here != NULL ? nl_scratch_here : nl_scratch_make();
}

/* Sees to it that fields has room for so many; what is there may be gone. False when there is no memory. */
bool nl_scratch_want_fields(nl_scratch *scratch, size_t count);

#endif
