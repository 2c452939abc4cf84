/*
 * The records that came last, until all subscriptions were matched with them: taking a record costs a copy, whatever
 * the expressions of subscribers.
 *
 * Records are numbered as they come, from 0. The backlog holds at most BACKLOG_RECORDS of them and about BACKLOG_BYTES;
 * its user drops the oldest while it is full. The server's thread alone.
 */
#ifndef NETLOGD_BACKLOG_H
#define NETLOGD_BACKLOG_H

#include <netlogger.h>

typedef struct backlog backlog;

enum { BACKLOG_RECORDS = 1 << 13, BACKLOG_BYTES = 16 << 20 };

/* Lack of memory ends the program. */
backlog *backlog_new(void);
void backlog_free(backlog *b);

/* The number of the oldest record that is held, and of the next that comes. */
uint64_t backlog_first(const backlog *b);
uint64_t backlog_end(const backlog *b);

/* Whether a record must be dropped before another is put. */
bool backlog_is_full(const backlog *b);

/* Copies a record to the end. Not when it is full. */
void backlog_put(backlog *b, const nl_record *record);

/* Drops the records before that number, which is at most backlog_end. */
void backlog_drop(backlog *b, uint64_t before);

/* A record that is held, and its line in ULM or BP, as the output has it; until it is dropped. */
const nl_record *backlog_record(const backlog *b, uint64_t number);
nl_string backlog_line(backlog *b, uint64_t number, nl_format format);

#endif
