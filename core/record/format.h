/* Names and detection of formats, and packed records. Any thread. */
#ifndef NETLOGGER_RECORD_FORMAT_H
#define NETLOGGER_RECORD_FORMAT_H

#include <netlogger.h>

/* Returns "ulm", "bp", "logfmt" or "nlb"; "unknown" for other values. Static storage. */
const char *nl_format_name(nl_format format);

/* Returns the format with a name, in any case, or NL_FORMAT_UNKNOWN. */
nl_format nl_format_parse(const char *name);

/* Returns the format of a file by its suffix (".nlb", ".bp", ".logfmt"), or NL_FORMAT_UNKNOWN. */
nl_format nl_format_of_name(const char *name);

/* Returns the format of bytes from the start of a log or connection, or NL_FORMAT_UNKNOWN. */
nl_format nl_format_detect(const char *data, size_t size);

/*
 * Appends a record to out in a form that keeps types and nanoseconds, for programs that store records temporarily.
 * Equal records give equal bytes. Returns false and appends nothing if the record exceeds 16 MiB or 1,048,576 fields.
 */
bool nl_record_pack(const nl_record *record, nl_buffer *out);

/* Decodes a record of nl_record_pack. Return values and lifetimes are those of nl_record_decode. */
nl_status nl_record_unpack(nl_record *record, const char *data, size_t size);

#endif
