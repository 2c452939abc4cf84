/*
 * A file that records lie in: a log itself, in text or in blocks, or a spill, a temporary file without a name that
 * holds the bytes of what cannot be read twice (a pipe, a collector, a file compressed as a whole) exactly as they
 * came.
 *
 * A record is found again by its position. In text the position is the offset of its line. In blocks it is the number
 * of the record, counted over all blocks of the file; a table gives the block of a number.
 *
 * The loader's thread changes a file; other threads use it while the model is locked.
 */
#ifndef NLV_LOG_FILE_H
#define NLV_LOG_FILE_H

#include "program/program.h"

#include <glib.h>
#include <netlogger.h>

#include "reader/decoder.h"

#include <string.h>
#include <sys/types.h>

/* A block of the binary format, or a stretch of text between blocks. */
typedef struct log_block {
    uint64_t offset; /* in the file */
    uint64_t first;  /* position of the first record that counts */
    uint32_t size;   /* bytes */
    uint32_t skip;   /* records at its start that do not count, because they were read before */
    uint32_t count;  /* records that do */
} log_block;

typedef struct log_file {
    int fd;
    nl_format format; /* ULM, BP; NLB: blocks, with text between them if there is any; UNKNOWN: too few bytes so far */
    nl_fraction fraction;
    unsigned number; /* in the places of records (batch.h) */
    bool is_numbered;
    bool is_spill;
    uint64_t size;      /* of a spill, in bytes */
    uint64_t forgotten; /* bytes at the start of a spill that are no longer there */
    uint64_t scanned;   /* bytes from the start whose records were taken */
    GArray *blocks;     /* log_block, by offset */
    guint first_block;  /* those before are forgotten */
    struct log_file_open_block *open_blocks;
    uint64_t uses; /* of open blocks so far */
} log_file;

/* Opens the log at path. NULL when it is no plain file, is compressed as a whole, or has too few bytes to tell. */
log_file *log_file_open(const char *path, const program_reading *reading);

/* Makes a spill, whose format is unknown. NULL with the reason in errno. */
log_file *log_file_spill(nl_fraction fraction);

/* NULL is allowed. */
void log_file_free(log_file *f);

/* Reads up to size bytes of a descriptor at offset; fewer at its end, or where it cannot be read. */
ssize_t log_file_read_at(int fd, char *to, size_t size, uint64_t offset);

/* Appends bytes to a spill, whose format is found when there are enough of them. False with the reason in errno. */
bool log_file_append(log_file *f, const char *data, size_t size);

/* Says that a spill is complete: what is no text by now is read as blocks. */
void log_file_complete(log_file *f);

/* Frees the disk space of a spill before a position. */
void log_file_forget(log_file *f, uint64_t position);

/* Its size now in bytes; 0 when it cannot be told. */
uint64_t log_file_size(const log_file *f);

/* Adds blocks, the caller's, behind those that are known. */
void log_file_add_blocks(log_file *f, const GArray *blocks);

/* The first block that ends behind an offset; the number of blocks when there is none. */
guint log_file_find_block(const log_file *f, uint64_t offset);

/* How many records its blocks have. */
uint64_t log_file_record_count(const log_file *f);

typedef void log_file_take(void *user, const nl_record *record);

typedef void log_block_take(void *user, const nl_record *record, uint64_t position);

/*
 * Decodes a block, whose bytes these are, and calls take for those of its records that count. *decoder is kept from
 * block to block by the caller, NULL at first, and freed by it. Returns false when something cannot be read.
 */
bool log_block_decode(const log_block *b, const log_file *f, nl_decoder **decoder, const char *bytes,
                      log_block_take *take, void *user);

/* Whether these bytes are a block of the binary format, and not a stretch of text. */
static inline bool log_block_is_binary(const char *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "NLB1", 4) == 0;
}

/* Calls take with the record at a position, for the time of the call. False when it is no longer there. */
bool log_file_record(log_file *f, uint64_t position, log_file_take *take, void *user);

/*
 * Calls take for all records that were scanned, in their order, until go_on, which is called now and then with the
 * offset that was reached, returns false.
 */
void log_file_each(const log_file *f, log_file_take *take, bool (*go_on)(void *user, uint64_t offset), void *user);

/*
 * Calls take for the records of about size bytes of text, or as many records in blocks, from the first whole one behind
 * offset on.
 */
void log_file_sample(const log_file *f, uint64_t offset, size_t size, log_file_take *take, void *user);

#endif
