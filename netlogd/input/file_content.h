/*
 * The content of a log file, which may be compressed (gzip, zstd), and places in it. A place contains hashes of the
 * first bytes of the content and of the last bytes before the place. These hashes identify the content under another
 * name, in a copy, and after compression.
 *
 * file_inputs.c calls this module. Only the server's thread may call it.
 */
#ifndef NETLOGD_INPUT_FILE_CONTENT_H
#define NETLOGD_INPUT_FILE_CONTENT_H

#include <netlogger.h>

#include <sys/types.h>

enum { FILE_MARK_SIZE = 256 }; /* maximum number of bytes in each hash */

typedef struct file_place {
    uint64_t offset; /* in the decompressed content */
    uint64_t head;   /* hash of the first bytes, at most up to the offset */
    uint64_t tail;   /* hash of the last bytes before the offset */
} file_place;

/* Returns the number of bytes in each hash of a place. */
static inline size_t file_mark_size(uint64_t offset)
{
    return offset < FILE_MARK_SIZE ? (size_t)offset : FILE_MARK_SIZE;
}

uint64_t file_mark_hash(const char *data, size_t size);

typedef struct file_content file_content;

/* Opens a regular file. On failure, sets the error and returns NULL. */
file_content *file_content_open(const char *path);
void file_content_close(file_content *c); /* accepts NULL */

int file_content_descriptor(const file_content *c);

/* Returns whether the content is compressed; false while the file has fewer bytes than a magic number. */
bool file_content_is_packed(file_content *c);

/*
 * Reads up to size bytes at an offset of the decompressed content. Returns their number, which is smaller than `size`
 * only at the end. On failure, for example if compressed content is incomplete, sets the error and returns -1.
 *
 * If compressed content is read at a smaller offset than before, the module decompresses the content from its start.
 * The exception is a read of bytes that are all among the first FILE_MARK_SIZE bytes.
 */
ssize_t file_content_read(file_content *c, uint64_t offset, char *data, size_t size);

/* Returns whether the content has the bytes that the place describes. */
bool file_content_has(file_content *c, const file_place *place);

#endif
