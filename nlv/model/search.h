/*
 * A search: the records of a model that an expression matches, found by a thread of its own that reads the logs again.
 * What comes into a log after it was begun is not searched.
 */
#ifndef NLV_SEARCH_H
#define NLV_SEARCH_H

#include "model/model.h"

typedef struct search search;

/* NULL when the expression is none: nl_error_message() says why. The model must outlive it. */
search *search_new(model *m, const char *expression);
void search_free(search *s);

/* Whether all was looked at, or more than 16 million records match; how much of it, 0 to 1; how many were found so far.
 */
bool search_is_done(const search *s);
double search_progress(const search *s);
size_t search_count(search *s);

/*
 * The match that is next to a time, after or before it; false when there is none so far. *number counts from 1. The
 * record is that of the model now, STORE_NONE when it has it no more; the model is locked.
 */
bool search_next(search *s, int64_t time_ns, bool backwards, int64_t *found_ns, uint32_t *record, size_t *number);

#endif
