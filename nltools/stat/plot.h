/*
 * Plots durations: for each lifeline a histogram of the durations of requests, and the durations over time; for a
 * throughput its rate over time.
 */
#ifndef NLSTAT_PLOT_H
#define NLSTAT_PLOT_H

#include "stat/report.h"

/* Draws the requests of count lifelines, and the throughput unless it is NULL, to a file. Returns false on failure. */
bool plot_write(const char *path, const report_subject *subjects, int count, throughput *t);

/* Prints the histograms as text on standard output. */
void plot_print(const report_subject *subjects, int count);

#endif
