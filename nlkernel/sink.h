/*
 * Where what is recorded goes.
 *
 * Into a file of the binary format each lane puts blocks of its own making, whole batches at a time; everywhere else
 * (text, a log of libnetlogger's) records go one by one. What the recorder says itself has a stream of its own. Any
 * thread. The first failure is kept: what comes after it is not written.
 */
#ifndef NLKERNEL_SINK_H
#define NLKERNEL_SINK_H

#include "base/error.h"
#include "record/block_write.h"
#include "transport/writer.h"
#include "synthesis/synthesis.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct sink {
    pthread_mutex_t mutex;
    char *name; /* of the destination, for messages */
    int fd;     /* of a file of blocks; -1 */
    nl_writer *writer;
    nl_log *log;
    int zstd_level;      /* of blocks */
    uint64_t bytes;      /* of blocks that were written */
    nl_synthesis *rules; /* what they make goes on instead of what is put; NULL */
    uint64_t refused;    /* records that the log had no room for */
    _Atomic bool failed;
    nl_error error;      /* the first */
    nl_block_writer own; /* what the recorder says itself, in blocks */
    nl_block_identity own_id;
} sink;

/*
 * A file, or "-". format NL_FORMAT_UNKNOWN: nlb when the name ends in .nlb, else ULM. False with the reason in
 * nl_error_message().
 */
bool sink_open_file(sink *s, const char *path, nl_format format, int zstd_level);

/* A log, as nl_open has it; url may be NULL. False with the reason. */
bool sink_open_log(sink *s, const char *url);

/* From here on only what rules make of records goes on, and what is said of losses. They are the sink's from now on. */
void sink_apply(sink *s, nl_synthesis *rules);

/* Whether lanes make blocks. */
static inline bool sink_takes_blocks(const sink *s)
{
    return s->fd >= 0 && s->rules == NULL;
}

/* Blocks, whole. */
void sink_put_blocks(sink *s, const char *data, size_t size);

/* A record, where blocks are not taken. It has its host and program. */
void sink_put_record(sink *s, const nl_record *record);

/* What the recorder says itself. */
void sink_say(sink *s, const nl_record *record);

/* Hands on what waits. */
void sink_flush(sink *s);

/* False with the reason when anything could not be written. */
bool sink_close(sink *s);

#endif
