/*
 * CRC-32C (Castagnoli), the checksum of iSCSI (RFC 3720, appendix B.4) and of blocks. Any thread may call these
 * functions.
 */
#ifndef NETLOGGER_RECORD_CRC32C_H
#define NETLOGGER_RECORD_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the checksum after data[0..size). `crc` is the checksum of the data before it, or 0 at the start. Uses the
 * processor's CRC instruction if it has one.
 */
uint32_t nl_crc32c(uint32_t crc, const void *data, size_t size);

/* Like nl_crc32c, but uses tables on any processor. Only the test calls this function. */
uint32_t nl_crc32c_by_table(uint32_t crc, const void *data, size_t size);

#endif
