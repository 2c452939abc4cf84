/*
 * The filters of a model, in two steps. The first step selects whole requests. The first step's expression is an
 * expression on requests (requests/request_filter.h), or an expression on records that at least one record of the
 * request must match. For a record that belongs to no request, request_filter_matches_single decides. The second step
 * hides the selected records that do not match another expression on records.
 *
 * A filters object is constant, and any thread may use it.
 */
#ifndef NLV_FILTERS_H
#define NLV_FILTERS_H

#include "filter/filter.h"
#include "requests/request_filter.h"

typedef struct filters {
    char *text;               /* both expressions, for the user */
    request_filter *requests; /* the first step; NULL: all requests */
    char *requests_text;      /* the first step as an expression on requests; NULL: all requests */
    nl_filter *shown;         /* the second step; NULL: all records */
    nl_filter *direct;        /* both steps, for logs without requests; NULL: the first step selects only requests */
} filters;

/*
 * Returns the filters for the two steps. At most one of the expressions may be NULL. Returns NULL and sets the error if
 * an expression is invalid. `shows` must be an expression on records.
 */
filters *filters_parse(const char *selects, const char *shows);
void filters_free(filters *f); /* NULL is allowed */

/* Returns whether an expression is valid for the first step. If not, sets the error. */
bool filters_accept(const char *selects);

#endif
