/*
 * Summaries of a sensor's numbers over 1, 10 and 60 minutes, kept for a day: count, minimum, mean, maximum and
 * percentiles of each numeric field of each object (condition.h). Percentiles are exact for up to 256 numbers; with
 * more numbers, they come from a random sample of 256.
 *
 * Windows begin at whole minutes of the real-time clock. If the clock is set back, windows for the same time follow. If
 * it jumps forward, the skipped time has no windows. A sensor has at most 1000 fields with summaries; the numbers of
 * further fields are counted. One thread.
 */
#ifndef NLAGENT_SUMMARY_H
#define NLAGENT_SUMMARY_H

#include <netlogger.h>

typedef struct summaries summaries;

summaries *summaries_new(void);
void summaries_free(summaries *s); /* NULL is allowed */

/* Adds the numbers of a record. now_ns is the real-time clock. */
void summaries_put(summaries *s, const nl_record *record, int64_t now_ns);

/* Closes windows whose time is over. */
void summaries_tick(summaries *s, int64_t now_ns);

/*
 * Sets a function that gets each closed window as a record: the event Summary at the window's start, with MINUTES, OF
 * (the event), FIELD, the fields that identify the object, COUNT, MIN, MEAN, MAX, P50, P90 and P99.
 */
void summaries_on_closed(summaries *s, void (*on_closed)(void *user, const nl_record *record, unsigned minutes),
                         void *user);

/* Calls function for each closed window of a length that begins at since_ns or later. Returns their number. */
size_t summaries_list(const summaries *s, unsigned minutes, int64_t since_ns,
                      void (*function)(void *user, const nl_record *record), void *user);

/* Returns the number of numbers that were left out because there are too many fields. */
uint64_t summaries_left_out(const summaries *s);

#endif
