/*
 * Synthesis: events of one kind made from events of another.
 *
 * What the kernel tells is many small things: a thread was woken, another was switched out. What an application wants
 * to know is one thing: it waited three milliseconds for a processor. Rules in a small file say how the one becomes the
 * other: join two events into a span, sum by key, count by the second, make a histogram, keep account of the states
 * that a thread is in, follow a request from thread to thread (doc/synthesis.md). What comes out are ordinary records.
 *
 *   nl_synthesis *rules = nl_synthesis_read("waits.rules", NULL);
 *   while (nl_reader_next(reader, &record) == NL_OK)
 *       nl_synthesis_put(rules, record);
 *   nl_synthesis_finish(rules);
 *   while ((record = nl_synthesis_next(rules)) != NULL)
 *       use(record);
 *   nl_synthesis_free(rules);
 *
 * Records may come out of order: they wait for each other, for good until nl_synthesis_finish or
 * nl_synthesis_advance says up to when all are there. One synthesis is for one thread at a time.
 */
#ifndef NETLOGGER_SYNTHESIS_SYNTHESIS_H
#define NETLOGGER_SYNTHESIS_SYNTHESIS_H

#include <netlogger.h>

typedef struct nl_synthesis nl_synthesis;

/*
 * Reads rules, from a file or from text (name is what messages call it). parameters are "NAME=VALUE" for those of the
 * file, NULL at the end; NULL: none. NULL with the reason, FILE:LINE first, in nl_error_message().
 */
nl_synthesis *nl_synthesis_read(const char *path, const char *const *parameters);
nl_synthesis *nl_synthesis_parse(const char *text, const char *name, const char *const *parameters);

/* NULL is allowed. */
void nl_synthesis_free(nl_synthesis *synthesis);

/* Takes a record, of which what is wanted is copied. True when any rule wants it. */
bool nl_synthesis_put(nl_synthesis *synthesis, const nl_record *record);

/*
 * Says that all records before a time (nanoseconds since 1970) were put. Those that are put later all the same are
 * taken as they come, and counted. Sums and rates of intervals that end by then are made.
 */
void nl_synthesis_advance(nl_synthesis *synthesis, int64_t before_ns);

/* Says that there will be no more. */
void nl_synthesis_finish(nl_synthesis *synthesis);

/* The next record that was made, valid until the next call; NULL when there is none now. */
const nl_record *nl_synthesis_next(nl_synthesis *synthesis);

typedef struct nl_synthesis_stats {
    uint64_t taken;   /* records that some rule wanted */
    uint64_t made;    /* records */
    uint64_t late;    /* that came after what is later than they was taken already */
    uint64_t waiting; /* that wait to be taken */
    uint64_t dropped; /* spans and states that were forgotten, because events were lost, or there were too many */
} nl_synthesis_stats;

/* Fills *stats with the counts so far. */
void nl_synthesis_get_stats(const nl_synthesis *synthesis, nl_synthesis_stats *stats);

#endif
