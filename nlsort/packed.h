/*
 * The lines of a sort whose output is blocks. Each line (a packed line) contains a record and ends with a newline, so
 * that the other modules handle packed lines like lines of text. A packed line is one of the following:
 * - a moved record (record/block_move.h), from a block
 * - a record that nl_record_pack has encoded, from any other input
 * - such an encoded record with escaped newlines, if its size is NL_LINE_LONGEST or more
 *
 * load.c makes lines from blocks (packed_add_block), and input.c makes lines from records (packed_append). packed_put
 * writes the lines to the output. A thread may make lines while another thread writes lines.
 */
#ifndef NLSORT_PACKED_H
#define NLSORT_PACKED_H

#include "table.h"
#include "record/block_move.h"
#include "transport/writer.h"

/* Makes `line` a packed line with its newline. Ends the program if the nlb format cannot represent the record. */
void packed_append(const nl_record *record, nl_buffer *line);

/*
 * Adds the records of an open block to a table. Returns false and adds nothing if the records must be decoded, because
 * their lines could be longer than NL_LINE_LONGEST or there are too many shapes.
 */
bool packed_add_block(nl_block_shapes *shapes, nl_block_reader *block, table *t);

/*
 * Writes the record of a packed line. `line` does not include the newline. time_ns is the record's time, which only
 * moved records need. Overwrites `scratch`. Returns NL_OK or NL_FAILED.
 */
nl_status packed_put(nl_writer *writer, nl_block_shapes *shapes, nl_record *scratch, nl_string line, int64_t time_ns);

#endif
