/*
 * The consuming half: records from a source.
 *
 *   nl_reader *reader = nl_reader_open("a.log", NULL);
 *   const nl_record *record;
 *   while (nl_reader_next(reader, &record) == NL_OK)
 *       use(record);
 *   nl_reader_close(reader);
 *
 * A source is a file, a pipe, standard input or memory, in any format, zstd-compressed or not; all of that is told by
 * the content. Or it is a collector, x-netlog://HOST[:PORT], x-netlogs://HOST[:PORT] or unix:PATH: then the records are
 * those that it takes from now on, as they come, until it ends. Options choose among them: where=EXPRESSION (filter.h),
 * since=TIME (also what it took from that time on, or from -SECONDS back), format=ulm|bp|nlb (of the stream; default
 * nlb); those of TLS are url.h's. Opening one may take 20 s. Following a file means waiting at its end for what will be
 * appended, as tail -F does: when the file is replaced or truncated the new one is read from its start. A reader is for
 * one thread at a time; any number of readers may exist.
 */
#ifndef NETLOGGER_READER_H
#define NETLOGGER_READER_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

typedef struct nl_reader nl_reader;

typedef struct nl_reader_options {
    nl_decoder_options decoder; /* its source is set by the reader when NULL */
    bool follow;                /* at the end wait for more */
    bool nonblocking; /* with follow, or on a pipe or collector: nl_reader_next returns NL_AGAIN instead of waiting */
} nl_reader_options;

/*
 * Opens url (see url.h: a file, "-", memory:NAME, a collector); options may be NULL for all defaults. NULL with the
 * reason in nl_error_message() when it can't be opened. Closed with nl_reader_close, to which NULL may be given.
 */
NL_API nl_reader *nl_reader_open(const char *url, const nl_reader_options *options);
NL_API void nl_reader_close(nl_reader *reader);

/*
 * The next record: NL_OK with *record valid until the next call on this reader; NL_END at the end; NL_AGAIN when
 * nonblocking and there is nothing now; NL_FAILED when reading failed (what came before it is still good).
 */
NL_API nl_status nl_reader_next(nl_reader *reader, const nl_record **record);

/*
 * Before the first nl_reader_next: passes over what holds nothing from from_ns on, as far as that is known without
 * reading it. Where an index by time lies beside the file (FILE.index, as netlogd writes it) the pieces are that it
 * tells of, wherever they are in the file; without one, the blocks at the start of a log in the binary format, by their
 * headers. A log that was gathered from several programs is only about in order, so that records from before may still
 * follow. All is read of what is no plain file, and, from a damaged block on, of what no index tells of. Records that
 * were passed over are not said to be missing; what shared streams knew is forgotten. NL_OK, or NL_FAILED with the
 * reason in nl_error_message(). A nonblocking reader looks at so many headers only that it does not take long;
 * NL_AGAIN: there are more, and it is to be called again.
 */
NL_API nl_status nl_reader_seek(nl_reader *reader, int64_t from_ns);

/* As nl_reader_seek; and where there is an index, what holds nothing before to_ns is passed over, too. */
NL_API nl_status nl_reader_seek_range(nl_reader *reader, int64_t from_ns, int64_t to_ns);

/* The format found, NL_FORMAT_UNKNOWN before the first record. */
NL_API nl_format nl_reader_format(const nl_reader *reader);

/* Counts so far; belongs to the reader. */
NL_API const nl_decoder_stats *nl_reader_get_stats(const nl_reader *reader);

/* The source's size in bytes when it is a plain file that says, 0 otherwise, and how many of them were read: for
 * progress. */
NL_API uint64_t nl_reader_size(const nl_reader *reader);
NL_API uint64_t nl_reader_position(const nl_reader *reader);

NL_END_DECLS
#endif
