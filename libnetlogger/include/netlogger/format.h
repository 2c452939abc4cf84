/*
 * Formats, and records as lines of text.
 *
 * ULM (draft-abela-ulm-05, and NetLogger's use of it), BP ("Best Practices", NetLogger 4) and logfmt are one record a
 * line. Writing is strict: standard fields first and in order, whatever needs quotes is quoted, any bytes survive.
 * Reading is liberal: it takes what real logs hold (fields missing or in any order, values with spaces but no quotes, a
 * prefix) and says NL_MALFORMED only when no time can be found, or when the record is cut short by the next one in the
 * same line.
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

/*
 * Appends record to out as one line of text with its newline. The result is the same for equal records, whatever text
 * they came from. format is one of the text formats; the binary format's blocks hold many records and are written by
 * a log and read by a reader. NL_FAILED, and nothing is appended, when there is no memory.
 * Thread-safe for different buffers.
 */
NL_API nl_status nl_record_encode(const nl_record *record, nl_format format, nl_buffer *out);

/*
 * Reads one line (without its newline) into record, which is the caller's own. Its strings view line or the record's
 * own memory, so line must outlive them. NL_OK, or NL_MALFORMED with the reason in nl_error_message() and record empty.
 */
NL_API nl_status nl_record_decode(nl_record *record, nl_format format, nl_fraction fraction, const char *line,
                                  size_t size);

NL_END_DECLS
#endif
