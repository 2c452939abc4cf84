#include "config.h"

#include "scene/density.h"

#include <glib.h>
#include <math.h>
#include <string.h>

typedef struct cell {
    float total; /* of weights; below 0: a line on top */
    float lead;  /* by how much the colour is ahead of the others (Boyer and Moore's vote) */
} cell;

struct density {
    double left, top, scale;
    int width, height;
    cell *cells;
    uint8_t *colors;
    uint64_t work;
};

density *density_new(double left, double top, double right, double bottom, double scale)
{
    density *d = g_new0(density, 1);
    d->left = floor(left * scale) / scale;
    d->top = floor(top * scale) / scale;
    d->scale = scale;
    d->width = (int)CLAMP(ceil((right - d->left) * scale), 1, 32000);
    d->height = (int)CLAMP(ceil((bottom - d->top) * scale), 1, 32000);
    d->cells = g_new0(cell, (size_t)d->width * d->height);
    d->colors = g_new(uint8_t, (size_t)d->width * d->height);
    return d;
}

void density_free(density *d)
{
    g_free(d->cells);
    g_free(d->colors);
    g_free(d);
}

static inline void add(density *d, int x, int y, float weight, uint8_t color, bool on_top)
{
    if ((unsigned)x >= (unsigned)d->width || (unsigned)y >= (unsigned)d->height)
        return;
    size_t at = (size_t)y * d->width + x;
    cell *c = &d->cells[at];
    if (on_top) {
        c->total = c->total < 0 ? MIN(c->total, -weight) : -weight;
        d->colors[at] = color;
        return;
    }
    if (c->total < 0)
        return;
    c->total += weight;
    if (d->colors[at] == color || c->lead <= 0) {
        d->colors[at] = color;
        c->lead += weight;
    } else {
        c->lead -= weight;
        if (c->lead < 0) {
            d->colors[at] = color;
            c->lead = -c->lead;
        }
    }
}

/* Along y, a pixel a row, parted between the two that are nearest. */
static void draw_steep(density *d, double x0, double y0, double x1, double y1, float weight, uint8_t color, bool top)
{
    int from = (int)floor(MIN(y0, y1)), to = (int)ceil(MAX(y0, y1));
    from = MAX(from, 0);
    to = MIN(to, d->height);
    double slope = y1 != y0 ? (x1 - x0) / (y1 - y0) : 0;
    double x = x0 + (from + 0.5 - y0) * slope - 0.5;
    d->work += to > from ? (uint64_t)(to - from) : 0;
    if (fabs(slope) < 0.02) { /* as good as upright: in one column */
        int column = (int)floor((x0 + x1) / 2);
        for (int y = from; y < to; y++)
            add(d, column, y, weight, color, top);
        return;
    }
    for (int y = from; y < to; y++, x += slope) {
        double left = floor(x);
        float share = (float)(x - left);
        add(d, (int)left, y, weight * (1 - share), color, top);
        add(d, (int)left + 1, y, weight * share, color, top);
    }
}

static void draw_flat(density *d, double x0, double y0, double x1, double y1, float weight, uint8_t color, bool top)
{
    if (x0 > x1) {
        double swap = x0;
        x0 = x1;
        x1 = swap;
        swap = y0;
        y0 = y1;
        y1 = swap;
    }
    int from = (int)MAX(floor(x0), 0), to = (int)MIN(ceil(x1), (double)d->width);
    double slope = x1 > x0 ? (y1 - y0) / (x1 - x0) : 0;
    double y = y0 + (from + 0.5 - x0) * slope - 0.5;
    d->work += to > from ? (uint64_t)(to - from) : 0;
    for (int x = from; x < to; x++, y += slope) {
        double above = floor(y);
        float share = (float)(y - above);
        add(d, x, (int)above, weight * (1 - share), color, top);
        add(d, x, (int)above + 1, weight * share, color, top);
    }
}

static void draw(density *d, double x0, double y0, double x1, double y1, float weight, unsigned color, bool top)
{
    x0 = (x0 - d->left) * d->scale;
    x1 = (x1 - d->left) * d->scale;
    y0 = (y0 - d->top) * d->scale;
    y1 = (y1 - d->top) * d->scale;
    if (MAX(x0, x1) < 0 || MIN(x0, x1) > d->width)
        return;
    if (fabs(x1 - x0) > fabs(y1 - y0))
        draw_flat(d, x0, y0, x1, y1, weight, (uint8_t)color, top);
    else
        draw_steep(d, x0, y0, x1, y1, weight, (uint8_t)color, top);
}

void density_line(density *d, double x0, double y0, double x1, double y1, float weight, unsigned color)
{
    draw(d, x0, y0, x1, y1, weight, color, false);
}

void density_line_on_top(density *d, double x0, double y0, double x1, double y1, unsigned color)
{
    draw(d, x0, y0, x1, y1, 1, color, true);
}

uint64_t density_work(const density *d)
{
    return d->work;
}

/* How strongly a pixel with so many lines shows: the first one by half, the others by the logarithm. */
static float strength_of(float total, float log_most)
{
    if (total < 0)
        return MIN(-total, 1) * 0.95f;
    if (total < 1)
        return total * 0.5f;
    return 0.5f + 0.45f * MIN(logf(total) / log_most, 1);
}

static uint32_t pixel_of(color c, float strength)
{
    unsigned alpha = (unsigned)(strength * 255 + 0.5f);
    unsigned red = (unsigned)(c.red * alpha + 0.5), green = (unsigned)(c.green * alpha + 0.5),
             blue = (unsigned)(c.blue * alpha + 0.5);
    return alpha << 24 | red << 16 | green << 8 | blue;
}

void density_paint(density *d, cairo_t *cr, bool dark, float most)
{
    size_t count = (size_t)d->width * d->height;
    if (most <= 0)
        for (size_t i = 0; i < count; i++)
            most = MAX(most, d->cells[i].total);
    float log_most = logf(MAX(most, 16));
    color colors[256];
    for (unsigned i = 0; i < 256; i++)
        colors[i] = i == DENSITY_ALARM   ? palette_alarm()
                    : i == DENSITY_MIXED ? palette_mixed(dark)
                                         : palette_series(i, dark);
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, d->width, d->height);
    unsigned char *data = cairo_image_surface_get_data(surface);
    int stride = cairo_image_surface_get_stride(surface);
    if (data != NULL) {
        for (int y = 0; y < d->height; y++) {
            uint32_t *row = (uint32_t *)(void *)(data + (size_t)y * stride);
            const cell *cells = d->cells + (size_t)y * d->width;
            const uint8_t *own = d->colors + (size_t)y * d->width;
            for (int x = 0; x < d->width; x++)
                if (cells[x].total != 0)
                    row[x] = pixel_of(colors[own[x]], strength_of(cells[x].total, log_most));
        }
        cairo_surface_mark_dirty(surface);
        cairo_save(cr);
        cairo_translate(cr, d->left, d->top);
        cairo_scale(cr, 1 / d->scale, 1 / d->scale);
        cairo_set_source_surface(cr, surface, 0, 0);
        cairo_paint(cr);
        cairo_restore(cr);
    }
    cairo_surface_destroy(surface);
}
