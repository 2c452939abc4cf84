/*
 * A whole record as an event's payload (NL_SITE_RECORD): what nl_write and nl_write_record put into the ring. Like the
 * ring it is of this machine only: multi-byte values unaligned, in its own order.
 */
#ifndef NETLOGGER_LOG_PAYLOAD_H
#define NETLOGGER_LOG_PAYLOAD_H

#include <netlogger.h>

/* The bytes that record takes. Strings longer than NL_PAYLOAD_STRING_MAX are cut there. */
#define NL_PAYLOAD_STRING_MAX (128 * 1024)
size_t nl_payload_size(const nl_record *record);

/* The size of its longest field. */
size_t nl_payload_longest(const nl_record *record);

/* Writes it to at, where that many bytes are. */
void nl_payload_put(char *at, const nl_record *record);

/*
 * Reads it into record, which was cleared; its strings view the payload. An absent time is 0, an absent string has data
 * NULL. False when the bytes are no such payload.
 */
bool nl_payload_get(const char *at, size_t size, nl_record *record);

#endif
