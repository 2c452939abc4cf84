#include "config.h"

#include "stat/plot.h"

#include "stat/report.h"

#include <math.h>
#include <stdio.h>

enum { ROWS = 20, BAR = 50 };

/* Rows of a factor each, from the least to the greatest; times of 0 are with the least. */
static void print_histogram(nl_distribution *d)
{
    double low = log((double)MAX(d->least, 1)), high = log((double)MAX(d->most, 1));
    uint64_t counts[ROWS], most = 1;
    int rows = high > low ? ROWS : 1;
    for (int i = 0; i < rows; i++) {
        double from_ns = i == 0 ? -1 : exp(low + (high - low) * i / rows);
        double to_ns = i == rows - 1 ? (double)d->most : exp(low + (high - low) * (i + 1) / rows);
        counts[i] = nl_distribution_between(d, from_ns, to_ns);
        most = MAX(most, counts[i]);
    }
    for (int i = 0; i < rows; i++) {
        char text[UNITS_SIZE];
        printf("  %11s %9" G_GUINT64_FORMAT " ", units_time(exp(low + (high - low) * i / rows), text), counts[i]);
        for (int bar = 0; bar < (int)ceil(BAR * (double)counts[i] / (double)most); bar++)
            printf("#");
        printf("\n");
    }
    printf("\n");
}

void plot_print(measure *const *measures, int count)
{
    for (int i = 0; i < count; i++) {
        char *ids = g_strjoinv(", ", measures[i]->definition->ids);
        printf("How long lifelines by %s took\n\n  %11s %9s\n", ids, "from", "count");
        g_free(ids);
        if (measures[i]->totals.count > 0)
            print_histogram(&measures[i]->totals);
    }
}
