/*
 * Plots measures: for each lifeline a histogram of the durations of requests, and the durations over time; for a
 * throughput its rate over time.
 */
#ifndef NLSTAT_PLOT_H
#define NLSTAT_PLOT_H

#include "stat/measure.h"
#include "stat/throughput.h"

/* Draws count measures, and the throughput unless it is NULL, to a file. Returns false on failure. */
bool plot_write(const char *path, measure *const *measures, int count, throughput *t);

/* Prints the histograms as text on standard output. */
void plot_print(measure *const *measures, int count);

#endif
