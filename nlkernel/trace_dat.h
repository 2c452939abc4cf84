/*
 * trace-cmd's trace.dat, versions 6 and 7: the calls of functions in it. What the file says of itself is believed
 * nowhere: everything is looked for within its bytes. One thread.
 */
#ifndef NLKERNEL_TRACE_DAT_H
#define NLKERNEL_TRACE_DAT_H

#include "calls.h"

/* Whether bytes from the start of a file look like one. */
bool trace_dat_detect(const char *data, size_t size);

/* Takes the calls in a whole file. False with the reason in nl_error_message(); what came before stays taken. */
bool trace_dat_read(calls *c, const char *data, size_t size);

#endif
