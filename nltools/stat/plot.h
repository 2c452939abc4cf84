/* Plots the durations of each lifeline's requests as a histogram and over time, and plots a throughput over time. */
#ifndef NLSTAT_PLOT_H
#define NLSTAT_PLOT_H

#include "stat/report.h"

/*
 * Writes a plot of the requests of `count` lifelines to a file. If `t` is not NULL, also plots the throughput. Returns
 * false and sets the error on failure.
 */
bool plot_write(const char *path, const report_subject *subjects, int count, throughput *t);

/* Prints the histograms as text on standard output. */
void plot_print(const report_subject *subjects, int count);

#endif
