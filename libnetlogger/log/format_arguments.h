/*
 * printf formats that hold fields: "SEND.SZ=%ld FILE=%s".
 *
 * The format, never what is put into it, says where a field ends: each value is printed by itself, so that a %s may
 * bring blanks, quotes or NAME= with it and still be one value.
 */
#ifndef NETLOGGER_LOG_FORMAT_ARGUMENTS_H
#define NETLOGGER_LOG_FORMAT_ARGUMENTS_H

#include <netlogger.h>

#include <stdarg.h>

/*
 * Adds the fields that format describes to record (one from nl_record_new), taking the arguments from *arguments.
 * NL_OK, or NL_FAILED with the reason when the format is not a row of NAME=value, holds %n, or a conversion that
 * printf(3) has not. Values lie in scratch until they are copied; it is emptied first.
 */
nl_status nl_format_arguments(nl_record *record, nl_buffer *scratch, const char *format, va_list *arguments);

#endif
