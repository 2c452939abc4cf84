#include "config.h"

#include "stat/plot.h"

#include "convert/output.h"
#include "program/program.h"

#include "stat/report.h"

#include <cairo-svg.h>
#include <cairo.h>

#include <math.h>
#include <string.h>

enum { WIDTH = 1200, PANEL = 310, MARGIN_X = 90, MARGIN_TOP = 64, MARGIN_BOTTOM = 44, BARS = 80, POINTS = 300 };

/* A rectangle to draw in, with its scales. */
typedef struct panel {
    cairo_t *cr;
    double x, y, width, height; /* of the plot, within its axes */
    double from, to;            /* what x goes from and to */
    double most;                /* what y goes to, from 0 */
} panel;

static void set_color(cairo_t *cr, unsigned rgb, double alpha)
{
    cairo_set_source_rgba(cr, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0, alpha);
}

/* Text at x, y: align 0 begins there, 0.5 is centred, 1 ends there. */
static void draw_text(cairo_t *cr, double x, double y, double align, double size, const char *text)
{
    cairo_text_extents_t extents;
    char *valid = g_utf8_make_valid(text, -1);
    cairo_set_font_size(cr, size);
    cairo_text_extents(cr, valid, &extents);
    cairo_move_to(cr, x - align * extents.x_advance, y);
    cairo_show_text(cr, valid);
    g_free(valid);
}

static double x_of(const panel *p, double value)
{
    return p->to > p->from ? p->x + p->width * (value - p->from) / (p->to - p->from) : p->x + p->width / 2;
}

static double y_of(const panel *p, double value)
{
    return p->y + p->height - (p->most > 0 ? p->height * value / p->most : 0);
}

/* A round number of at least value: 1, 2 or 5 times a power of ten. */
static double round_up(double value)
{
    double power = value > 0 ? pow(10, floor(log10(value))) : 1;
    return value <= power ? power : value <= 2 * power ? 2 * power : value <= 5 * power ? 5 * power : 10 * power;
}

static void draw_frame(const panel *p, const char *title)
{
    cairo_t *cr = p->cr;
    set_color(cr, 0x222222, 1);
    draw_text(cr, p->x, p->y - 16, 0, 14, title);
    set_color(cr, 0x999999, 1);
    cairo_set_line_width(cr, 1);
    cairo_move_to(cr, p->x - 0.5, p->y);
    cairo_line_to(cr, p->x - 0.5, p->y + p->height + 0.5);
    cairo_line_to(cr, p->x + p->width, p->y + p->height + 0.5);
    cairo_stroke(cr);
}

/* What y is at four heights, said by write. */
static void draw_heights(const panel *p, void (*write)(double value, char out[REPORT_TIME]))
{
    for (int i = 0; i <= 4; i++) {
        char text[REPORT_TIME];
        double value = p->most * i / 4, y = round(y_of(p, value)) + 0.5;
        set_color(p->cr, 0xe4e4e4, 1);
        cairo_move_to(p->cr, p->x, y);
        cairo_line_to(p->cr, p->x + p->width, y);
        if (i > 0)
            cairo_stroke(p->cr);
        cairo_new_path(p->cr);
        set_color(p->cr, 0x555555, 1);
        write(value, text);
        draw_text(p->cr, p->x - 8, y + 4, 1, 11, text);
    }
}

static void write_count(double value, char out[REPORT_TIME])
{
    g_snprintf(out, REPORT_TIME, value == floor(value) ? "%.0f" : "%.1f", value);
}

static void write_time(double value, char out[REPORT_TIME])
{
    report_time(value, out);
}

static void write_quantity(double value, char out[REPORT_TIME])
{
    report_quantity(value, out);
}

/* Times of day below a panel whose x is nanoseconds since 1970, and the day. */
static void draw_times_of_day(const panel *p)
{
    enum { DAY = 10, MILLISECONDS = 23 };
    set_color(p->cr, 0x555555, 1);
    for (int i = 0; i <= 4; i++) {
        char text[NL_TIME_TEXT_SIZE];
        nl_time_format_iso((int64_t)(p->from + (p->to - p->from) * i / 4), text);
        text[MIN(strlen(text), MILLISECONDS)] = '\0';
        draw_text(p->cr, p->x + p->width * i / 4, p->y + p->height + 18,
                  i == 0   ? 0
                  : i == 4 ? 1
                           : 0.5,
                  11, text + DAY + 1);
        text[DAY] = '\0';
        if (i == 0)
            draw_text(p->cr, p->x, p->y + p->height + 34, 0, 11, text);
    }
}

/* ---- what is drawn ---- */

static void draw_histogram(panel p, distribution *d)
{
    double counts[BARS];
    int bars = BARS;
    p.from = log((double)MAX(d->min_ns, 1));
    p.to = log((double)MAX(d->max_ns, 1));
    if (p.to - p.from < 0.1) {
        p.from -= 0.5;
        p.to += 0.5;
    }
    if (!distribution_is_exact(d)) /* a bar is of several buckets, or some would be of none */
        bars = CLAMP((int)((p.to - p.from) / (6 * DISTRIBUTION_ERROR)), 1, BARS);
    for (int i = 0; i < bars; i++) {
        double step = (p.to - p.from) / bars;
        counts[i] = (double)distribution_between(d, i == 0 ? -1 : exp(p.from + i * step),
                                                 i == bars - 1 ? INFINITY : exp(p.from + (i + 1) * step));
        p.most = MAX(p.most, counts[i]);
    }
    p.most = round_up(p.most);
    draw_frame(&p, "how long they took, and how many");
    draw_heights(&p, write_count);
    set_color(p.cr, 0x2a6fbb, 1);
    for (int i = 0; i < bars; i++) {
        double y = y_of(&p, counts[i]);
        if (counts[i] > 0)
            y = MIN(y, p.y + p.height - 1.5); /* a single one is seen too */
        cairo_rectangle(p.cr, p.x + p.width * i / bars, y, p.width / bars - 1, p.y + p.height - y);
    }
    cairo_fill(p.cr);
    set_color(p.cr, 0x555555, 1);
    for (int i = 0; i <= 4; i++) {
        char text[REPORT_TIME];
        draw_text(p.cr, p.x + p.width * i / 4, p.y + p.height + 18, 0.5, 11,
                  report_time(exp(p.from + (p.to - p.from) * i / 4), text));
    }
}

/* A series over time: the mean of each interval's values, or, by rate, their sum a second. */
static void draw_series(panel p, series *s, bool rate, const char *title)
{
    if (s->count > POINTS)
        series_widen(s, s->width_ns * (int64_t)((s->count + POINTS - 1) / POINTS));
    double scale = rate ? 1e9 / (double)s->width_ns : 1;
    p.from = (double)s->from_ns;
    p.to = (double)s->from_ns + (double)s->width_ns * (double)s->count;
    for (size_t i = 0; i < s->count; i++)
        if (s->intervals[i].count > 0)
            p.most = MAX(p.most, s->intervals[i].sum * scale / (rate ? 1 : (double)s->intervals[i].count));
    p.most = round_up(p.most);
    draw_frame(&p, title);
    draw_heights(&p, rate ? write_quantity : write_time);
    draw_times_of_day(&p);
    set_color(p.cr, rate ? 0x2c8c5a : 0xc0562b, 0.85);
    for (size_t i = 0; i < s->count; i++) {
        const series_interval *interval = &s->intervals[i];
        double x = x_of(&p, (double)s->from_ns + ((double)i + 0.5) * (double)s->width_ns);
        if (interval->count == 0)
            continue;
        double y = y_of(&p, interval->sum * scale / (rate ? 1 : (double)interval->count));
        if (rate)
            cairo_rectangle(p.cr, x - p.width / (double)s->count / 2, y, MAX(1, p.width / (double)s->count - 0.5),
                            p.y + p.height - y);
        else
            cairo_arc(p.cr, x, y, 2.5, 0, 2 * G_PI);
        cairo_fill(p.cr);
    }
}

static panel panel_at(cairo_t *cr, double left, double width, int row)
{
    return (panel){.cr = cr,
                   .x = left + MARGIN_X,
                   .y = 30 + row * PANEL + MARGIN_TOP,
                   .width = width - MARGIN_X - 30,
                   .height = PANEL - MARGIN_TOP - MARGIN_BOTTOM - 20};
}

static void draw(cairo_t *cr, measure *const *measures, int count, throughput *t)
{
    set_color(cr, 0xffffff, 1);
    cairo_paint(cr);
    cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    for (int i = 0; i < count; i++) {
        char *ids = g_strjoinv(", ", measures[i]->definition->ids);
        char *title = g_strdup_printf("Lifelines by %s: %" G_GUINT64_FORMAT, ids, measures[i]->objects);
        set_color(cr, 0x000000, 1);
        draw_text(cr, 24, 30 + i * PANEL + 12, 0, 16, title);
        if (measures[i]->objects > 0) {
            draw_histogram(panel_at(cr, 0, WIDTH / 2.0, i), &measures[i]->totals);
            draw_series(panel_at(cr, WIDTH / 2.0, WIDTH / 2.0, i), &measures[i]->totals_series, false,
                        "how long they took, by when they ended (means)");
        }
        g_free(title);
        g_free(ids);
    }
    if (t != NULL && t->records > 0) {
        char *title = g_strdup_printf("%s a second", t->field);
        draw_series(panel_at(cr, 0, WIDTH, count), &t->series, true, title);
        g_free(title);
    }
}

bool plot_knows(const char *path)
{
    return g_str_has_suffix(path, ".png") || g_str_has_suffix(path, ".svg");
}

static cairo_status_t keep_bytes(void *user, const unsigned char *data, unsigned size)
{
    g_byte_array_append(user, data, size);
    return CAIRO_STATUS_SUCCESS;
}

/* NULL, or what went wrong. */
static const char *draw_into(GByteArray *bytes, bool png, measure *const *measures, int count, throughput *t)
{
    int height = (count + (t != NULL)) * PANEL + 40;
    cairo_surface_t *surface = png ? cairo_image_surface_create(CAIRO_FORMAT_RGB24, WIDTH, height)
                                   : cairo_svg_surface_create_for_stream(keep_bytes, bytes, WIDTH, height);
    cairo_t *cr = cairo_create(surface);
    draw(cr, measures, count, t);
    cairo_status_t status = cairo_status(cr);
    cairo_destroy(cr);
    if (status == CAIRO_STATUS_SUCCESS && png)
        status = cairo_surface_write_to_png_stream(surface, keep_bytes, bytes);
    cairo_surface_finish(surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    return status == CAIRO_STATUS_SUCCESS ? NULL : cairo_status_to_string(status);
}

bool plot_write(const char *path, measure *const *measures, int count, throughput *t)
{
    GByteArray *bytes = g_byte_array_new();
    const char *why = draw_into(bytes, g_str_has_suffix(path, ".png"), measures, count, t);
    if (why != NULL)
        program_error("draw %s: %s", path, why);
    output *out = why == NULL ? output_open(path) : NULL;
    bool good = out != NULL && output_write(out, (const char *)bytes->data, bytes->len);
    if (out != NULL)
        good = output_close(out, good) && good;
    g_byte_array_free(bytes, TRUE);
    return good;
}
