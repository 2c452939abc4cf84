/* Reports as a picture: a chart for each that has a plot. */
#include "config.h"

#include "summary.h"

#include "base/error.h"

#ifdef HAVE_CHARTS

#include "analysis/chart.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1100, PANEL = 340, LINES = 10, BARS = 16, CDF_STEPS = 400, INTERVALS = 200 };

static const unsigned colors[LINES] = {0x2a6fbb, 0xc0562b, 0x2c8c5a, 0x8e5ca8, 0xb5892a,
                                       0x3aa3a8, 0xd0487c, 0x6b7f2e, 0x5562d4, 0x777777};

/* What stands below and beside: the report that is being drawn. */
static const summary *drawn;

static void write_value(double value, char out[UNITS_SIZE])
{
    summary_write(drawn, 'v', value, out);
}

static void write_share(double value, char out[UNITS_SIZE])
{
    g_snprintf(out, UNITS_SIZE, "%.0f %%", value * 100);
}

static char *label_of(const summary_row *row)
{
    GString *text = g_string_new(NULL);
    for (unsigned i = 0; i < SUMMARY_FIELDS_MOST && row->labels[i] != NULL; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", row->labels[i]);
    if (text->len == 0)
        g_string_append(text, "all");
    if (text->len > 36)
        g_string_truncate(text, 36);
    return g_string_free(text, FALSE);
}

static size_t lines_of(const summary *s)
{
    return s->row_count < LINES ? s->row_count : LINES;
}

static void draw_legend(const chart *p, const summary *s)
{
    for (size_t i = 0; i < lines_of(s); i++) {
        char *label = label_of(s->rows[i]);
        double y = p->y + 8 + 18 * (double)i;
        chart_color(p->cr, colors[i], 1);
        cairo_rectangle(p->cr, p->x + p->width + 16, y - 8, 10, 10);
        cairo_fill(p->cr);
        chart_color(p->cr, 0x333333, 1);
        chart_text(p->cr, p->x + p->width + 32, y + 1, 0, 11, label);
        g_free(label);
    }
}

/* ---- how values are distributed ---- */

static void draw_scale(const chart *p)
{
    chart_color(p->cr, 0x555555, 1);
    for (int i = 0; i <= 4; i++) {
        char text[UNITS_SIZE];
        write_value(exp(p->from + (p->to - p->from) * i / 4), text);
        chart_text(p->cr, p->x + p->width * i / 4, p->y + p->height + 18, 0.5, 11, text);
    }
}

static void draw_cdf(chart p, summary *s)
{
    p.from = log((double)MAX(s->all.least, 1));
    p.to = MAX(log((double)MAX(s->all.most, 1)), p.from + 0.1);
    p.most = 1;
    chart_frame(&p, s->title);
    chart_heights(&p, write_share);
    draw_scale(&p);
    for (size_t i = 0; i < lines_of(s); i++) {
        summary_row *row = s->rows[i];
        chart_color(p.cr, colors[i], 1);
        cairo_set_line_width(p.cr, 1.6);
        if (row->values.count == 0)
            continue;
        cairo_new_path(p.cr);
        for (int step = 0; step <= CDF_STEPS; step++) {
            double share = (double)step / CDF_STEPS;
            int64_t value = nl_distribution_quantile(&row->values, share);
            cairo_line_to(p.cr, chart_x(&p, log((double)MAX(value, 1))), chart_y(&p, share));
        }
        cairo_stroke(p.cr);
    }
    draw_legend(&p, s);
}

/* ---- rows beside each other ---- */

static void draw_bars(chart p, const summary *s)
{
    size_t count = s->row_count < BARS ? s->row_count : BARS;
    double most = 0, height = (p.height + 20) / BARS;
    const double names = 190;
    for (size_t i = 0; i < count; i++)
        most = MAX(most, s->value_count > 0 ? s->rows[i]->sum : (double)s->rows[i]->count);
    chart_color(p.cr, 0x222222, 1);
    chart_text(p.cr, p.x, p.y - 16, 0, 14, s->title);
    for (size_t i = 0; i < count; i++) {
        char text[UNITS_SIZE], *label = label_of(s->rows[i]);
        double value = s->value_count > 0 ? s->rows[i]->sum : (double)s->rows[i]->count;
        double width = most > 0 ? (p.width - names) * value / most : 0, y = p.y + height * (double)i;
        chart_color(p.cr, 0x2a6fbb, 1);
        cairo_rectangle(p.cr, p.x + names, y, MAX(width, 1), height - 3);
        cairo_fill(p.cr);
        summary_write(s, s->value_count > 0 ? 'v' : 'n', value, text);
        chart_color(p.cr, 0x333333, 1);
        chart_text(p.cr, p.x + names - 8, y + height - 6, 1, 11, label);
        chart_text(p.cr, p.x + names + width + 8, y + height - 6, 0, 11, text);
        g_free(label);
    }
}

/* ---- over time ---- */

static void set_times(chart *p, const summary *s)
{
    p->from = INFINITY;
    p->to = -INFINITY;
    for (size_t i = 0; i < lines_of(s); i++)
        for (size_t j = 0; j < s->rows[i]->point_count; j++) {
            p->from = MIN(p->from, (double)s->rows[i]->points[j].time_ns);
            p->to = MAX(p->to, (double)s->rows[i]->points[j].time_ns);
        }
    p->to = MAX(p->to, p->from + 1);
}

static void draw_points(chart p, const summary *s)
{
    set_times(&p, s);
    for (size_t i = 0; i < lines_of(s); i++)
        p.most = MAX(p.most, (double)s->rows[i]->values.most);
    p.most = chart_round_up(p.most);
    chart_frame(&p, s->title);
    chart_heights(&p, write_value);
    chart_times_of_day(&p);
    for (size_t i = lines_of(s); i-- > 0;) {
        chart_color(p.cr, colors[i], 0.8);
        for (size_t j = 0; j < s->rows[i]->point_count; j++) {
            const summary_point *point = &s->rows[i]->points[j];
            cairo_rectangle(p.cr, chart_x(&p, (double)point->time_ns) - 1, chart_y(&p, point->value) - 1, 2, 2);
        }
        cairo_fill(p.cr);
    }
    draw_legend(&p, s);
}

/* What came in each interval, a second. */
static void sum_up(const chart *p, const summary_row *row, double *intervals)
{
    double seconds = (p->to - p->from) / 1e9 / INTERVALS;
    memset(intervals, 0, INTERVALS * sizeof *intervals);
    for (size_t j = 0; j < row->point_count; j++) {
        int at = (int)(((double)row->points[j].time_ns - p->from) / (p->to - p->from) * INTERVALS);
        intervals[CLAMP(at, 0, INTERVALS - 1)] += row->points[j].value * (double)row->point_step / seconds;
    }
}

static void draw_series(chart p, const summary *s)
{
    double intervals[INTERVALS];
    set_times(&p, s);
    for (size_t i = 0; i < lines_of(s); i++) {
        sum_up(&p, s->rows[i], intervals);
        for (int j = 0; j < INTERVALS; j++)
            p.most = MAX(p.most, intervals[j]);
    }
    p.most = chart_round_up(p.most);
    chart_frame(&p, s->title);
    chart_heights(&p, chart_write_quantity);
    chart_times_of_day(&p);
    for (size_t i = lines_of(s); i-- > 0;) {
        sum_up(&p, s->rows[i], intervals);
        chart_color(p.cr, colors[i], 1);
        cairo_set_line_width(p.cr, 1.4);
        cairo_new_path(p.cr);
        for (int j = 0; j < INTERVALS; j++)
            cairo_line_to(p.cr, p.x + p.width * (j + 0.5) / INTERVALS, chart_y(&p, intervals[j]));
        cairo_stroke(p.cr);
    }
    draw_legend(&p, s);
}

/* ---- all of them ---- */

static bool is_drawn(const summary *s)
{
    return s->plot != PLOT_NONE && s->row_count > 0;
}

static void draw_one(chart p, summary *s)
{
    drawn = s;
    if (s->plot == PLOT_HISTOGRAM && s->all.count > 0)
        chart_histogram(p, &s->all, s->title, write_value);
    else if (s->plot == PLOT_CDF && s->all.count > 0)
        draw_cdf(p, s);
    else if (s->plot == PLOT_BARS)
        draw_bars(p, s);
    else if (s->plot == PLOT_POINTS)
        draw_points(p, s);
    else if (s->plot == PLOT_SERIES)
        draw_series(p, s);
}

static void draw(cairo_t *cr, void *user)
{
    summaries *all = user;
    int row = 0;
    chart_color(cr, 0x000000, 1);
    chart_text(cr, 24, 32, 0, 18, all->schema->title);
    for (size_t i = 0; i < all->count; i++)
        if (is_drawn(&all->list[i]))
            draw_one((chart){.cr = cr, .x = 90, .y = 90 + PANEL * row++, .width = WIDTH - 400, .height = PANEL - 110},
                     &all->list[i]);
    if (row == 0)
        chart_text(cr, 24, 80, 0, 13, "There was nothing of that.");
}

bool summaries_draw(summaries *all, const char *path)
{
    int rows = 0;
    char *message;
    for (size_t i = 0; i < all->count; i++)
        rows += is_drawn(&all->list[i]);
    if (!chart_knows(path))
        return nl_error_set("%s: the name of a picture ends in .png or .svg", path) == NL_OK;
    bool good = chart_save(path, WIDTH, 60 + PANEL * MAX(rows, 1), draw, all, &message);
    if (!good)
        nl_error_set("%s: %s", path, message);
    g_free(message);
    return good;
}

#else

bool summaries_draw(summaries *all, const char *path)
{
    (void)all;
    return nl_error_set("%s: this nlkernel was built without cairo, and can't draw", path) == NL_OK;
}

#endif
