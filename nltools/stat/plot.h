/* Plots the durations of requests as a histogram and over time, for each lifeline, and a throughput over time. */
#ifndef NLSTAT_PLOT_H
#define NLSTAT_PLOT_H

#include "stat/report.h"

/*
 * Writes a plot of the requests of `count` lifelines, and of the throughput unless it is NULL. Returns false on
 * failure.
 */
bool plot_write(const char *path, const report_subject *subjects, int count, throughput *t);

/* Prints the histograms as text on standard output. */
void plot_print(const report_subject *subjects, int count);

#endif
