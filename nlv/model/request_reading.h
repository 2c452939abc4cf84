/*
 * Builds the list of requests (request_list.h) from the records that the loader has read, or selects, finds or compares
 * requests. The module reads these records again, because the store has only the values to draw. The loader calls this
 * module only when the loader has no other work, so that the first picture does not wait for the requests.
 *
 * The module merges the records of all sources by time. For each lifeline, an assembler (assembler.h) collects the
 * records into requests. At the end of a request, request_reading_take appends its summary to the list.
 *
 * At the end of the logs, the module treats the open requests as ended. When a small log grows later, the module reads
 * the log again from its start, for at most a tenth of the time. Readers keep the previous list until the new list is
 * complete. In a large log, the module reads only the new records. All functions run in the loader's thread.
 */
#ifndef NLV_REQUEST_READING_H
#define NLV_REQUEST_READING_H

#include "model/comparison.h"
#include "model/model_loading.h"
#include "model/source.h"
#include "model/threads.h"

typedef struct request_reading request_reading;

request_reading *request_reading_new(model *m, const program_reading *reading);

/*
 * For a reading that lists requests: sets the filter that the listed requests must match (NULL: all requests), and
 * starts to read the logs again. Readers keep the previous list until the new list is complete. The caller keeps the
 * filter.
 */
void request_reading_list(request_reading *r, const request_filter *requests);

/*
 * Makes the reading select the records of the requests that match a filter, and the matching records that belong to no
 * request, instead of listing the requests. Discards the previous results. The caller keeps the filter.
 */
void request_reading_select(request_reading *r, const request_filter *requests);

/* Makes the reading find the requests that match a filter, which the caller keeps. Discards the previous results. */
void request_reading_find(request_reading *r, const request_filter *requests);

/*
 * Makes the reading add the requests that match a filter (NULL: all) to a side of a comparison. Discards the
 * previous results. The caller keeps the filter and the comparison.
 */
void request_reading_compare(request_reading *r, const request_filter *requests, comparison *c, unsigned side);

/*
 * Makes the reading collect the spans and states of threads instead of requests. Discards the previous results. The
 * reading owns the collector.
 */
void request_reading_collect(request_reading *r);

/* Returns the threads of request_reading_collect so far, which the caller frees. Returns NULL before the first record.
 */
thread_list *request_reading_threads(const request_reading *r);

/* Returns the time in microseconds that the current reading has taken. */
int64_t request_reading_used_us(const request_reading *r);

/*
 * Returns the sorted places (uint64_t, batch.h) of the records that the reading has selected since the last call, and
 * forgets the places. Several calls may return the same place, because the module reads a small log again when it
 * grows. The caller frees the array with g_array_free.
 */
GArray *request_reading_take_selected(request_reading *r);

/* Returns whether the selected places use their maximum memory. If so, the reading pauses until the next call of
 * request_reading_take_selected. */
bool request_reading_is_full(const request_reading *r);

/*
 * Returns the requests (request_match) that the reading has found, by time, and forgets these requests. Sets *unlisted
 * to the number of requests that are not in the array because of the memory limit. The caller frees the array with
 * g_array_free.
 */
GArray *request_reading_take_matches(request_reading *r, uint64_t *unlisted);

/* Returns the number of bytes that the module has read since the latest start. */
uint64_t request_reading_bytes(const request_reading *r);
void request_reading_free(request_reading *r);

/* Sets the maximum memory for records. Open requests use at most 1/4 of this memory, the list at most 1/8, threads at
 * most 1/16, and selected places and found requests at most 1/32. Each of these parts is limited to 256 MiB. */
void request_reading_set_memory(request_reading *r, size_t memory_max);

/* Forgets all requests. Call the function when the lifelines of the drawing or the times of records have changed. */
void request_reading_restart(request_reading *r);

/* Reads records of the sources (source *) for some milliseconds. If `is_live` is true, does not treat the open requests
 * of a large log as ended at the end of the log. Returns whether more records are available now. */
bool request_reading_step(request_reading *r, const GPtrArray *sources, bool is_live);

/* Returns the records that are in another time zone according to the requests. Returns NULL unless a complete reading
 * has found records that model_zones does not correct. The caller owns the result, and must restart the reading. */
time_zones *request_reading_take_zones(request_reading *r);

#endif
