/*
 * Every call of the kernel's functions, with its caller: ftrace's function tracer, in the recorder's own instance.
 *
 * What the tracer writes is an event beside the others, ftrace.function, with FUNCTION and CALLER by name. What the
 * recorder's own threads do is left out by the kernel where it can: reading a page calls some hundred functions.
 */
#ifndef NLKERNEL_FUNCTIONS_H
#define NLKERNEL_FUNCTIONS_H

#include "events.h"
#include "instance.h"
#include "kallsyms.h"

/* Adds the tracers' events, in room that kernel_events_read left. False with the reason in nl_error_message(). */
bool functions_describe(kernel_events *events, const tracing *t, const kallsyms *symbols);

/*
 * Chooses the tracer and which functions it is to see: globs, or !globs of those that it is not to; none: all. False
 * with the reason: this kernel has no such tracer, or refuses it, or no function is called so.
 */
bool functions_choose(const instance *i, const char *const *globs, size_t count);

#endif
