/*
 * Stores the ranges of sequence numbers that a spool dropped, as blocks without records (doc/binary-format.md). The
 * blocks inform a collector that these records will not arrive.
 */
#ifndef NETLOGGER_TRANSPORT_SPOOL_LOSSES_H
#define NETLOGGER_TRANSPORT_SPOOL_LOSSES_H

#include <netlogger.h>

/*
 * Adds the numbers of the blocks in data[0..size) to losses, an array of nl_block_identity, and joins consecutive
 * ranges. Ignores text and blocks without a stream. Returns false if memory runs out.
 */
bool nl_spool_losses_add(nl_buffer *losses, const char *data, size_t size);

/* Appends a block for each element of losses to `out`. Returns false if memory runs out. */
bool nl_spool_losses_encode(const nl_buffer *losses, nl_buffer *out);

#endif
