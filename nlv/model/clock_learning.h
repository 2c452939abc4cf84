/* Learns the offsets of the hosts' clocks from the logs of a model. Caller: the loader; no state. */
#ifndef NLV_CLOCK_LEARNING_H
#define NLV_CLOCK_LEARNING_H

#include "model/model_loading.h"

#include <stdatomic.h>

/* Finds the corrections from all records that the loader has read; the caller frees the result. *stopping ends it
 * early. */
correction *clock_learning_run(model *m, const atomic_bool *stopping);

/* Returns what was found, as a sentence, to be freed with g_free. */
char *clock_learning_describe(const correction *c);

#endif
