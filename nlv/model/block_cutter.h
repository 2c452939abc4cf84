/*
 * Finds the blocks of a log in the binary format while it grows, and stretches of text among them. It verifies
 * checksums, follows the streams' numbers and reports damage and loss, but it decodes no block: scan.h does that, in
 * several threads.
 *
 * One thread.
 */
#ifndef NLV_BLOCK_CUTTER_H
#define NLV_BLOCK_CUTTER_H

#include "model/log_file.h"

#include "program/program.h"

typedef struct block_cutter block_cutter;

/*
 * Begins at an offset of a file, at the start of a block or record. name is what reports call the log. reading gets the
 * reports and is told at the end what was counted. first is the position of the next record. Freed by
 * block_cutter_free.
 */
block_cutter *block_cutter_new(program_reading *reading, const char *name, const log_file *file, uint64_t offset,
                               uint64_t first);
void block_cutter_free(block_cutter *c);

/* The offset up to which it has read. */
uint64_t block_cutter_offset(const block_cutter *c);

/* Reads up to size bytes more and appends the blocks that are complete to found. */
void block_cutter_read(block_cutter *c, uint64_t size, GArray *found);

/* Says that the file is complete: appends the last line, if it has no newline. */
void block_cutter_finish(block_cutter *c, GArray *found);
bool block_cutter_is_finished(const block_cutter *c);

/* Calls take for the records of a block that could not be read without fault, and reports what is wrong with it. */
void block_cutter_decode_odd(const block_cutter *c, const log_block *b, const char *bytes, log_block_take *take,
                             void *user);

#endif
