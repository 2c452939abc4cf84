/*
 * Parses the two sides of a comparison, as the user writes them. A side is an expression on records or requests
 * (filters.h), or "log:NAME", the requests of a log. An empty side consists of the requests that are not on the other
 * side. If both sides are empty, the sides are the first two logs. This module has no state.
 */
#ifndef NLV_COMPARE_QUERY_H
#define NLV_COMPARE_QUERY_H

#include "model/comparison.h"
#include "model/filters.h"

typedef struct compare_query_side {
    char *name;            /* the side's name, as shown to the user */
    char *log;             /* NULL: all logs */
    bool excludes;         /* the side contains the requests of all logs except `log` */
    request_filter *where; /* NULL: all requests */
} compare_query_side;

typedef struct compare_query {
    compare_query_side sides[COMPARED_SIDES];
    bool is_by_position; /* the sides are the first and the second log */
    char *filter;        /* text of the filter that compare_query_narrow has applied, for messages; or NULL */
} compare_query;

/* Parses the sides. NULL and "" stand for an empty side. Returns NULL and sets the error if an expression is
 * invalid. */
compare_query *compare_query_parse(const char *first, const char *second);

/*
 * Excludes from both sides the requests that do not match the first step of a filter. `f` may be NULL. Returns false
 * and sets the error if the filter and an expression of the query together have too many terms.
 */
bool compare_query_narrow(compare_query *q, const filters *f);

void compare_query_free(compare_query *q); /* NULL is allowed */

#endif
