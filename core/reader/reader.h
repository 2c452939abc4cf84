/*
 * The reader (netlogger/reader.h), with what only our own programs ask of it. One thread at a time.
 */
#ifndef NETLOGGER_READER_READER_H
#define NETLOGGER_READER_READER_H

#include "reader/decoder.h"
#include "transport/source.h"

/*
 * Opens url as nl_reader_open does, with a decoder that has these options (NULL: all defaults); its source is url when
 * NULL. NULL with the reason in nl_error_message().
 */
nl_reader *nl_reader_open_decoding(const char *url, const nl_decoder_options *options, bool follow, bool nonblocking);

/* As nl_reader_open_decoding, of a source that is open; the reader closes it, also when it fails. */
nl_reader *nl_reader_open_source(nl_source *source, const nl_decoder_options *options, bool nonblocking);

/* As nl_reader_seek; and where there is an index, what holds nothing before to_ns is passed over, too. */
nl_status nl_reader_seek_range(nl_reader *reader, int64_t from_ns, int64_t to_ns);

/* The format found, NL_FORMAT_UNKNOWN before the first record. */
nl_format nl_reader_format(const nl_reader *reader);

/* The source's size in bytes when it is a plain file that says, 0 otherwise, and how many of them were read: for
 * progress. */
uint64_t nl_reader_size(const nl_reader *reader);
uint64_t nl_reader_position(const nl_reader *reader);

#endif
