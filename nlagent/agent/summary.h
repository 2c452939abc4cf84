/*
 * Computes summaries of a sensor's numeric fields over 1, 10 and 60 minutes, and keeps the summaries for a day. A
 * summary contains the count, minimum, mean, maximum and percentiles of a numeric field of an object (condition.h).
 * Percentiles are exact for up to 256 values. For more values, the module computes percentiles from a random sample of
 * 256 values.
 *
 * Windows begin at whole minutes of the real-time clock. If the clock is set back, there can be several windows for the
 * same time. If the clock jumps forward, there are no windows for the skipped time. A sensor has summaries of at most
 * 1,000 fields. For further fields, the module only counts the omitted values. Not thread-safe.
 */
#ifndef NLAGENT_SUMMARY_H
#define NLAGENT_SUMMARY_H

#include <netlogger.h>

typedef struct summaries summaries;

summaries *summaries_new(void);
void summaries_free(summaries *s); /* s may be NULL */

/* Adds the numeric fields of a record to the windows. `now_ns` is the time of the real-time clock. */
void summaries_put(summaries *s, const nl_record *record, int64_t now_ns);

/* Closes the windows whose time has elapsed. */
void summaries_tick(summaries *s, int64_t now_ns);

/*
 * Sets the function that receives each closed window as a record: a Summary event at the window's start. Its fields are
 * MINUTES, OF (the summarized event), FIELD, COUNT, MIN, MEAN, MAX, P50, P90 and P99, and the fields that identify the
 * object.
 */
void summaries_on_closed(summaries *s, void (*on_closed)(void *user, const nl_record *record, unsigned minutes),
                         void *user);

/* Calls `function` for each closed window of `minutes` minutes that begins at or after since_ns. Returns the number of
 * these windows. */
size_t summaries_list(const summaries *s, unsigned minutes, int64_t since_ns,
                      void (*function)(void *user, const nl_record *record), void *user);

/*
 * Returns the number of values left out because the sensor has too many fields, or because a field's name is too long.
 */
uint64_t summaries_left_out(const summaries *s);

#endif
