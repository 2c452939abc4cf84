/*
 * Parses the text of kernel events, which has the same form in the output of perf script, in ftrace's trace file, and
 * in the output of trace-cmd report. Any thread may call these functions.
 */
#ifndef NETLOGGER_CONVERT_KERNEL_TEXT_H
#define NETLOGGER_CONVERT_KERNEL_TEXT_H

#include "convert/builder.h"

/*
 * Removes "SECONDS.FRACTION:" from the beginning of *text, and converts this time to nanoseconds. If the text has
 * another form, returns false, and may have removed a part of it.
 */
bool kernel_text_time(nl_string *text, int64_t *time_ns);

/* Sets the time of the record to the time of the option --base plus time_ns, which counts from the system boot. */
void kernel_text_date(builder *b, int64_t time_ns, sink *s);

/*
 * Adds the fields of "prev_comm=sh prev_pid=5 ==> next_comm=a b" or "dfd: 0x1, flags: 0x2", with the names that
 * nlkernel uses. Other text becomes the field TEXT.
 */
void kernel_text_fields(builder *b, nl_string text, sink *s);

#endif
