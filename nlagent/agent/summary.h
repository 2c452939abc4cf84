/*
 * Summaries of a sensor's numbers over 1, 10 and 60 minutes, kept for a day: least, mean, greatest, how many, and
 * percentiles, of each numeric field of each thing (condition.h). Percentiles are exact as long as a window holds no
 * more than 256 numbers, and of a random sample of 256 of them beyond.
 *
 * Windows begin at whole minutes of the clock. A clock that is set back makes windows follow that are of the same time;
 * one that jumps forward leaves out what it jumped over. Bounded: what would be more than 1000 fields of a sensor is
 * not summed up, which is counted.
 */
#ifndef NLAGENT_SUMMARY_H
#define NLAGENT_SUMMARY_H

#include <netlogger.h>

enum { SUMMARY_LENGTHS = 3 };
extern const unsigned summary_minutes[SUMMARY_LENGTHS];

typedef struct summaries summaries;

summaries *summaries_new(void);
void summaries_free(summaries *s);

/* Takes a record; now_ns is the real-time clock. A window that is over is closed before, and on_closed is told of each
 * number in it. */
void summaries_put(summaries *s, const nl_record *record, int64_t now_ns);

/* Closes windows that are over, also when nothing comes. */
void summaries_tick(summaries *s, int64_t now_ns);

/* Is called with a record for each window that is closed: Summary, with MINUTES, OF (the event), FIELD, what names the
 * thing, COUNT, MIN, MEAN, MAX, P50, P90, P99; its time is the window's begin. */
void summaries_on_closed(summaries *s, void (*on_closed)(void *user, const nl_record *record, unsigned minutes),
                         void *user);

/* The same of those that were closed, of one length, which begin at since_ns or later; returns how many. */
size_t summaries_list(const summaries *s, unsigned minutes, int64_t since_ns,
                      void (*function)(void *user, const nl_record *record), void *user);

/* How many numbers were not summed up, for their fields were too many. */
uint64_t summaries_left_out(const summaries *s);

#endif
