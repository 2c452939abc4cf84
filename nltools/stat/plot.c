#include "config.h"

#include "stat/plot.h"

#include "stat/report.h"

#include "charts/cairo_library.h"
#include "charts/chart.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = 1200, PANEL = 310, MARGIN_X = 90, MARGIN_TOP = 64, MARGIN_BOTTOM = 44, POINTS = 300 };
enum { ROWS = 20, BAR = 50 /* size of a text histogram, in rows and characters */ };

/* ---- pictures ---- */

/* Draws the mean of the values in each interval. If `rate` is true, draws the sum of the values per second instead. */
static void draw_series(chart p, series *s, bool rate, const char *title)
{
    if (s->count > POINTS)
        series_widen(s, s->width_ns * (int64_t)((s->count + POINTS - 1) / POINTS));
    double scale = rate ? 1e9 / (double)s->width_ns : 1;
    p.from = (double)s->from_ns;
    p.to = (double)s->from_ns + (double)s->width_ns * (double)s->count;
    for (size_t i = 0; i < s->count; i++)
        if (s->intervals[i].count > 0)
            p.maximum = MAX(p.maximum, s->intervals[i].sum * scale / (rate ? 1 : (double)s->intervals[i].count));
    p.maximum = chart_round_up(p.maximum);
    chart_frame(&p, title);
    chart_heights(&p, rate ? units_quantity : units_time);
    chart_times_of_day(&p);
    chart_color(p.cr, rate ? 0x2c8c5a : 0xc0562b, 0.85);
    for (size_t i = 0; i < s->count; i++) {
        const series_interval *interval = &s->intervals[i];
        double x = chart_x(&p, (double)s->from_ns + ((double)i + 0.5) * (double)s->width_ns);
        if (interval->count == 0)
            continue;
        double y = chart_y(&p, interval->sum * scale / (rate ? 1 : (double)interval->count));
        if (rate)
            cairo.rectangle(p.cr, x - p.width / (double)s->count / 2, y, MAX(1, p.width / (double)s->count - 0.5),
                            p.y + p.height - y);
        else
            cairo.arc(p.cr, x, y, 2.5, 0, 2 * G_PI);
        cairo.fill(p.cr);
    }
}

/* Draws the throughput of transfers. Spreads the bytes of a transfer evenly over its duration. */
static void draw_transfers(chart p, transfers *t)
{
    size_t count;
    int64_t interval_ns = 0;
    transfers_interval *intervals = transfers_over_time(t, &interval_ns, &count);
    double seconds = (double)interval_ns / 1e9;
    p.from = (double)intervals[0].from_ns;
    p.to = p.from + (double)interval_ns * (double)count;
    for (size_t k = 0; k < count; k++)
        p.maximum = MAX(p.maximum, intervals[k].bytes / seconds);
    p.maximum = chart_round_up(p.maximum);
    chart_frame(&p, "bytes per second of all transfers");
    chart_heights(&p, units_quantity);
    chart_times_of_day(&p);
    chart_color(p.cr, 0x2c8c5a, 0.85);
    for (size_t k = 0; k < count; k++) {
        double y = chart_y(&p, intervals[k].bytes / seconds);
        cairo.rectangle(p.cr, chart_x(&p, (double)intervals[k].from_ns), y, MAX(1, p.width / (double)count - 0.5),
                        p.y + p.height - y);
        cairo.fill(p.cr);
    }
    g_free(intervals);
}

static chart panel_at(cairo_t *cr, double left, double width, int row)
{
    return (chart){.cr = cr,
                   .x = left + MARGIN_X,
                   .y = 30 + row * PANEL + MARGIN_TOP,
                   .width = width - MARGIN_X - 30,
                   .height = PANEL - MARGIN_TOP - MARGIN_BOTTOM - 20};
}

typedef struct drawn {
    const report_subject *subjects;
    int count;
    throughput *t;
} drawn;

static void plot_draw(cairo_t *cr, void *user)
{
    const drawn *all = user;
    const report_subject *subjects = all->subjects;
    throughput *t = all->t;
    int count = all->count, row = count + (t != NULL);
    for (int i = 0; i < count; i++) {
        char *ids = g_strjoinv(", ", (char **)subjects[i].ids);
        char *title = g_strdup_printf("Requests by %s: %" G_GUINT64_FORMAT, ids, subjects[i].tally->requests);
        chart_color(cr, 0x000000, 1);
        chart_text(cr, 24, 30 + i * PANEL + 12, 0, 16, title);
        if (subjects[i].tally->requests > 0) {
            chart_histogram(panel_at(cr, 0, WIDTH / 2.0, i), &subjects[i].tally->totals,
                            "number of requests by duration", units_time);
            draw_series(panel_at(cr, WIDTH / 2.0, WIDTH / 2.0, i), &subjects[i].tally->totals_series, false,
                        "mean duration by end time");
        }
        g_free(title);
        g_free(ids);
    }
    if (t != NULL && t->records > 0) {
        char *title = g_strdup_printf("%s per second", t->field);
        draw_series(panel_at(cr, 0, WIDTH, count), &t->series, true, title);
        g_free(title);
    }
    for (int i = 0; i < count; i++)
        if (transfers_count(subjects[i].tally->transfers) > 0)
            draw_transfers(panel_at(cr, 0, WIDTH, row++), subjects[i].tally->transfers);
}

bool plot_write(const char *path, const report_subject *subjects, int count, throughput *t)
{
    drawn all = {subjects, count, t};
    int rows = count + (t != NULL);
    for (int i = 0; i < count; i++)
        rows += transfers_count(subjects[i].tally->transfers) > 0;
    return chart_save(path, WIDTH, rows * PANEL + 40, plot_draw, &all);
}

/* ---- text ---- */

/* Prints a histogram from the minimum to the maximum on a logarithmic scale: each row spans the same factor. */
static void print_histogram(nl_distribution *d)
{
    double low = log((double)MAX(d->minimum, 1)), high = log((double)MAX(d->maximum, 1));
    uint64_t counts[ROWS], maximum = 1;
    int rows = high > low ? ROWS : 1;
    for (int i = 0; i < rows; i++) {
        double from_ns = i == 0 ? -1 : exp(low + (high - low) * i / rows);
        double to_ns = i == rows - 1 ? (double)d->maximum : exp(low + (high - low) * (i + 1) / rows);
        counts[i] = nl_distribution_between(d, from_ns, to_ns);
        maximum = MAX(maximum, counts[i]);
    }
    for (int i = 0; i < rows; i++) {
        char text[UNITS_SIZE];
        printf("  %11s %9" G_GUINT64_FORMAT " ", units_time(exp(low + (high - low) * i / rows), text), counts[i]);
        for (int bar = 0; bar < (int)ceil(BAR * (double)counts[i] / (double)maximum); bar++)
            printf("#");
        printf("\n");
    }
    printf("\n");
}

void plot_print(const report_subject *subjects, int count)
{
    for (int i = 0; i < count; i++) {
        char *ids = g_strjoinv(", ", (char **)subjects[i].ids);
        printf("Durations of requests by %s\n\n  %11s %9s\n", ids, "from", "count");
        g_free(ids);
        if (subjects[i].tally->totals.count > 0)
            print_histogram(&subjects[i].tally->totals);
    }
}
