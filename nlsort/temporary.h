/*
 * Unnamed temporary files, which the kernel deletes when the program ends. Errors end the program. Any thread may call
 * these functions.
 */
#ifndef NLSORT_TEMPORARY_H
#define NLSORT_TEMPORARY_H

#include <sys/types.h>

/* Creates a file in `directory` for reading and writing. Returns its descriptor. */
int temporary_open(const char *directory);

/* Appends data to the file. `directory` is for error messages. */
void temporary_write(int fd, const char *directory, const void *data, size_t size);

/* Reads `size` bytes at an offset. The file must contain these bytes. */
void temporary_read(int fd, const char *directory, void *data, size_t size, off_t at);

/* Advises the kernel that a range will be read soon. */
void temporary_expect(int fd, off_t at, off_t size);

/* Frees the disk space of a range that is no longer needed, if the file system supports this. */
void temporary_forget(int fd, off_t at, off_t size);

#endif
