/*
 * The output of a conversion, which is standard output, or a file that replaces the old file when it is complete. A
 * function that fails reports the error on standard error. Only one thread may use an output.
 */
#ifndef NETLOGGER_CONVERT_OUTPUT_H
#define NETLOGGER_CONVERT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct output output;

/* Opens a file; NULL or "-" is standard output. Returns NULL on failure. */
output *output_open(const char *path);

bool output_write(output *o, const char *data, size_t size);

/* Closes the output. If keep is true, the file gets its final name. Otherwise, it is removed, and the old file
 * stays. */
bool output_close(output *o, bool keep);

#endif
