/*
 * Records as lines of text.
 *
 * ULM (draft-abela-ulm-05 with NetLogger's additions), BP ("Best Practices", NetLogger 4) and logfmt have one record
 * per line. The encoder is strict: it writes the standard fields first and in a fixed order, quotes all values that
 * need quotes, and preserves all bytes. The decoder is liberal: it accepts missing fields, fields in any order, values
 * with spaces but without quotes, and a prefix before the record. The decoder returns NL_MALFORMED only if it finds no
 * time, or if the next record begins within the same line.
 *
 * A field may have the name of a standard field of the output format (for example, the field "ts" of a ULM record that
 * is written as BP). The encoder puts "_." before the name of such a field, and the decoder removes "_.".
 */
#ifndef NETLOGGER_FORMAT_H
#define NETLOGGER_FORMAT_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

/*
 * Appends `record` to `out` as one line with a newline. Equal records result in equal lines, even if they were parsed
 * from different texts. format is a text format, not NL_FORMAT_NLB. Returns NL_OK. Returns NL_FAILED with the reason
 * and leaves `out` unchanged if format is not a text format, memory runs out, or the record has the flag
 * NL_RECORD_INCOMPLETE. Any number of threads may call the function with different buffers.
 */
NL_API nl_status nl_record_encode(const nl_record *record, nl_format format, nl_buffer *out);

/*
 * Parses one line (without newline) into record, which is from nl_record_new. The strings of the record may point into
 * line, so line must stay valid as long as the record is used. Returns NL_OK, or NL_MALFORMED with the reason in
 * nl_error_message(). After NL_MALFORMED, record is empty. Any number of threads may call the function with different
 * records.
 */
NL_API nl_status nl_record_decode(nl_record *record, nl_format format, nl_fraction fraction, const char *line,
                                  size_t size);

NL_END_DECLS
#endif
