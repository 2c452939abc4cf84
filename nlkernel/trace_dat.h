/*
 * Reads function calls from trace-cmd's trace.dat files, versions 6 and 7. trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5)
 * describe the format. The module checks every offset and size in a file, and never reads outside the file's bytes. Not
 * thread-safe.
 */
#ifndef NLKERNEL_TRACE_DAT_H
#define NLKERNEL_TRACE_DAT_H

#include "calls.h"

enum { TRACE_DAT_MAGIC_SIZE = 10 };

/* Returns whether a file that begins with these bytes is a trace.dat file. */
bool trace_dat_detect(const char *data, size_t size);

/* Adds the calls in a file to `c`. If `where` is not NULL, adds only calls whose records match the filter. If the file
 * is damaged or not supported, returns false and sets the error; `c` then contains the calls before the error. */
bool trace_dat_read(calls *c, const nl_filter *where, const char *data, size_t size);

#endif
