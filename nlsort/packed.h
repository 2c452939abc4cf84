/*
 * The lines of a sort whose output is blocks. Such a line, called packed, holds a record and ends with a newline like a
 * line of text, so that the other files treat both alike. It is one of the following:
 * - a moved record (record/block_move.h), from a block
 * - a record that nl_record_pack has encoded, from any other input
 * - either of them with escaped newlines, if it is longer than NL_LINE_LONGEST
 *
 * load.c makes lines from blocks (packed_add_block), input.c makes lines from records (packed_append). packed_put
 * writes them to the output. Each thread may make lines while another thread writes them.
 */
#ifndef NLSORT_PACKED_H
#define NLSORT_PACKED_H

#include "table.h"
#include "record/block_move.h"
#include "transport/writer.h"

/* Appends a record as a packed line with its newline. Ends the program if the nlb format cannot hold the record. */
void packed_append(const nl_record *record, nl_buffer *line);

/*
 * Adds the records of an open block to a table. Returns false and adds nothing if the records must be decoded, because
 * their lines could be longer than NL_LINE_LONGEST or there are too many shapes.
 */
bool packed_add_block(nl_block_shapes *shapes, nl_block_reader *block, table *t);

/*
 * Writes the record of a packed line without its newline. time_ns is the record's time, which only moved records need.
 * The function overwrites `scratch`. Returns NL_OK or NL_FAILED.
 */
nl_status packed_put(nl_writer *writer, nl_block_shapes *shapes, nl_record *scratch, nl_string line, int64_t time_ns);

#endif
