/* Calls out of whatever they were written in: logs, trace.dat, what trace and perf script print. */
#ifndef NLKERNEL_CALLS_READ_H
#define NLKERNEL_CALLS_READ_H

#include "calls.h"
#include "program/program.h"

/* What of it --help says. */
#define CALLS_SOURCES                                                                                                  \
    "A SOURCE is a log of nlkernel record --functions in any format, trace-cmd's trace.dat, the text of ftrace's "     \
    "file "                                                                                                            \
    "trace or of trace-cmd report, or what perf script prints; told by its content, compressed by zstd or not. - and " \
    "nothing at all are standard input"

/* Reads count sources, none: standard input. Returns an exit status, having said on standard error what went wrong. */
int calls_read(calls *c, program_reading *reading, char **names, size_t count);

#endif
