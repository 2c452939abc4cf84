/* Reads calls of functions from logs, from trace.dat files, and from the text of ftrace and perf. */
#ifndef NLKERNEL_CALLS_READ_H
#define NLKERNEL_CALLS_READ_H

#include "calls.h"
#include "log_input.h"

/* The description of the sources in --help. */
#define CALLS_SOURCES                                                                                                  \
    "A SOURCE is a log of nlkernel record --functions in any format, a file trace.dat of trace-cmd, the text of "      \
    "ftrace's file trace or of trace-cmd report, or the output of perf script; all also compressed with zstd or "      \
    "gzip. "                                                                                                           \
    "Without SOURCE, read standard input"

/* Reads the sources (none: standard input) and finishes input. Returns an exit status. */
int calls_read(calls *c, log_input *input, char **names, size_t count);

#endif
