/* Returns the name of a request, which consists of the values of the request's ID fields (request_reader.h). This
 * module has no state. */
#ifndef NLV_REQUEST_NAME_H
#define NLV_REQUEST_NAME_H

#include "model/model.h"

/*
 * Returns the name of the request of a lifeline to which the record at a place (batch.h) belongs, without control
 * characters. If the lifeline has no ID fields, or is REQUEST_NO_LIFELINE, returns the values of the record's fields
 * that are neither numbers nor single characters. The caller frees the result with g_free.
 */
char *request_name_at(const model *m, size_t lifeline, uint64_t place);

#endif
