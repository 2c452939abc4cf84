/*
 * Pictures of what was measured: of each lifeline a histogram of how long objects took, and how long they took over
 * time; of a throughput its rate over time.
 */
#ifndef NLSTAT_PLOT_H
#define NLSTAT_PLOT_H

#include "stat/measure.h"
#include "stat/throughput.h"

/* Whether the name says a format that can be drawn: .png or .svg. */
bool plot_knows(const char *path);

/*
 * Draws count measures, and the throughput unless it is NULL, into the file, which takes its name when it is whole.
 * False, after having said why, when that fails.
 */
bool plot_write(const char *path, measure *const *measures, int count, throughput *t);

/* The histograms as text, on standard output. */
void plot_print(measure *const *measures, int count);

#endif
