/*
 * The loader reads logs into the model's store. It owns the sources, their drawing, their index, the memory limit and
 * the reading thread. The model calls the loader.
 */
#ifndef NLV_LOADER_H
#define NLV_LOADER_H

#include "model/model_loading.h"

typedef struct loader loader;

/* Returns a loader without sources. Copies `given`, the supplied drawing. If `given` is NULL, the loader infers the
 * drawing. */
loader *loader_new(model *m, const drawing *given, program_reading *reading);
void loader_free(loader *l);

void loader_set_options(loader *l, const model_options *options);

/* Adds a source, and takes ownership of it. Any thread may call this function. */
void loader_add_source(loader *l, source *s);

program_reading *loader_reading(const loader *l);

/* Reads all logs to their ends. */
void loader_load(loader *l);

/* Begins to read in a separate thread. */
void loader_start(loader *l);

/* Returns an empty store for a drawing. */
store *loader_new_store(const drawing *d, bool looks_out);

#endif
