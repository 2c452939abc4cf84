/*
 * The destination of a recording.
 *
 * To a binary file, each lane writes batches of its blocks. To text files and logs of libnetlogger, records are written
 * one by one. The recorder's own records are a separate stream. After the first failure, the sink writes nothing more.
 * Any thread, except for opening and closing.
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
    char *name; /* of the destination, for messages */
    int fd;     /* of a binary file, or -1 */
    nl_writer *writer;
    nl_log *log;
    int zstd_level;
    nl_synthesis *rules; /* the sink writes the records that they derive, instead of the records; or NULL */
    uint64_t refused;    /* records that did not fit into the log's buffer */
    _Atomic bool failed;
    nl_error error;      /* the first failure */
    nl_block_writer own; /* the stream of the recorder's own records, in a binary file */
    nl_block_identity own_id;
} sink;

/* Opens a file, or standard output for "-". NL_FORMAT_UNKNOWN selects nlb if the name ends in .nlb, otherwise ULM.
 * Returns false and sets the error on failure. */
bool sink_open_file(sink *s, const char *path, nl_format format, int zstd_level);

/* Opens a log as nl_open does; url may be NULL. Returns false and sets the error on failure. */
bool sink_open_log(sink *s, const char *url);

/*
 * Makes the sink write the records that the rules derive, and NetLogger.Lost records, instead of the recorded events.
 * Takes ownership of rules.
 */
void sink_apply(sink *s, nl_synthesis *rules);

/* Returns whether sink_put_blocks must be used instead of sink_put_record. */
static inline bool sink_takes_blocks(const sink *s)
{
    return s->fd >= 0 && s->rules == NULL;
}

/* Writes whole blocks. */
void sink_put_blocks(sink *s, const char *data, size_t size);

/* Writes a record, which has its host and program. */
void sink_put_record(sink *s, const nl_record *record);

/* Writes a record of the recorder itself. */
void sink_put_own(sink *s, const nl_record *record);

/* Writes the buffered records, and the records that the rules can derive by now. */
void sink_flush(sink *s);

/* Returns false and sets the error if any record was not written. */
bool sink_close(sink *s);

#endif
