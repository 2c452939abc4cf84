/*
 * Reads files with records. A file is either a log, which consists of text or blocks, or a spill. A spill is a
 * temporary file with the bytes of a source that cannot be read twice (a pipe, a collector or a compressed file).
 *
 * The position of a record identifies it in the file. In text, the position is the offset of the record's line. In
 * blocks, the position is the record's number, counted over all blocks of the file, and a table maps numbers to blocks.
 *
 * Only the loader's thread changes a log_file. Other threads use it while they hold the model's lock.
 */
#ifndef NLV_LOG_FILE_H
#define NLV_LOG_FILE_H

#include "program/program.h"

#include <glib.h>
#include <netlogger.h>

#include "reader/decoder.h"

#include <string.h>
#include <sys/types.h>

/* A block of the binary format, or a part of text between blocks. */
typedef struct log_block {
    uint64_t offset; /* offset in the file */
    uint64_t first;  /* position of the first record after the skipped records */
    uint32_t size;   /* bytes */
    uint32_t skip;   /* number of records to skip at the block's start, because another block contains them */
    uint32_t count;  /* number of the remaining records */
} log_block;

typedef struct log_file {
    int fd;
    nl_format format; /* a text format; NLB: blocks, possibly with text between them; UNKNOWN: too few bytes so far */
    nl_fraction fraction;
    unsigned number; /* file number in the places of records (batch.h) */
    bool is_numbered;
    const char *log; /* name of the log, different for each log; the source owns it; NULL until the file is numbered */
    bool is_spill;
    uint64_t size;      /* size of a spill in bytes */
    uint64_t forgotten; /* number of freed bytes at the start of a spill */
    uint64_t scanned;   /* number of bytes at the start of the file whose records are in the store */
    GArray *blocks;     /* log_block, in order of offset */
    guint first_block;  /* index of the first block that log_file_forget has not dropped */
    struct log_file_open_block *open_blocks;
    uint64_t uses; /* number of uses of open blocks so far */
} log_file;

/* Opens a log. Returns NULL if the log cannot be opened, is not a regular file, must be decompressed or converted, or
 * is too short to detect its format. */
log_file *log_file_open(const char *path, const program_reading *reading);

/* Creates a spill of unknown format. Returns NULL and sets the error on failure. */
log_file *log_file_spill(nl_fraction fraction);

/* Frees a log_file and closes it. `f` may be NULL. */
void log_file_free(log_file *f);

/* Reads up to `size` bytes at an offset into `to`. Returns the number of bytes, which is smaller at the end of the
 * file or on failure. */
ssize_t log_file_read_at(int fd, char *to, size_t size, uint64_t offset);

/* Appends bytes to a spill, and detects its format as soon as possible. Returns false and sets errno on failure. */
bool log_file_append(log_file *f, const char *data, size_t size);

/* Ends a spill, and detects its format if the format is still unknown. */
void log_file_complete(log_file *f);

/* Frees the disk space that a spill uses for the records before a position. */
void log_file_forget(log_file *f, uint64_t position);

/* Returns the current size in bytes, or 0 if the size is unknown. */
uint64_t log_file_size(const log_file *f);

/* Appends copies of blocks to the table. */
void log_file_add_blocks(log_file *f, const GArray *blocks);

/* Returns the index of the first block that ends after an offset, or the number of blocks if there is no such block. */
guint log_file_find_block(const log_file *f, uint64_t offset);

/* Returns the number of records in the file's blocks. */
uint64_t log_file_record_count(const log_file *f);

typedef void log_file_take(void *user, const nl_record *record);

typedef void log_block_take(void *user, const nl_record *record, uint64_t position);

/* Decodes a block from its bytes, and calls `take` for the records after the skipped records. *decoder must be NULL in
 * the first call; the caller keeps it for further blocks, and then frees it. Returns false if the block is damaged. */
bool log_block_decode(const log_block *b, const log_file *f, nl_decoder **decoder, const char *bytes,
                      log_block_take *take, void *user);

/* Returns true for the bytes of a block, and false for text. */
static inline bool log_block_is_binary(const char *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "NLB1", 4) == 0;
}

/* Calls `take` with the record at a position. Returns false if the record is no longer available. */
bool log_file_record(log_file *f, uint64_t position, log_file_take *take, void *user);

/*
 * Calls `take` for all scanned records in the order of the file, until `go_on` returns false. Calls `go_on` from time
 * to time with the current offset in bytes.
 */
void log_file_each(const log_file *f, log_file_take *take, bool (*go_on)(void *user, uint64_t offset), void *user);

/* Calls `take` for the records in about `size` bytes of text after an offset. In a log of blocks, calls `take` for
 * about the number of records that this much text would contain. */
void log_file_sample(const log_file *f, uint64_t offset, size_t size, log_file_take *take, void *user);

#endif
