/*
 * Finds the blocks of a growing binary log, and the parts of text between the blocks. The module verifies checksums,
 * follows the streams' sequence numbers, and reports damage and loss. The threads of scan.h later decode the blocks.
 *
 * Only one thread may use a block_cutter.
 */
#ifndef NLV_BLOCK_CUTTER_H
#define NLV_BLOCK_CUTTER_H

#include "model/log_file.h"

#include "program/program.h"

typedef struct block_cutter block_cutter;

/*
 * Returns a block cutter that begins at an offset of a file. The offset must be the start of a block or record.
 * `reading` receives counts and reports; the reports name the log with `name`. `first` is the position of the next
 * record.
 */
block_cutter *block_cutter_new(program_reading *reading, const char *name, const log_file *file, uint64_t offset,
                               uint64_t first);
void block_cutter_free(block_cutter *c);

/* Returns the offset in bytes up to which the module has read the file. */
uint64_t block_cutter_offset(const block_cutter *c);

/* Reads up to `size` more bytes, and appends the complete blocks and parts of text (log_block) to `found`. */
void block_cutter_read(block_cutter *c, uint64_t size, GArray *found);

/* Ends the file: appends the last line, even if it does not end with a newline. */
void block_cutter_finish(block_cutter *c, GArray *found);
bool block_cutter_is_finished(const block_cutter *c);

/* Passes the records of a damaged block to `take`, and reports the damage. */
void block_cutter_decode_odd(const block_cutter *c, const log_block *b, const char *bytes, log_block_take *take,
                             void *user);

#endif
