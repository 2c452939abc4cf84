/* Computes the offsets of the hosts' clocks from the logs of a model. The module has no state. The loader calls this
 * module. */
#ifndef NLV_CLOCK_LEARNING_H
#define NLV_CLOCK_LEARNING_H

#include "model/model_loading.h"

#include <stdatomic.h>

/*
 * Returns corrections of the hosts' clocks, computed from all records that the loader has read. Ends early if *stopping
 * becomes true. The caller frees the result.
 */
correction *clock_learning_run(model *m, const atomic_bool *stopping);

/* Returns a sentence that describes the corrections. The caller frees it with g_free. */
char *clock_learning_describe(const correction *c);

#endif
