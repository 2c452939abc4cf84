/*
 * Keeps the latest records until they have been matched with all subscriptions. Adding a record costs one copy,
 * regardless of the subscribers' expressions.
 *
 * Records are numbered from 0 in the order of arrival. The backlog contains at most BACKLOG_RECORDS records and about
 * BACKLOG_BYTES bytes; subscription.c drops the oldest records while it is full. Only the server's thread may call this
 * module.
 */
#ifndef NETLOGD_BACKLOG_H
#define NETLOGD_BACKLOG_H

#include <netlogger.h>

enum { BACKLOG_RECORDS = 1 << 13, BACKLOG_BYTES = 16 << 20 };

/* Frees all records. */
void backlog_free(void);

/* backlog_first returns the number of the oldest record in the backlog. backlog_end returns the number of the next
 * record to be added. */
uint64_t backlog_first(void);
uint64_t backlog_end(void);

/* Returns whether a record must be dropped before another record can be added. */
bool backlog_is_full(void);

/* Appends a copy of a record. The backlog must not be full. */
void backlog_put(const nl_record *record);

/* Drops the records before a number, which must be at most backlog_end. */
void backlog_drop(uint64_t before);

/*
 * backlog_record returns a record in the backlog. backlog_line returns the record's line in a text format, as outputs
 * write it. Both results are valid until the record is dropped.
 */
const nl_record *backlog_record(uint64_t number);
nl_string backlog_line(uint64_t number, nl_format format);

#endif
