/*
 * Additional reader functions (see netlogger/reader.h) for NetLogger's own programs. Only one thread at a time may use
 * a reader.
 */
#ifndef NETLOGGER_READER_READER_H
#define NETLOGGER_READER_READER_H

#include "reader/decoder.h"
#include "transport/source.h"

/*
 * Like nl_reader_open, for an open source and with the decoder's options. If options is NULL, the decoder uses the
 * defaults. Takes ownership of source, even on failure. Returns NULL if memory runs out.
 */
nl_reader *nl_reader_open_source(nl_source *source, const nl_decoder_options *options, bool nonblocking);

/*
 * Like nl_reader_seek. If there is an index of times, also skips pieces that have no record before to_ns. If there is a
 * value index (value_index.h), also skips pieces in which no record can match the filter. The filter may be NULL, and
 * must stay valid until a call returns a status other than NL_AGAIN. The reader returns every record of the other
 * pieces, even if the record does not match.
 */
nl_status nl_reader_seek_matches(nl_reader *reader, int64_t from_ns, int64_t to_ns, const nl_filter *filter);

/* Returns whether nl_reader_seek_matches skips pieces because of the filter. */
bool nl_reader_skips(const nl_reader *reader);

/*
 * Return the size of a regular file or memory (0 for other sources), and the position in the input, both in bytes.
 * Programs use them to show progress.
 */
uint64_t nl_reader_size(const nl_reader *reader);
uint64_t nl_reader_position(const nl_reader *reader);

#endif
