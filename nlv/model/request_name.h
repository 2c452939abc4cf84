/* The name of a request, as request_reader.h makes it: the values of its ID fields. This module has no state. */
#ifndef NLV_REQUEST_NAME_H
#define NLV_REQUEST_NAME_H

#include "model/model.h"

/*
 * Returns the name of the request to which the record at a place (batch.h) belongs, without control characters. The
 * caller frees it with g_free.
 */
char *request_name_at(const model *m, const drawing_lifeline *definition, uint64_t place);

#endif
