/*
 * Stores the first records of a log until the program has inferred the fields that identify requests. Its memory is
 * bounded. Only one thread at a time may use a sample. Initialize the structure with zeros.
 */
#ifndef NETLOGGER_REQUESTS_RECORD_SAMPLE_H
#define NETLOGGER_REQUESTS_RECORD_SAMPLE_H

#include "requests/drawing.h"

#include "base/buffer.h"

typedef struct record_sample {
    nl_buffer packed; /* for each record, its size in bytes (uint32_t), and the bytes of nl_record_pack */
    uint64_t record_count, field_count;
} record_sample;

/* Adds a record. Returns false, and adds nothing, if the record is too large for nl_record_pack. */
bool record_sample_add(record_sample *s, const nl_record *record);

/* Returns whether the sample should get no more records. */
bool record_sample_is_full(const record_sample *s);

/* Calls `take` for each record. */
void record_sample_walk(const record_sample *s, void (*take)(void *user, const nl_record *record), void *user);

/* Returns the drawing of the records (see infer_drawing_by). The caller frees it. */
drawing *record_sample_infer(const record_sample *s, const char *const *ids);

void record_sample_free(record_sample *s);

#endif
