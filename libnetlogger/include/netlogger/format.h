/*
 * Formats, and records as lines of text.
 *
 * ULM (draft-abela-ulm-05, and NetLogger's use of it) and BP ("Best Practices", NetLogger 4) are one record a line.
 * Writing is strict: standard fields first and in order, whatever needs quotes is quoted, any bytes survive. Reading is
 * liberal: it takes what real logs hold (fields missing or in any order, values with spaces but no quotes, a prefix)
 * and says NL_MALFORMED only when no time can be found, or when the record is cut short by the next one in the same
 * line.
 *
 * A plain field that is called as a standard one is in the format it is written in (a ULM field "ts" in BP) gets "_."
 * before its name; reading takes that away again.
 */
#ifndef NETLOGGER_FORMAT_H
#define NETLOGGER_FORMAT_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

/* "ulm", "bp", "nlb"; "unknown" for the rest. Static storage. */
NL_API const char *nl_format_name(nl_format format);

/* The format of that name, in any case; NL_FORMAT_UNKNOWN when there is none. */
NL_API nl_format nl_format_parse(const char *name);

/* The format that a file of that name is in when nothing else says: NL_FORMAT_NLB when it ends in ".nlb", else
 * NL_FORMAT_UNKNOWN. */
NL_API nl_format nl_format_of_name(const char *name);

/* The format that bytes from the start of a log or connection seem to be in; NL_FORMAT_UNKNOWN when they don't tell. */
NL_API nl_format nl_format_detect(const char *data, size_t size);

/*
 * Appends record to out as one line of text with its newline. The result is the same for equal records, whatever text
 * they came from. format is one of the text formats; the binary format's blocks hold many records and are written by a
 * writer (writer.h) and read by a decoder (decoder.h). NL_FAILED, and nothing is appended, when there is no memory.
 * Thread-safe for different buffers.
 */
NL_API nl_status nl_record_encode(const nl_record *record, nl_format format, nl_buffer *out);

/*
 * Reads one line (without its newline) into record, which is the caller's own. Its strings view line or the record's
 * own memory, so line must outlive them. NL_OK, or NL_MALFORMED with the reason in nl_error_message() and record empty.
 */
NL_API nl_status nl_record_decode(nl_record *record, nl_format format, nl_fraction fraction, const char *line,
                                  size_t size);

/*
 * Appends record to out as bytes of its own that keep its types and nanoseconds: for a program that lays records by.
 * False, with nothing appended, when it is larger than 16 MiB or has more than 1,048,576 fields. The result is the same
 * for records whose members, fields and types are the same.
 */
NL_API bool nl_record_pack(const nl_record *record, nl_buffer *out);

/* Reads what nl_record_pack made into record, which is the caller's own. Results and lifetimes as nl_record_decode. */
NL_API nl_status nl_record_unpack(nl_record *record, const char *data, size_t size);

NL_END_DECLS
#endif
