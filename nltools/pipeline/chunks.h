/*
 * The ring of chunks of a pass. The threads convert the chunks with numbers in [committed, filled), and input.c fills
 * the chunk with the number `filled`. pipeline.c owns the ring. While the state of a chunk is READY or TAKEN, only the
 * converting threads may use the chunk; otherwise, only the main thread.
 */
#ifndef NLCONV_CHUNKS_H
#define NLCONV_CHUNKS_H

#include "convert/cutter.h"
#include "pipeline/pipeline.h"
#include "reader/pieces.h"

#include <pthread.h>

enum {
    /* with this size, a chunk's input and output fit into a processor's cache; larger chunks are up to 1.4 times
     * slower */
    CHUNK_SIZE = 256 << 10,       /* bytes of input in a chunk */
    CHUNK_EXPANDED_MAX = 1 << 20, /* maximum expanded size of a chunk's blocks; a single block may be larger */
    THREADS_MAX = 16,
};

typedef enum chunk_state { CHUNK_FREE, CHUNK_READY, CHUNK_TAKEN, CHUNK_DONE } chunk_state;

typedef struct chunk {
    chunk_state state;
    nl_buffer in;
    uint64_t offset;   /* offset of the chunk's first byte in the input */
    uint64_t lines;    /* number of lines in the chunk */
    bool blocks;       /* the chunk contains blocks, which have no lines */
    uint64_t expanded; /* upper bound of the expanded size of the chunk's blocks in bytes */
    bool is_converted; /* the main thread has converted the chunk, and has written its records to the sink */
    bool last;
    sink s;
} chunk;

typedef struct pipeline {
    pass *pass;
    const char *name; /* name of the current source */
    nl_source *source;
    nl_pieces pieces; /* the parts of the source to read */
    cutter cut;
    importer *in_order; /* the main thread's importer; if NULL, the other threads convert */
    exporter *own;      /* the main thread's exporter */
    pthread_t threads[THREADS_MAX];
    unsigned thread_count;
    pthread_mutex_t lock;
    pthread_cond_t ready, done;
    chunk *chunks;
    size_t chunk_count, committed, filled, taken;
    bool closing;
    uint64_t lines;  /* number of lines in the committed chunks */
    uint64_t offset; /* input offset after the committed chunks */
    bool failed;     /* the exporter has failed to learn or write */
    bool stopped;    /* the pass has stopped at malformed input */
    bool begun;      /* the format is known, and the output header has been written */
} pipeline;

/* Returns the chunk that the reader currently fills. */
static inline chunk *chunk_filling(pipeline *p)
{
    return &p->chunks[p->filled % p->chunk_count];
}

/* Passes the filled chunk to the threads, and begins an empty chunk. */
void chunk_dispatch(pipeline *p);

/* chunk_convert_here returns a chunk whose sink accepts records from the main thread. chunk_dispatch_converted ends the
 * chunk. */
chunk *chunk_convert_here(pipeline *p);
void chunk_dispatch_converted(pipeline *p);

/* Writes the output of a chunk, adds its counts, and empties the chunk. */
void chunk_commit(pipeline *p, chunk *c);

/* If this is the last pass, reports the current thread's error, which concerns the input. Returns false. */
bool pipeline_report_input(const pipeline *p);

/* Reads the current source or directory to its end. On failure, reports the error and returns false. */
bool input_read(pipeline *p);
bool input_read_directory(pipeline *p);

#endif
