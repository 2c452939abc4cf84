/*
 * Names and detection of formats, and records packed for programs that lay them by. Any thread.
 */
#ifndef NETLOGGER_RECORD_FORMAT_H
#define NETLOGGER_RECORD_FORMAT_H

#include <netlogger.h>

/* "ulm", "bp", "logfmt", "nlb"; "unknown" for the rest. Static storage. */
const char *nl_format_name(nl_format format);

/* The format of that name, in any case; NL_FORMAT_UNKNOWN when there is none. */
nl_format nl_format_parse(const char *name);

/* The format of a file by its suffix (".nlb", ".bp", ".logfmt"), NL_FORMAT_UNKNOWN for any other name. */
nl_format nl_format_of_name(const char *name);

/* The format that bytes from the start of a log or connection seem to be in; NL_FORMAT_UNKNOWN when they don't tell. */
nl_format nl_format_detect(const char *data, size_t size);

/*
 * Appends record to out as bytes of its own that keep its types and nanoseconds: for a program that lays records by.
 * False, with nothing appended, when it is larger than 16 MiB or has more than 1,048,576 fields. The result is the same
 * for records whose members, fields and types are the same.
 */
bool nl_record_pack(const nl_record *record, nl_buffer *out);

/* Reads what nl_record_pack made into record, which is the caller's own. Results and lifetimes as nl_record_decode. */
nl_status nl_record_unpack(nl_record *record, const char *data, size_t size);

#endif
