/*
 * Where the converted bytes go: standard output, or a file that takes its name when all of it is there. Every function
 * that fails says why on standard error.
 */
#ifndef NETLOGGER_CONVERT_OUTPUT_H
#define NETLOGGER_CONVERT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct output output;

/* NULL or "-": standard output. NULL when it can't be opened. */
output *output_open(const char *path);

bool output_write(output *o, const char *data, size_t size);

/* Closes it; the file takes its name, or, when it is not to be kept, is removed, and what was there stays. */
bool output_close(output *o, bool keep);

#endif
