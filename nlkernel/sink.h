/*
 * The destination of a recording.
 *
 * Each lane writes batches of its blocks to a binary file. Encoding text is too slow for a busy kernel. Therefore, if
 * the destination is a text file FILE, the lanes write FILE.partial.nlb, and sink_close converts this file to text. The
 * sink writes records one by one to a log of libnetlogger, and as text to standard output, devices and FIFOs. The
 * recorder's own records are a separate stream. After the first failure, the sink writes nothing more. Any thread may
 * use a sink, but only one thread may open and close the sink.
 */
#ifndef NLKERNEL_SINK_H
#define NLKERNEL_SINK_H

#include "base/error.h"
#include "record/block_write.h"
#include "synthesis/synthesis.h"
#include "transport/writer.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct sink {
    pthread_mutex_t mutex;
    char *name; /* name of the destination, for messages */
    int fd;     /* descriptor of a binary file, or -1 */
    nl_writer *writer;
    char *partial; /* name of the binary file that sink_close converts to text, or NULL */
    nl_log *log;
    int zstd_level;
    nl_synthesis *rules; /* if not NULL, the sink writes the records that these rules derive, not the events */
    uint64_t refused;    /* number of records that did not fit into the log's buffer */
    _Atomic bool failed;
    nl_error error;      /* the first failure */
    nl_block_writer own; /* in a binary file, the stream of the recorder's own records */
    nl_block_identity own_id;
} sink;

/* Opens a file, or standard output if `path` is "-". NL_FORMAT_UNKNOWN selects the format that the suffix of the name
 * implies, such as .nlb; without a known suffix, ULM. Returns false and sets the error on failure. */
bool sink_open_file(sink *s, const char *path, nl_format format, int zstd_level);

/*
 * Opens a log of libnetlogger, like nl_open. NULL selects $NETLOGGER_DEST. Returns false and sets the error on failure.
 */
bool sink_open_log(sink *s, const char *url);

/*
 * Makes the sink write the records that rules derive, and NetLogger.Lost records, instead of the recorded events. Takes
 * ownership of `rules`.
 */
void sink_apply(sink *s, nl_synthesis *rules);

/* Returns whether lanes must call sink_put_blocks instead of sink_put_record. */
static inline bool sink_takes_blocks(const sink *s)
{
    return s->fd >= 0 && s->rules == NULL;
}

/* Writes whole blocks. */
void sink_put_blocks(sink *s, const char *data, size_t size);

/* Writes a record, which must contain its host and program. */
void sink_put_record(sink *s, const nl_record *record);

/* Writes a record of the recorder itself. Does nothing if the sink applies rules. */
void sink_put_own(sink *s, const nl_record *record);

/* Writes the buffered records, and the records that the rules can already derive. */
void sink_flush(sink *s);

/*
 * Writes the records that the rules still hold, and closes the sink. If the destination is a text file, converts the
 * records to text. Returns false and sets the error if writing, converting or closing failed. Records that the log's
 * buffer refused (`refused`) are not failures. If the conversion fails, the binary file remains, and the error contains
 * its name.
 */
bool sink_close(sink *s);

#endif
