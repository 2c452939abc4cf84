/*
 * From the kernel's record of an event to ours.
 *
 * The values of a block's record are put straight from the ring buffer's page, by the event's table of fields and
 * without anything in between; or a record is made, for a filter or for text. Any thread.
 */
#ifndef NLKERNEL_CONVERT_H
#define NLKERNEL_CONVERT_H

#include "events.h"

/* Room that convert_values takes at most, for a record of the kernel's of size bytes. */
size_t convert_most(const kernel_event *event, size_t size);

/*
 * Puts the values of the event's fields, from data[0..size), which is fixed_size at least, at at, which is among the
 * block's records; before is what the latest record of the shape holds of them (nl_block_before). Returns what follows.
 */
char *convert_values(char *at, const char *records, uint64_t *before, const kernel_event *event, const char *data,
                     size_t size);

/* Adds the event's fields to a record. Texts are views of data. */
void convert_fields(nl_record *record, const kernel_event *event, const char *data, size_t size);

#endif
