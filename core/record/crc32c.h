/*
 * CRC-32C (Castagnoli): the checksum of iSCSI (RFC 3720, appendix B.4) and of the binary format's blocks.
 */
#ifndef NETLOGGER_FORMAT_CRC32C_H
#define NETLOGGER_FORMAT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * The checksum of what crc is the checksum of and of data[0..size) behind it; crc is 0 for a start. Uses the
 * instruction for it where the CPU has one. Any thread may call it.
 */
uint32_t nl_crc32c(uint32_t crc, const void *data, size_t size);

/* The same by tables, on any CPU; apart so that the test can compare. */
uint32_t nl_crc32c_by_table(uint32_t crc, const void *data, size_t size);

#endif
