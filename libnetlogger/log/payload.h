/*
 * A whole record as the payload of an event (NL_SITE_RECORD). nl_write_record writes such events. nl_event_write and
 * the functions of spans also write such events, for kinds without a site (event_kind.h). Values are unaligned and in
 * this machine's byte order.
 */
#ifndef NETLOGGER_LOG_PAYLOAD_H
#define NETLOGGER_LOG_PAYLOAD_H

#include <netlogger.h>

/* Returns the size of the payload in bytes. Strings longer than NL_PAYLOAD_STRING_MAX are truncated. */
#define NL_PAYLOAD_STRING_MAX (128 * 1024)
size_t nl_payload_size(const nl_record *record);

/* Returns the size in bytes of the longest string value; 0 for a payload without string values. */
size_t nl_payload_longest(const nl_record *record);

/* Writes the payload to `at`, which must have space for nl_payload_size(record) bytes. */
void nl_payload_put(char *at, const nl_record *record);

/*
 * Reads a payload into an empty record, whose strings point into the payload. A missing time is 0; a missing string has
 * data NULL. Returns false if the payload is invalid.
 */
bool nl_payload_get(const char *at, size_t size, nl_record *record);

#endif
