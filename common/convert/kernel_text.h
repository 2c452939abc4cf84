/*
 * What the kernel's own texts of events have in common, whoever printed them: perf script, ftrace's file trace,
 * trace-cmd report.
 */
#ifndef NETLOGGER_CONVERT_KERNEL_TEXT_H
#define NETLOGGER_CONVERT_KERNEL_TEXT_H

#include "convert/builder.h"

/* SECONDS.FRACTION: as nanoseconds. False, with nothing that matters taken, when text does not begin so. */
bool kernel_text_time(nl_string *text, int64_t *time_ns);

/* Sets the record's time: time_ns of a clock that begins when the machine is started, after what --base says. */
void kernel_text_date(builder *b, int64_t time_ns, sink *s);

/*
 * Adds fields by the names that nlkernel gives them: of "prev_comm=sh prev_pid=5 ==> next_comm=a b", of
 * "dfd: 0x1, flags: 0x2", and, when it is neither, all of it as TEXT.
 */
void kernel_text_fields(builder *b, nl_string text, sink *s);

#endif
