/*
 * Searches for the records that match an expression, or for the first records of the requests that match an expression
 * on requests (requests/request_filter.h). A separate thread reads the logs again to find records, but ignores records
 * that arrive after the start of the search. The loader's thread finds requests (model_find_requests). Except
 * search_next, call all functions while the caller has not locked the model.
 */
#ifndef NLV_SEARCH_H
#define NLV_SEARCH_H

#include "model/model.h"

typedef struct search search;

/* Starts a search. At most one search for requests may exist for a model at a time. Returns NULL and sets the error if
 * the expression is invalid. The model must outlive the search. */
search *search_new(model *m, const char *expression);
void search_free(search *s);

/* Return whether the search has ended, the share of the logs that the search has read (0 to 1), and the number of
 * matches so far. A search also ends after 16 million matches. */
bool search_is_done(search *s);
double search_progress(search *s);
size_t search_count(search *s);

/*
 * Finds the nearest match after a time, or before the time if `backwards` is true. Sets *found_ns to the time of the
 * match and *number to its number, from 1. Sets *record to the record of the match, or to STORE_NONE if the model no
 * longer has the record. Returns false if the search has found no match in this direction so far. The caller holds the
 * model's lock.
 */
bool search_next(search *s, int64_t time_ns, bool backwards, int64_t *found_ns, uint32_t *record, size_t *number);

#endif
