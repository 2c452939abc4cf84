/*
 * The output of a conversion: standard output, or a file that replaces the old file when the new file is complete. The
 * functions print their errors. Only one thread at a time may use an output.
 */
#ifndef NETLOGGER_CONVERT_OUTPUT_H
#define NETLOGGER_CONVERT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct output output;

/* Opens a file, or standard output if path is NULL or "-". Returns NULL on failure. */
output *output_open(const char *path);

bool output_write(output *o, const char *data, size_t size);

/*
 * Closes the output. If `keep` is true, the new file replaces the old file. Otherwise, removes the new file, and keeps
 * the old file. Returns false on failure.
 */
bool output_close(output *o, bool keep);

#endif
