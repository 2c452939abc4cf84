/*
 * The internals of NetLogger 4's interface (nl.h): logs, and the summaries of their transfers.
 *
 * nl.c opens and writes logs, nl_log.c finds logs by name, and nltransfer.c writes and summarizes transfers.
 */
#ifndef NETLOGGER_CLASSIC_NL_PRIVATE_H
#define NETLOGGER_CLASSIC_NL_PRIVATE_H

#include <netlogger.h>

#include "nltransfer.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>

enum { WRITTEN = 0, LOST = -1 }; /* the values of NL_OK and NL_ERROR in nl.h */

struct NL_log_T {
    nl_log *log; /* NULL: inactive */
    NL_level_t level;
    NL_summ_T summ;       /* NULL: no summary */
    pthread_mutex_t lock; /* error-checking, so that signal handlers do not deadlock; protects the members below */
    nl_record *constants; /* host, program and the fields that precede those of an event */
    nl_record *record;    /* the event that is being written */
};

/*
 * Like NL_set_const and NL_write, but the arguments of the format are a va_list in the first two functions. time_ns is
 * in nanoseconds since 1970 UTC; 0 means the current time.
 */
NL_result_t nl_classic_set_constants(NL_log_T log, const char *format, va_list *arguments);
NL_result_t nl_classic_write(NL_log_T log, int64_t time_ns, NL_level_t level, const char *event, const char *format,
                             va_list *arguments);
NL_result_t nl_classic_write_at(NL_log_T log, int64_t time_ns, NL_level_t level, const char *event, const char *format,
                                ...);

#endif
