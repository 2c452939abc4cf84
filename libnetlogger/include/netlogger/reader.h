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

/* One piece of input that could not be read. Everything in it lasts only during the call. */
typedef struct nl_malformed {
    const char *source; /* the name given to the decoder or reader */
    uint64_t line;      /* counted from 1; 0 when it is (part of) a block */
    uint64_t offset;    /* bytes from the start of the input to the first byte of text */
    const char *reason;
    nl_string text; /* of a line, a block, or what is none: the bytes, the first max_record_size of them */
} nl_malformed;

/* Sequence numbers from ... up to, without the latter. */
typedef struct nl_number_range {
    uint64_t from;
    uint64_t to;
} nl_number_range;

/* Records of one stream that are missing from an input. Everything in it lasts only during the call. */
typedef struct nl_lost {
    const char *source;       /* the name given to the decoder or reader */
    unsigned char stream[16]; /* all zero: of no stream */
    uint64_t count;           /* of records */
    uint64_t dropped;         /* of these, by the producer itself; the others went missing on the way */
    int64_t from_ns;          /* when: no record is missing before ... */
    int64_t to_ns;            /* ... and after */
    nl_number_range numbers;  /* of the count - dropped records; empty: they are not known */
} nl_lost;

typedef struct nl_reader_options {
    nl_format format;       /* NL_FORMAT_UNKNOWN: the content tells */
    nl_fraction fraction;   /* how short fractions of a second are read */
    size_t max_record_size; /* bytes of a line; 0: 1 MiB. A longer line is malformed */
    void (*on_malformed)(void *user, const nl_malformed *what); /* NULL: malformed input is only counted */
    void (*on_lost)(void *user, const nl_lost *what);           /* NULL: missing records are only counted */
    void *user;                                                 /* passed to the callbacks */
    bool follow;                                                /* at the end wait for more */
    bool nonblocking; /* with follow, or on a pipe or collector: nl_reader_next returns NL_AGAIN instead of waiting */
} nl_reader_options;

typedef struct nl_reader_stats {
    uint64_t records;      /* handed out */
    uint64_t malformed;    /* pieces that could not be read */
    uint64_t unterminated; /* records with NL_RECORD_UNTERMINATED */
    uint64_t bytes;        /* fed */
    uint64_t lost;         /* records that are missing from their streams */
    int64_t lost_from_ns;  /* the time in which they all were, 0 when there are none */
    int64_t lost_to_ns;
    uint64_t repeated; /* records that were met already, and passed over */
    uint64_t blocks;   /* of the binary format: handed out or passed over, whole */
} nl_reader_stats;

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

/* Counts so far; belongs to the reader. */
NL_API const nl_reader_stats *nl_reader_get_stats(const nl_reader *reader);

NL_END_DECLS
#endif
