/*
 * Moves records from blocks to other blocks in another order, without decoding them to nl_record. nlsort uses this
 * module.
 *
 * A moved record is independent of its block: it consists of the number of its shape as a varint, below
 * NL_MOVED_SHAPES_MAX, and its values. The caller stores the record's size and time. The shapes of all blocks are in a
 * table (nl_block_shapes), which gives equal shapes the same number. nl_block_next_moved reads a record from a block.
 * The caller keeps the record in memory or in a file. To write the record, nl_encoder_put_moved calls
 * nl_block_put_moved.
 *
 * The functions that read blocks use one part of the table, and the functions that write blocks use another part. One
 * thread may therefore read while another thread writes the moved records that it received from the first thread.
 */
#ifndef NETLOGGER_RECORD_BLOCK_MOVE_H
#define NETLOGGER_RECORD_BLOCK_MOVE_H

#include "record/block_read.h"
#include "record/block_write.h"

typedef struct nl_block_shapes nl_block_shapes;

enum { NL_MOVED_SHAPES_MAX = 1 << 14 };

/* Returns a new table of shapes, or NULL if memory runs out. The caller frees it; freeing NULL has no effect. */
nl_block_shapes *nl_block_shapes_new(void);
void nl_block_shapes_free(nl_block_shapes *shapes);

/*
 * Adds the shapes of a block that was just opened and that nl_block_check has accepted. Returns false if the table is
 * full or memory runs out. The caller then reads the block's records with nl_block_next.
 */
bool nl_block_shapes_add(nl_block_shapes *shapes, const nl_block_reader *reader);

/*
 * Writes the next record of a block to out[0..capacity), and sets *size to the record's size in bytes. The block must
 * be the latest block that was passed to nl_block_shapes_add. The time of the record is then reader->time_ns. Returns
 * NL_OK, NL_END after the last record, or NL_FAILED if the capacity is too small. After NL_FAILED, the caller must open
 * the block again.
 */
nl_status nl_block_next_moved(nl_block_reader *reader, const nl_block_shapes *shapes, char *out, size_t capacity,
                              size_t *size);

/*
 * Adds a moved record to a block. A table can be used with only one writer. Returns the same values as nl_block_put.
 */
bool nl_block_put_moved(nl_block_writer *w, nl_block_shapes *shapes, nl_string moved, int64_t time_ns);

#endif
