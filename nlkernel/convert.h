/*
 * Converts the kernel's records of events.
 *
 * For blocks, a loop over the event's fields copies the values from the page of the ring buffer into the block, without
 * an intermediate record. For filters and text, the module builds a record. Thread-safe.
 */
#ifndef NLKERNEL_CONVERT_H
#define NLKERNEL_CONVERT_H

#include "events.h"

/* Returns the maximum number of bytes that convert_values writes for a kernel record of size bytes. */
size_t convert_size_max(const kernel_event *event, size_t size);

/*
 * Writes the values of the event's fields to `at`, which is in the block's records. `size` is the number of bytes in
 * `data`, and is at least the event's fixed_size. `before` contains the values of the previous record with the same
 * shape in the block (nl_block_before). Returns the end of the written bytes.
 */
char *convert_values(char *at, const char *records, uint64_t *before, const kernel_event *event, const char *data,
                     size_t size);

/* Adds the event's fields to a record. Borrows texts from `data`. */
void convert_fields(nl_record *record, const kernel_event *event, const char *data, size_t size);

#endif
