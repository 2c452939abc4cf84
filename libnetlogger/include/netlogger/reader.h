/*
 * Reading records.
 *
 *   nl_reader *reader = nl_reader_open("a.log", NULL);
 *   const nl_record *record;
 *   while (nl_reader_next(reader, &record) == NL_OK)
 *       use(record);
 *   nl_reader_close(reader);
 *
 * A source is a file, a pipe, standard input or memory. The reader detects the format and zstd compression from the
 * content. A source can also be a collector (x-netlog://HOST[:PORT], x-netlogs://HOST[:PORT] or unix:PATH). The reader
 * then returns the records that the collector receives after the call, until the collector exits. Opening a collector
 * can take up to 20 s. Options of a collector's URL:
 *
 *   where=EXPRESSION      only records that match (filter.h)
 *   since=TIME            also earlier records that the collector received since TIME; -N means N seconds ago
 *   format=ulm|bp|nlb     the format of the connection (default nlb)
 *   ca= cert= key= name=  TLS (netlogger(7))
 *
 * To follow a file means to wait at its end for more records, as tail -F does. If the file is replaced or truncated,
 * the reader continues at the start of the new file. Two threads must not use one reader at the same time.
 */
#ifndef NETLOGGER_READER_H
#define NETLOGGER_READER_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

typedef struct nl_reader nl_reader;

/* A part of the input that is not a record. The strings are valid during the callback only. */
typedef struct nl_malformed {
    const char *source; /* the URL given to nl_reader_open */
    uint64_t line;      /* line number, from 1; 0 for blocks */
    uint64_t offset;    /* offset of the text, in bytes from the start of the input */
    const char *reason;
    nl_string text; /* the bytes, at most max_record_size */
} nl_malformed;

/* The sequence numbers n with from <= n < to. */
typedef struct nl_number_range {
    uint64_t from;
    uint64_t to;
} nl_number_range;

/* Records of one stream that the input lacks. The strings are valid during the callback only. */
typedef struct nl_lost {
    const char *source;       /* the URL given to nl_reader_open */
    unsigned char stream[16]; /* ID of the stream; all zeros if it is unknown */
    uint64_t count;           /* number of missing records */
    uint64_t dropped; /* number of these records that the producer dropped; the others were lost after the producer sent
                         them */
    int64_t from_ns;  /* no record before from_ns is missing */
    int64_t to_ns;    /* no record after to_ns is missing */
    nl_number_range
        numbers; /* sequence numbers of the records that were lost after the producer sent them. If the producer dropped
                    all missing records: sequence numbers of the dropped records. Empty if unknown */
} nl_lost;

typedef struct nl_reader_options {
    nl_format format;       /* NL_FORMAT_UNKNOWN means that the reader detects the format */
    nl_fraction fraction;   /* how to read fractional seconds of fewer than six digits */
    size_t max_record_size; /* maximum length of a line in bytes; 0 means 1 MiB. A longer line is malformed */
    void (*on_malformed)(void *user, const nl_malformed *what); /* if NULL, malformed input is only counted */
    void (*on_lost)(void *user, const nl_lost *what);           /* if NULL, missing records are only counted */
    void *user;                                                 /* argument of the callbacks */
    bool follow;                                                /* wait at the end for more records */
    bool nonblocking;                                           /* nl_reader_next returns NL_AGAIN instead of waiting */
} nl_reader_options;

typedef struct nl_reader_stats {
    uint64_t records;      /* number of records returned */
    uint64_t malformed;    /* number of parts of the input that are not records */
    uint64_t unterminated; /* number of records with the flag NL_RECORD_UNTERMINATED */
    uint64_t bytes;        /* number of bytes read */
    uint64_t lost;         /* number of missing records of all streams */
    int64_t lost_from_ns;  /* no record before this time is missing; 0 if lost is 0 */
    int64_t lost_to_ns;    /* no record after this time is missing; 0 if lost is 0 */
    uint64_t repeated;     /* number of repeated records, which were skipped */
    uint64_t blocks;       /* number of blocks of the binary format, including skipped blocks */
} nl_reader_stats;

/*
 * Opens a source. url is a file name, "-" or a URL (netlogger(7)). options may be NULL for the defaults. Returns a
 * reader, which the caller closes with nl_reader_close, or NULL with the reason in nl_error_message(). nl_reader_close
 * accepts NULL.
 */
NL_API nl_reader *nl_reader_open(const char *url, const nl_reader_options *options);
NL_API void nl_reader_close(nl_reader *reader);

/*
 * Reads the next record. Records that were returned before a failure are correct. Returns:
 *
 *   NL_OK      *record is the next record, which is valid until the next call on this reader
 *   NL_END     there are no more records
 *   NL_AGAIN   nonblocking is set, and no record is available now
 *   NL_FAILED  reading failed; nl_error_message() has the reason
 */
NL_API nl_status nl_reader_next(nl_reader *reader, const nl_record **record);

/*
 * Skips records before from_ns as far as the reader can skip them without reading them. Call this function before the
 * first nl_reader_next. If the file has a time index (FILE.index, which netlogd writes), the reader reads only the
 * parts that the index names. If there is no time index, the reader skips blocks at the start of a binary log,
 * according to their headers. Records before from_ns may still follow, because a log of several programs is only
 * roughly in order. The reader skips nothing in text without a time index, in pipes, and after a damaged block. The
 * reader does not report skipped records as missing. Returns NL_OK, or NL_FAILED with the reason in nl_error_message().
 * A nonblocking reader returns NL_AGAIN if it has more headers to examine; call the function again.
 */
NL_API nl_status nl_reader_seek(nl_reader *reader, int64_t from_ns);

/* Returns the counts so far. The reader owns the result. */
NL_API const nl_reader_stats *nl_reader_get_stats(const nl_reader *reader);

NL_END_DECLS
#endif
