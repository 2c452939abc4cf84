/*
 * Records of a selection, written in any format that nlconv writes, by the same code.
 *
 * What is selected is noted by the records' places, so that it stays the same however the logs grow or are read anew;
 * the records themselves are read while they are written.
 */
#ifndef NLV_EXPORT_H
#define NLV_EXPORT_H

#include "model/model.h"

/* The formats: name number i ("ulm", "json"), NULL at the end, and what it is in a few words. */
const char *export_format(size_t i);
const char *export_format_what(size_t i);

/* The places (uint64_t) of the records of a stretch of time, or of an object, by time; to be freed with g_array_free.
 * The model is locked. */
GArray *export_places_of_range(const model *m, int64_t from_ns, int64_t to_ns);
GArray *export_places_of_object(const model *m, size_t lifeline, uint32_t object);

/*
 * Writes them to path, which takes its name when it is whole. The model is not locked; it is now and then within, so
 * that others get on: call it from a thread of its own. *written is how many records were. Returns false on
 * failure.
 */
bool export_records(model *m, const GArray *places, const char *format, const char *path, uint64_t *written);

#endif
