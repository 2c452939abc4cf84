/*
 * Reads function calls from trace-cmd's trace.dat files, versions 6 and 7. The format is described in
 * trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). The module trusts no offset or size in a file, and never reads outside
 * its bytes. One thread.
 */
#ifndef NLKERNEL_TRACE_DAT_H
#define NLKERNEL_TRACE_DAT_H

#include "calls.h"

enum { TRACE_DAT_MAGIC_SIZE = 10 };

/* Returns whether a file with these first bytes is a trace.dat. */
bool trace_dat_detect(const char *data, size_t size);

/*
 * Adds the calls in a whole file whose records match where (NULL: all). Returns false and sets the error if the file is
 * damaged or not supported; the calls before the error remain in c.
 */
bool trace_dat_read(calls *c, const nl_filter *where, const char *data, size_t size);

#endif
