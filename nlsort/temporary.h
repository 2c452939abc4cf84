/* Files without a name: nothing is left behind, whatever ends the program. Every failure ends it with a message. */
#ifndef NLSORT_TEMPORARY_H
#define NLSORT_TEMPORARY_H

#include <sys/types.h>

/* A new one in that directory, open for reading and writing. */
int temporary_open(const char *directory);

/* Writes all of data at the end. */
void temporary_write(int fd, const char *directory, const void *data, size_t size);

/* Reads size bytes from at on, which must be there. */
void temporary_read(int fd, const char *directory, void *data, size_t size, off_t at);

/* Says that bytes will be read soon. */
void temporary_expect(int fd, off_t at, off_t size);

/* Bytes that were read are not wanted any more: where the file system can, it takes them back. */
void temporary_forget(int fd, off_t at, off_t size);

#endif
