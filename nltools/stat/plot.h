/*
 * Pictures of what was measured: of each lifeline a histogram of how long objects took, and how long they took over
 * time; of a throughput its rate over time.
 */
#ifndef NLSTAT_PLOT_H
#define NLSTAT_PLOT_H

#include "stat/measure.h"
#include "stat/throughput.h"

/* Draws count measures, and the throughput unless it is NULL, into the file. Returns false on failure. */
bool plot_write(const char *path, measure *const *measures, int count, throughput *t);

/* The histograms as text, on standard output. */
void plot_print(measure *const *measures, int count);

#endif
