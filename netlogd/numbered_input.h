/*
 * Puts the records of an input that netlogd itself reads (files, the journal) into the outputs, as numbered records of
 * one stream. After a kill, netlogd reads the input again, and the outputs skip the records that they have stored.
 *
 *   record -> exporter -> numbered block -> decoder -> records_put
 *
 * file_inputs.c and journal_input.c own one numbered_input each. Only the server's thread may call it.
 */
#ifndef NETLOGD_NUMBERED_INPUT_H
#define NETLOGD_NUMBERED_INPUT_H

#include "convert/convert.h"

typedef struct numbered_input numbered_input;

/* `name` is the name of the sender in reports, and must outlive the input. */
numbered_input *numbered_input_new(const char *name, const unsigned char stream[16]);
void numbered_input_free(numbered_input *in); /* accepts NULL */

/*
 * Returns the number of the first record that not all outputs have stored, or `otherwise` if the outputs do not know
 * the stream.
 */
uint64_t numbered_input_get_stored(const numbered_input *in, uint64_t otherwise);

/* Begins a block whose first record has this number. Returns the exporter that adds records to the block. */
exporter *numbered_input_begin(numbered_input *in, uint64_t first);

/* Ends the block. Returns the number of its records. */
uint64_t numbered_input_end(numbered_input *in);

/* Puts the records of the block into the outputs, requests a flush, and counts `bytes` bytes of input. */
void numbered_input_put(numbered_input *in, size_t bytes);

/* Marks the stream as in use, so that no output forgets it. */
void numbered_input_touch(const numbered_input *in);

#endif
