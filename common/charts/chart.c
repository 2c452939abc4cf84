#include "config.h"

#include "charts/chart.h"

#include "charts/cairo_library.h"
#include "program/glib_error.h"
#include "requests/printable.h"
#include "base/time_internal.h"

#include <glib.h>
#include <netlogger.h>

#include <math.h>
#include <string.h>

enum { BARS = 80 };

NL_LIBRARY_DEFINE_SHARED(cairo, CAIRO_LIBRARY, CAIRO_FUNCTIONS);

void chart_color(cairo_t *cr, unsigned rgb, double alpha)
{
    cairo.set_source_rgba(cr, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0, alpha);
}

void chart_text(cairo_t *cr, double x, double y, double align, double size, const char *text)
{
    cairo_text_extents_t extents;
    char *valid = printable(text);
    cairo.set_font_size(cr, size);
    cairo.text_extents(cr, valid, &extents);
    cairo.move_to(cr, x - align * extents.x_advance, y);
    cairo.show_text(cr, valid);
    g_free(valid);
}

double chart_x(const chart *p, double value)
{
    return p->to > p->from ? p->x + p->width * (value - p->from) / (p->to - p->from) : p->x + p->width / 2;
}

double chart_y(const chart *p, double value)
{
    return p->y + p->height - (p->maximum > 0 ? p->height * value / p->maximum : 0);
}

double chart_round_up(double value)
{
    double power = value > 0 ? pow(10, floor(log10(value))) : 1;
    return value <= power ? power : value <= 2 * power ? 2 * power : value <= 5 * power ? 5 * power : 10 * power;
}

void chart_frame(const chart *p, const char *title)
{
    cairo_t *cr = p->cr;
    chart_color(cr, 0x222222, 1);
    chart_text(cr, p->x, p->y - 16, 0, 14, title);
    chart_color(cr, 0x999999, 1);
    cairo.set_line_width(cr, 1);
    cairo.move_to(cr, p->x - 0.5, p->y);
    cairo.line_to(cr, p->x - 0.5, p->y + p->height + 0.5);
    cairo.line_to(cr, p->x + p->width, p->y + p->height + 0.5);
    cairo.stroke(cr);
}

static const char *write_count(double value, char out[UNITS_SIZE])
{
    g_snprintf(out, UNITS_SIZE, value == floor(value) ? "%.0f" : "%.1f", value);
    return out;
}

void chart_heights(const chart *p, chart_write *write)
{
    for (int i = 0; i <= 4; i++) {
        char text[UNITS_SIZE];
        double value = p->maximum * i / 4, y = round(chart_y(p, value)) + 0.5;
        chart_color(p->cr, 0xe4e4e4, 1);
        cairo.move_to(p->cr, p->x, y);
        cairo.line_to(p->cr, p->x + p->width, y);
        if (i > 0)
            cairo.stroke(p->cr);
        cairo.new_path(p->cr);
        chart_color(p->cr, 0x555555, 1);
        chart_text(p->cr, p->x - 8, y + 4, 1, 11, write(value, text));
    }
}

void chart_times_of_day(const chart *p)
{
    enum { DAY = 10, MILLISECONDS = 23 };
    chart_color(p->cr, 0x555555, 1);
    for (int i = 0; i <= 4; i++) {
        char text[NL_TIME_TEXT_SIZE];
        nl_time_format_iso((int64_t)(p->from + (p->to - p->from) * i / 4), text);
        text[MIN(strlen(text), MILLISECONDS)] = '\0';
        chart_text(p->cr, p->x + p->width * i / 4, p->y + p->height + 18,
                   i == 0   ? 0
                   : i == 4 ? 1
                            : 0.5,
                   11, text + DAY + 1);
        text[DAY] = '\0';
        if (i == 0)
            chart_text(p->cr, p->x, p->y + p->height + 34, 0, 11, text);
    }
}

void chart_histogram(chart p, nl_distribution *d, const char *title, chart_write *write)
{
    double counts[BARS];
    int bars = BARS;
    p.from = log((double)MAX(d->minimum, 1));
    p.to = log((double)MAX(d->maximum, 1));
    if (p.to - p.from < 0.1) {
        p.from -= 0.5;
        p.to += 0.5;
    }
    if (!nl_distribution_is_exact(d)) /* a bar contains several buckets, so that no bar is empty by chance */
        bars = CLAMP((int)((p.to - p.from) / (6 * NL_DISTRIBUTION_ERROR)), 1, BARS);
    for (int i = 0; i < bars; i++) {
        double step = (p.to - p.from) / bars;
        counts[i] = (double)nl_distribution_between(d, i == 0 ? -1 : exp(p.from + i * step),
                                                    i == bars - 1 ? INFINITY : exp(p.from + (i + 1) * step));
        p.maximum = MAX(p.maximum, counts[i]);
    }
    p.maximum = chart_round_up(p.maximum);
    chart_frame(&p, title);
    chart_heights(&p, write_count);
    chart_color(p.cr, 0x2a6fbb, 1);
    for (int i = 0; i < bars; i++) {
        double y = chart_y(&p, counts[i]);
        if (counts[i] > 0)
            y = MIN(y, p.y + p.height - 1.5); /* so that a single value is visible */
        cairo.rectangle(p.cr, p.x + p.width * i / bars, y, p.width / bars - 1, p.y + p.height - y);
    }
    cairo.fill(p.cr);
    chart_color(p.cr, 0x555555, 1);
    for (int i = 0; i <= 4; i++) {
        char text[UNITS_SIZE];
        chart_text(p.cr, p.x + p.width * i / 4, p.y + p.height + 18, 0.5, 11,
                   write(exp(p.from + (p.to - p.from) * i / 4), text));
    }
}

bool chart_knows(const char *path)
{
    return g_str_has_suffix(path, ".png") || g_str_has_suffix(path, ".svg");
}

static cairo_status_t keep_bytes(void *user, const unsigned char *data, unsigned size)
{
    g_byte_array_append(user, data, size);
    return CAIRO_STATUS_SUCCESS;
}

bool chart_save(const char *path, int width, int height, void (*draw)(cairo_t *cr, void *user), void *user)
{
    if (!nl_library_load(&cairo_library))
        return false;
    bool png = g_str_has_suffix(path, ".png");
    GByteArray *bytes = g_byte_array_new();
    cairo_surface_t *surface = png ? cairo.image_surface_create(CAIRO_FORMAT_RGB24, width, height)
                                   : cairo.svg_surface_create_for_stream(keep_bytes, bytes, width, height);
    cairo_t *cr = cairo.create(surface);
    chart_color(cr, 0xffffff, 1);
    cairo.paint(cr);
    cairo.select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    draw(cr, user);
    cairo_status_t status = cairo.status(cr);
    cairo.destroy(cr);
    if (status == CAIRO_STATUS_SUCCESS && png)
        status = cairo.surface_write_to_png_stream(surface, keep_bytes, bytes);
    cairo.surface_finish(surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo.surface_status(surface);
    cairo.surface_destroy(surface);
    GError *error = NULL;
    bool ok = status == CAIRO_STATUS_SUCCESS
                  ? g_file_set_contents(path, (const char *)bytes->data, bytes->len, &error) || glib_error_take(error)
                  : nl_error_false(NL_ERROR_SYSTEM, "%s", cairo.status_to_string(status));
    g_byte_array_free(bytes, TRUE);
    return ok;
}
