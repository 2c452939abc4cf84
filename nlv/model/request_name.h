/* Returns the name of a request, which consists of the values of the request's ID fields (request_reader.h). This
 * module has no state. */
#ifndef NLV_REQUEST_NAME_H
#define NLV_REQUEST_NAME_H

#include "model/model.h"

/*
 * Returns the name of the request to which the record at a place (batch.h) belongs, without control characters. The
 * caller frees it with g_free.
 */
char *request_name_at(const model *m, const drawing_lifeline *definition, uint64_t place);

#endif
