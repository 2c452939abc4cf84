/*
 * The inside of a pass: the chunks on their way (pipeline.c), and what fills them: streams that are cut (cut.c),
 * folders that are read at once (folder.c).
 */
#ifndef NLCONV_PIPELINE_INSIDE_H
#define NLCONV_PIPELINE_INSIDE_H

#include "pipeline/pipeline.h"

#include <pthread.h>

enum {
    PIPELINE_CHUNK_SIZE = 1 << 20,    /* bytes of input that a thread takes at once */
    PIPELINE_EXPANDED_MAX = 16 << 20, /* bytes that its blocks may expand to, beside the first of them */
    PIPELINE_MOST_THREADS = 16,
};

typedef enum chunk_state { CHUNK_FREE, CHUNK_READY, CHUNK_TAKEN, CHUNK_DONE } chunk_state;

typedef struct chunk {
    chunk_state state;
    nl_buffer in;
    uint64_t offset;   /* of its first byte, from the start of the input */
    uint64_t lines;    /* in it */
    bool blocks;       /* it has no lines */
    uint64_t expanded; /* upper bound of what its blocks expand to */
    bool in_place;     /* what is in its sink was made by the main thread */
    bool last;
    sink s;
} chunk;

typedef struct pipeline {
    pass *pass;
    const char *name; /* of what is read now */
    nl_source *source;
    void *import_shared;
    importer *in_order; /* of the main thread; NULL when chunks go to the workers */
    exporter *own;      /* the main thread's */
    pthread_t threads[PIPELINE_MOST_THREADS];
    unsigned thread_count;
    pthread_mutex_t lock;
    pthread_cond_t ready, done;
    chunk *chunks; /* a ring; [committed, filled) are on their way, and the one at filled is being filled */
    size_t chunk_count, committed, filled, taken;
    bool closing;
    uint64_t lines;  /* in what was committed */
    uint64_t offset; /* of what comes next */
    bool failed;     /* writing did, or learning */
    bool stopped;    /* by strict */
    bool begun;      /* the format is known, and the output's head written */
    bool skipping;   /* the rest of a line that is too long */
    size_t wanted;   /* no record is looked for in fewer bytes */
} pipeline;

/* The chunk that is being filled. */
static inline chunk *pipeline_filling(pipeline *p)
{
    return &p->chunks[p->filled % p->chunk_count];
}

uint64_t pipeline_count_lines(const char *at, size_t size);

/* Sends the chunk that was filled on its way; then there is an empty one to fill. */
void pipeline_dispatch(pipeline *p);

/* The chunk that is being filled, for records that are put into its sink at once; then it is sent on its way by: */
chunk *pipeline_in_place(pipeline *p);
void pipeline_dispatch_in_place(pipeline *p);

/* Writes what was made of a chunk, counts, and empties it. */
void pipeline_commit(pipeline *p, chunk *c);

/* Writes the output's head or foot. */
void pipeline_write_edge(pipeline *p, void (*edge)(exporter *e, sink *s));

/* Reads the source to its end. NL_END when that was reached, NL_MALFORMED when the format is not told. */
nl_status pipeline_read_all(pipeline *p);

/* Reads a folder, all in this thread. False after having said why. */
bool pipeline_read_folder(pipeline *p, const char *path);

#endif
