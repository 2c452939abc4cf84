/* Sizes as people write them. */
#ifndef NETLOGGER_BASE_SIZE_H
#define NETLOGGER_BASE_SIZE_H

#include <netlogger.h>

/*
 * Reads a size such as "65536", "64k", "256M" or "1G" (1k is 1024 bytes; case does not matter) from a NUL-terminated
 * text. True and *size set when all of text is one and it fits.
 */
bool nl_size_parse(const char *text, size_t *size);

#endif
