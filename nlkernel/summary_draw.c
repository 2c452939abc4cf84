/* Draws reports: a chart for each report that has a plot. */
#include "config.h"

#include "base/text.h"
#include "summary.h"

#include "base/error.h"

#include "charts/cairo_library.h"
#include "charts/chart.h"

#include <glib.h>
#include <math.h>
#include <string.h>

enum {
    WIDTH = 1100,
    PANEL = 340,
    MARGIN = 110,
    LINES = 10,
    BAR = 20,
    NAMES = 190, /* width of the labels to the left of bars */
    BARS_MAX = 60,
    CDF_STEPS = 400,
    INTERVALS = 200
};

static const unsigned colors[LINES] = {0x2a6fbb, 0xc0562b, 0x2c8c5a, 0x8e5ca8, 0xb5892a,
                                       0x3aa3a8, 0xd0487c, 0x6b7f2e, 0x5562d4, 0x777777};

/* The current report, for write_value, to which charts pass no argument. */
static const summary *drawn;

static const char *write_value(double value, char out[UNITS_SIZE])
{
    summary_write(drawn, 'v', value, out);
    return out;
}

static const char *write_share(double value, char out[UNITS_SIZE])
{
    g_snprintf(out, UNITS_SIZE, "%.0f %%", value * 100);
    return out;
}

static char *row_label(const summary_row *row)
{
    GString *text = g_string_new(NULL);
    for (unsigned i = 0; i < SUMMARY_FIELDS_MAX && row->labels[i] != NULL; i++)
        if (strcmp(row->labels[i], "-") != 0) /* skip "-", which stands for a missing field */
            g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "", row->labels[i]);
    if (text->len == 0)
        g_string_append(text, "all");
    if (text->len > 44)
        g_string_truncate(text, 44);
    return g_string_free(text, FALSE);
}

/* Returns the number of rows that have a line in a plot. The legend shows the number of other rows. */
static size_t lines_of(const summary *s)
{
    return s->row_count < LINES ? s->row_count : LINES;
}

static void draw_legend(const chart *p, const summary *s)
{
    for (size_t i = 0; i < lines_of(s); i++) {
        char *label = row_label(s->rows[i]);
        double y = p->y + 8 + 18 * (double)i;
        chart_color(p->cr, colors[i], 1);
        cairo.rectangle(p->cr, p->x + p->width + 16, y - 8, 10, 10);
        cairo.fill(p->cr);
        chart_color(p->cr, 0x333333, 1);
        chart_text(p->cr, p->x + p->width + 32, y + 1, 0, 11, label);
        g_free(label);
    }
    if (s->row_count > lines_of(s)) {
        char text[64];
        g_snprintf(text, sizeof text, "and %zu more that are not drawn", s->row_count - lines_of(s));
        chart_text(p->cr, p->x + p->width + 32, p->y + 9 + 18 * LINES, 0, 11, text);
    }
}

/* ---- distributions ---- */

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
    p.from = log((double)MAX(s->all.minimum, 1));
    p.to = MAX(log((double)MAX(s->all.maximum, 1)), p.from + 0.1);
    p.maximum = 1;
    chart_frame(&p, s->title);
    chart_heights(&p, write_share);
    draw_scale(&p);
    for (size_t i = 0; i < lines_of(s); i++) {
        summary_row *row = s->rows[i];
        chart_color(p.cr, colors[i], 1);
        cairo.set_line_width(p.cr, 1.6);
        if (row->values.count == 0)
            continue;
        cairo.new_path(p.cr);
        for (int step = 0; step <= CDF_STEPS; step++) {
            double share = (double)step / CDF_STEPS;
            int64_t value = nl_distribution_quantile(&row->values, share);
            cairo.line_to(p.cr, chart_x(&p, log((double)MAX(value, 1))), chart_y(&p, share));
        }
        cairo.stroke(p.cr);
    }
    draw_legend(&p, s);
}

/* ---- bars ---- */

static double row_value(const summary *s, const summary_row *row)
{
    return s->value_count > 0 ? row->sum : (double)row->count;
}

/* Returns the number of rows with a separate bar. The other rows share one bar. */
static size_t bars_of(const summary *s)
{
    return s->row_count <= BARS_MAX ? s->row_count : BARS_MAX - 1;
}

static void draw_bar(const chart *p, const summary *s, size_t place, const char *label, double value, unsigned color)
{
    char text[UNITS_SIZE];
    double width = p->maximum > 0 ? MAX((p->width - NAMES) * value / p->maximum, 0) : 0, y = p->y + BAR * (double)place;
    chart_color(p->cr, color, 1);
    cairo.rectangle(p->cr, p->x + NAMES, y, MAX(width, 1), BAR - 3);
    cairo.fill(p->cr);
    summary_write(s, s->value_count > 0 ? 'v' : 'n', value, text);
    chart_color(p->cr, 0x333333, 1);
    chart_text(p->cr, p->x + NAMES - 8, y + BAR - 6, 1, 11, label);
    chart_text(p->cr, p->x + NAMES + width + 8, y + BAR - 6, 0, 11, text);
}

/* Writes the names of the fields above the labels. */
static void draw_heading(const chart *p, const summary *s)
{
    GString *text = g_string_new(NULL);
    for (unsigned i = 0; i < summary_label_count(s); i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", summary_label_name(s, i));
    chart_color(p->cr, 0x888888, 1);
    chart_text(p->cr, p->x + NAMES - 8, p->y - 3, 1, 10, text->str);
    g_string_free(text, TRUE);
}

static void draw_bars(chart p, const summary *s)
{
    size_t count = bars_of(s);
    double rest = 0;
    for (size_t i = 0; i < s->row_count; i++)
        if (i < count)
            p.maximum = MAX(p.maximum, row_value(s, s->rows[i]));
        else
            rest += row_value(s, s->rows[i]);
    p.maximum = MAX(p.maximum, rest);
    chart_color(p.cr, 0x222222, 1);
    chart_text(p.cr, p.x, p.y - 18, 0, 14, s->title);
    draw_heading(&p, s);
    for (size_t i = 0; i < count; i++) {
        char *label = row_label(s->rows[i]);
        draw_bar(&p, s, i, label, row_value(s, s->rows[i]), 0x2a6fbb);
        g_free(label);
    }
    if (count < s->row_count) {
        char label[64];
        g_snprintf(label, sizeof label, "%zu other%s", s->row_count - count, nl_plural(s->row_count - count));
        draw_bar(&p, s, count, label, rest, 0x999999);
    }
}

/* ---- plots over time ---- */

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
        p.maximum = MAX(p.maximum, (double)s->rows[i]->values.maximum);
    p.maximum = chart_round_up(p.maximum);
    chart_frame(&p, s->title);
    chart_heights(&p, write_value);
    chart_times_of_day(&p);
    for (size_t i = lines_of(s); i-- > 0;) {
        chart_color(p.cr, colors[i], 0.8);
        for (size_t j = 0; j < s->rows[i]->point_count; j++) {
            const summary_point *point = &s->rows[i]->points[j];
            cairo.rectangle(p.cr, chart_x(&p, (double)point->time_ns) - 1, chart_y(&p, point->value) - 1, 2, 2);
        }
        cairo.fill(p.cr);
    }
    draw_legend(&p, s);
}

/*
 * Divides the time of the chart into INTERVALS intervals, and computes the sum of the row's values per second in each.
 */
static void sum_intervals(const chart *p, const summary_row *row, double *intervals)
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
        sum_intervals(&p, s->rows[i], intervals);
        for (int j = 0; j < INTERVALS; j++)
            p.maximum = MAX(p.maximum, intervals[j]);
    }
    p.maximum = chart_round_up(p.maximum);
    chart_frame(&p, s->title);
    chart_heights(&p, units_quantity);
    chart_times_of_day(&p);
    for (size_t i = lines_of(s); i-- > 0;) {
        sum_intervals(&p, s->rows[i], intervals);
        chart_color(p.cr, colors[i], 1);
        cairo.set_line_width(p.cr, 1.4);
        cairo.new_path(p.cr);
        for (int j = 0; j < INTERVALS; j++)
            cairo.line_to(p.cr, p.x + p.width * (j + 0.5) / INTERVALS, chart_y(&p, intervals[j]));
        cairo.stroke(p.cr);
    }
    draw_legend(&p, s);
}

/* ---- the picture ---- */

static bool has_picture(const summary *s)
{
    return s->plot != PLOT_NONE && s->row_count > 0;
}

static void draw_report(chart p, summary *s)
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

/* Returns the height of a report in pixels. */
static int report_height(const summary *s)
{
    if (!has_picture(s))
        return 0;
    return s->plot == PLOT_BARS ? MARGIN + BAR * (int)MIN(s->row_count, BARS_MAX) : PANEL;
}

static void draw_reports(cairo_t *cr, void *user)
{
    summaries *all = user;
    int y = 90;
    chart_color(cr, 0x000000, 1);
    chart_text(cr, 24, 32, 0, 18, all->rules->title);
    for (size_t i = 0; i < all->count; i++) {
        int height = report_height(&all->list[i]);
        if (height > 0)
            draw_report((chart){.cr = cr, .x = 90, .y = y, .width = WIDTH - 400, .height = height - MARGIN},
                        &all->list[i]);
        y += height;
    }
    if (y == 90)
        chart_text(cr, 24, 80, 0, 13, "No records.");
}

bool summaries_draw(summaries *all, const char *path)
{
    int height = 0;
    for (size_t i = 0; i < all->count; i++)
        height += report_height(&all->list[i]);
    if (!chart_knows(path))
        return nl_error_false(NL_ERROR_INVALID, "%s: the name must end in .png or .svg", path);
    return chart_save(path, WIDTH, 60 + MAX(height, 100), draw_reports, all) || (nl_error_prepend("%s", path), false);
}
