/*
 * The chunks of a pass, a ring: those in [committed, filled) are on their way through the threads, and the chunk at
 * filled is being filled. pipeline.c owns the ring; input.c fills it. A chunk belongs to the main thread unless its
 * state is READY or TAKEN.
 */
#ifndef NLCONV_CHUNKS_H
#define NLCONV_CHUNKS_H

#include "convert/cutter.h"
#include "pipeline/pipeline.h"

#include <pthread.h>

enum {
    CHUNK_SIZE = 1 << 20,          /* bytes of input in a chunk */
    CHUNK_EXPANDED_MAX = 16 << 20, /* bytes that the blocks of a chunk may expand to, except a single block */
    THREADS_MAX = 16,
};

typedef enum chunk_state { CHUNK_FREE, CHUNK_READY, CHUNK_TAKEN, CHUNK_DONE } chunk_state;

typedef struct chunk {
    chunk_state state;
    nl_buffer in;
    uint64_t offset;   /* of its first byte in the input */
    uint64_t lines;    /* in the chunk */
    bool blocks;       /* blocks have no lines */
    uint64_t expanded; /* upper bound of the size of its blocks when they are expanded */
    bool is_converted; /* the main thread puts records into the sink itself */
    bool last;
    sink s;
} chunk;

typedef struct pipeline {
    pass *pass;
    const char *name; /* of the source that is read */
    nl_source *source;
    cutter cut;
    importer *in_order; /* of the main thread; NULL: the threads convert */
    exporter *own;      /* of the main thread */
    pthread_t threads[THREADS_MAX];
    unsigned thread_count;
    pthread_mutex_t lock;
    pthread_cond_t ready, done;
    chunk *chunks;
    size_t chunk_count, committed, filled, taken;
    bool closing;
    uint64_t lines;  /* in the committed chunks */
    uint64_t offset; /* of the bytes that follow */
    bool failed;     /* to write, or to learn */
    bool stopped;    /* by malformed input */
    bool begun;      /* the format is known, and the head of the output is written */
} pipeline;

/* The chunk that is being filled. */
static inline chunk *chunk_filling(pipeline *p)
{
    return &p->chunks[p->filled % p->chunk_count];
}

/* Hands the filled chunk to the threads; afterwards an empty chunk is being filled. */
void chunk_dispatch(pipeline *p);

/* Returns a chunk whose sink takes records from the main thread, until chunk_dispatch_converted. */
chunk *chunk_convert_here(pipeline *p);
void chunk_dispatch_converted(pipeline *p);

/* Writes the output of a chunk, adds its counts, and empties the chunk. */
void chunk_commit(pipeline *p, chunk *c);

/* Writes the head of the output, if it is not written yet. */
void pipeline_begin_output(pipeline *p);

/* Reads the source, or the directory, to its end. Returns false after reporting an error. */
bool input_read(pipeline *p);
bool input_read_directory(pipeline *p);

#endif
