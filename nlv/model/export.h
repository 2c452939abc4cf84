/*
 * Writes selected records in any format that nlconv can write, with nlconv's code.
 *
 * A selection contains the places of records (batch.h), so it remains valid while logs grow. The module reads the
 * records from the logs when it writes them.
 */
#ifndef NLV_EXPORT_H
#define NLV_EXPORT_H

#include "model/model.h"

/*
 * Return the name of format number i, such as "ulm" or "json", and its description. After the last format,
 * export_format returns NULL.
 */
const char *export_format(size_t i);
const char *export_format_what(size_t i);

/*
 * Return the places (uint64_t) of the records of a time range, of an object, or of a request that belongs to no object
 * (request_lines.h), in order of time. The caller holds the model's lock, and frees the array with g_array_free.
 */
GArray *export_places_of_range(const model *m, int64_t from_ns, int64_t to_ns);
GArray *export_places_of_object(const model *m, size_t lifeline, uint32_t object);
GArray *export_places_of_span(const model *m, uint32_t record);

/*
 * Writes the records to a temporary file, and renames the file to `path` when it is complete. Call the function in a
 * separate thread without the model's lock; the function locks the model from time to time. Sets *written to the number
 * of records. Returns false and sets the error on failure.
 */
bool export_records(model *m, const GArray *places, const char *format, const char *path, uint64_t *written);

#endif
