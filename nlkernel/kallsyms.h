/* The kernel's functions by address, from /proc/kallsyms. A table never changes, so any thread may read the table. */
#ifndef NLKERNEL_KALLSYMS_H
#define NLKERNEL_KALLSYMS_H

#include <netlogger.h>

typedef struct kallsyms kallsyms;

/*
 * Parses text in the format of /proc/kallsyms, and returns the functions. Ignores lines of other forms, and symbols
 * whose type is not t, T, w or W. The caller frees the result.
 */
kallsyms *kallsyms_parse(const char *text, size_t size);

/* Reads the running kernel's functions. The caller frees the result. Returns NULL and sets the error on failure. If a
 * right is missing, the error explains how to get it. */
kallsyms *kallsyms_read(void);

void kallsyms_free(kallsyms *k);

/* Returns the name of the function at an address, borrowed from k. For an unknown address, data is NULL. */
nl_string kallsyms_find(const kallsyms *k, uint64_t address);

#endif
