/* Ticks at round values of time and of numbers, and their labels. This module has no state. */
#ifndef NLV_AXIS_H
#define NLV_AXIS_H

#include <netlogger.h>

/* Returns the smallest round time step that is at least min_ns. */
int64_t axis_time_step_ns(int64_t min_ns);

/* Returns the first multiple of step_ns at or after a time. */
int64_t axis_first_tick_ns(int64_t from_ns, int64_t step_ns);

/*
 * Writes the label of a tick in UTC, with as many digits as the step needs: "12:00:01.250". If the step is a day or
 * more, the label is the date.
 */
void axis_time_label(int64_t time_ns, int64_t step_ns, char out[NL_TIME_TEXT_SIZE]);

/* Returns the smallest number that is at least min and is a power of ten multiplied by 1, 2 or 5. */
double axis_step(double min);

/* Writes a number with a unit prefix and as many digits as the step needs, such as "1.5 M". */
void axis_number_label(double value, double step, char out[32]);

/* The kind of times that an axis shows. */
typedef enum axis_clock { AXIS_UTC, AXIS_LOCAL, AXIS_RELATIVE, AXIS_CLOCKS } axis_clock;

/*
 * Returns the nanoseconds to add to a time so that axis_time_label writes the time of a clock: 0 for UTC, the offset of
 * the local time zone, or -origin_ns for the time since origin_ns.
 */
int64_t axis_shift_ns(axis_clock clock, int64_t time_ns, int64_t origin_ns);

/* Writes the time since the origin, such as "+0:01:02.5", with as many digits as the step needs. */
void axis_relative_label(int64_t since_ns, int64_t step_ns, char out[NL_TIME_TEXT_SIZE]);

/*
 * Writes a time with all its digits: 2026-01-31T12:00:00.5Z, with the offset of the local time zone instead of Z, or as
 * axis_relative_label. axis_write_clock omits the date.
 */
enum { AXIS_TIME_SIZE = 48 };
void axis_write_time(axis_clock clock, int64_t origin_ns, int64_t time_ns, char out[AXIS_TIME_SIZE]);
void axis_write_clock(axis_clock clock, int64_t origin_ns, int64_t time_ns, char out[AXIS_TIME_SIZE]);

/* Returns "UTC", "local" or "relative". */
const char *axis_clock_text(axis_clock clock);

/* Writes a duration with its unit, such as "1.25 ms", or with two units from two minutes on, such as "2 h 10 min". */
void axis_span_label(double span_ns, char out[32]);

#endif
