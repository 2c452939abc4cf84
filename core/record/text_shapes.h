/*
 * Remembers the shapes (text.h) of the records that an encoder writes, so that it encodes the common part of similar
 * records once. Logs have few kinds of records: one per host, program, event and list of field names.
 *
 * The module stores the shapes in a table. The hash of a record selects an entry of the table. An entry creates its
 * shape when two records with the same hash select the entry in succession. It drops the shape when MISSES_MAX records
 * have selected the entry by their hash, without matching the shape. A table therefore costs little if every record
 * differs. Only one thread at a time may use a table.
 */
#ifndef NETLOGGER_RECORD_TEXT_SHAPES_H
#define NETLOGGER_RECORD_TEXT_SHAPES_H

#include "record/text.h"

typedef struct nl_text_shapes nl_text_shapes;

/* Returns an empty table for records in a format, or NULL if memory runs out. The caller frees it. */
nl_text_shapes *nl_text_shapes_new(const nl_text_format *format);
void nl_text_shapes_free(nl_text_shapes *shapes); /* shapes may be NULL */

/*
 * Returns the shape of a record, or NULL if the table does not have it, which is not an error. The shape is valid until
 * the next call.
 */
const nl_text_shape *nl_text_shapes_find(nl_text_shapes *shapes, const nl_record *record);

#endif
