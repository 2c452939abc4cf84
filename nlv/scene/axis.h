/* Ticks at round places: of time, from nanoseconds to years, and of numbers. */
#ifndef NLV_AXIS_H
#define NLV_AXIS_H

#include <netlogger.h>

/* The least round step of time that is no shorter than at_least_ns. */
int64_t axis_time_step_ns(int64_t at_least_ns);

/* The first multiple of step at or after a time. */
int64_t axis_first_tick_ns(int64_t from_ns, int64_t step_ns);

/* A tick's label: as many parts of the time as the step needs, "12:00:01.250"; the date by itself from a day on. UTC.
 */
void axis_time_label(int64_t time_ns, int64_t step_ns, char out[NL_TIME_TEXT_SIZE]);

/* The least of 1, 2, 5, 10, 20 ... (and their tenths) that is no smaller than at_least. */
double axis_step(double at_least);

/* A number with the prefix that suits it: "1.5 M". */
void axis_number_label(double value, double step, char out[32]);

/* A span of time in words: "1.25 ms". */
void axis_span_label(double span_ns, char out[32]);

#endif
