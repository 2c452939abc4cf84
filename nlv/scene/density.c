#include "config.h"

#include "scene/density.h"

#include "scene/beside.h"

#include <glib.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

struct density {
    double left, top, scale;
    int width, height, pen; /* `pen` is the width of a line in pixels */
    /* Arrays of pixels. The pixels of a column are adjacent, because most lines are steep. */
    float *totals;  /* sum of the lines' weights on each pixel; negative: a line on top */
    int32_t *votes; /* votes of each pixel (see COLOR_BITS), in the same allocation as the totals; undefined where the
                       total is 0 */
    uint64_t work;
    density *whole;           /* the area that contains this band; NULL: the picture is not a band */
    int band_first, band_end; /* rows in which the caller may draw lines */
    int first_row, end_row;   /* rows that contain lines */
    float single;             /* strength of a pixel with a single line, 0 to 1 */
};

density *density_new(double left, double top, double right, double bottom, double scale)
{
    density *d = g_new0(density, 1);
    d->left = floor(left * scale) / scale;
    d->top = floor(top * scale) / scale;
    d->scale = scale;
    d->width = (int)CLAMP(ceil((right - d->left) * scale), 1, 32000);
    d->height = (int)CLAMP(ceil((bottom - d->top) * scale), 1, 32000);
    d->first_row = d->band_end = d->height;
    d->pen = 1;
    d->single = 0.5f;
    /* use one allocation, because the system would release and clear two smaller allocations in every frame */
    size_t pixels = (size_t)d->width * d->height;
    d->totals = g_malloc_n(pixels, sizeof *d->totals + sizeof *d->votes);
    memset(d->totals, 0, pixels * sizeof *d->totals);
    d->votes = (void *)(d->totals + pixels);
    return d;
}

void density_set_line_width(density *d, double width)
{
    d->pen = (int)CLAMP(lround(width * d->scale), 1, 8);
}

void density_free(density *d)
{
    if (d->whole == NULL)
        g_free(d->totals);
    g_free(d);
}

density *density_band(density *whole, double top, double bottom)
{
    density *d = g_memdup2(whole, sizeof *whole);
    d->whole = whole;
    d->band_first = (int)CLAMP(ceil((top - d->top) * d->scale), 0, d->height);
    d->band_end = (int)CLAMP(ceil((bottom - d->top) * d->scale), d->band_first, d->height);
    d->first_row = d->height;
    d->end_row = 0;
    d->work = 0;
    return d;
}

void density_join(density *band)
{
    density *d = band->whole;
    d->first_row = MIN(d->first_row, MAX(band->first_row, band->band_first));
    d->end_row = MAX(d->end_row, MIN(band->end_row, band->band_end));
    d->work += band->work;
    density_free(band);
}

/*
 * The lowest byte of a vote is a pixel's color. The other bytes are the lead of this color over the other colors, as a
 * float (weighted version of Boyer and Moore, MJRTY, 1991). vote_four processes four adjacent pixels at once, because
 * drawing spends most of its time there. In a vector, a true comparison sets all bits of the element.
 */
enum { COLOR_BITS = 0xff, HALF = 0x80, SIGN_BIT = INT32_MIN };
typedef float four_floats __attribute__((vector_size(16), aligned(4)));
typedef int32_t four_ints __attribute__((vector_size(16), aligned(4)));

static inline void vote_four(float *totals, int32_t *votes, float weight, uint8_t color)
{
    four_floats total = *(four_floats *)totals;
    four_ints vote = *(four_ints *)votes & (total != 0), open = total >= 0;
    four_ints against = (vote & COLOR_BITS) != color;
    four_floats ahead = (four_floats)((vote & ~COLOR_BITS) ^ (against & SIGN_BIT)) + weight;
    four_ints wins = ahead > 0;
    four_ints margin = (((four_ints)ahead & ~SIGN_BIT) + HALF) & ~COLOR_BITS;
    four_ints next = margin | (wins & color) | (~wins & vote & COLOR_BITS);
    *(four_floats *)totals = total + (four_floats)((four_ints)(weight - (four_floats){0}) & open);
    *(four_ints *)votes = (next & open) | (vote & ~open);
}

/* Like vote_four, but for one pixel. */
static inline void vote_one(float *total, int32_t *vote, float weight, uint8_t color)
{
    if (*total < 0)
        return;
    int32_t before = *total > 0 ? *vote : 0, own = before & COLOR_BITS, bits = before & ~COLOR_BITS;
    float lead;
    memcpy(&lead, &bits, sizeof lead);
    float ahead = (own == color ? lead : -lead) + weight, margin = fabsf(ahead);
    memcpy(&bits, &margin, sizeof bits);
    *vote = ((bits + HALF) & ~COLOR_BITS) | (ahead > 0 ? color : own);
    *total += weight;
}

static inline void density_add(density *d, int x, int y, float weight, uint8_t color, bool on_top)
{
    if ((unsigned)x >= (unsigned)d->width || y < d->band_first || y >= d->band_end)
        return;
    size_t at = (size_t)x * d->height + y;
    if (!on_top) {
        vote_one(&d->totals[at], &d->votes[at], weight, color);
        return;
    }
    d->totals[at] = MIN(d->totals[at], -weight);
    d->votes[at] = color;
}

/*
 * Adds a line to the rows [from, to) of a column. The rows must be within the area.
 */
static void draw_upright(density *d, int column, int from, int to, float weight, uint8_t color, bool on_top)
{
    if (column < 0 || column >= d->width || from >= to)
        return;
    size_t at = (size_t)column * d->height + from, end = at + (size_t)(to - from);
    if (on_top) {
        for (; at < end; at++) {
            d->totals[at] = -1;
            d->votes[at] = color;
        }
        return;
    }
    for (; at + 4 <= end; at += 4)
        vote_four(&d->totals[at], &d->votes[at], weight, color);
    for (; at < end; at++)
        vote_one(&d->totals[at], &d->votes[at], weight, color);
}

/* Draws a steep line: one pixel per row, with the weight divided between the two nearest columns. */
static void draw_steep(density *d, double x0, double y0, double x1, double y1, float weight, uint8_t color, bool top)
{
    int from = (int)floor(MIN(y0, y1)), to = (int)ceil(MAX(y0, y1));
    from = MAX(from, d->band_first);
    to = MIN(to, d->band_end);
    double slope = y1 != y0 ? (x1 - x0) / (y1 - y0) : 0;
    double x = x0 + (from + 0.5 - y0) * slope - 0.5;
    d->work += to > from ? (uint64_t)(to - from) : 0;
    if (fabs(slope) < 0.02) {
        int column = (int)floor((x0 + x1) / 2) - (d->pen - 1) / 2;
        for (int i = 0; i < d->pen; i++)
            draw_upright(d, column + i, from, to, weight, color, top);
        return;
    }
    x -= (d->pen - 1) / 2.0;
    for (int y = from; y < to; y++) {
        double left = floor(x);
        float share = (float)(x - left);
        density_add(d, (int)left, y, weight * (1 - share), color, top);
        for (int i = 1; i < d->pen; i++)
            density_add(d, (int)left + i, y, weight, color, top);
        density_add(d, (int)left + d->pen, y, weight * share, color, top);
        x += slope;
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
    y -= (d->pen - 1) / 2.0;
    for (int x = from; x < to; x++) {
        double above = floor(y);
        float share = (float)(y - above);
        density_add(d, x, (int)above, weight * (1 - share), color, top);
        for (int i = 1; i < d->pen; i++)
            density_add(d, x, (int)above + i, weight, color, top);
        density_add(d, x, (int)above + d->pen, weight * share, color, top);
        y += slope;
    }
}

static void density_draw(density *d, double x0, double y0, double x1, double y1, float weight, unsigned color, bool top)
{
    x0 = (x0 - d->left) * d->scale;
    x1 = (x1 - d->left) * d->scale;
    y0 = (y0 - d->top) * d->scale;
    y1 = (y1 - d->top) * d->scale;
    if (MAX(x0, x1) < 0 || MIN(x0, x1) > d->width)
        return;
    d->first_row = MIN(d->first_row, (int)floor(MIN(y0, y1)) - d->pen);
    d->end_row = MAX(d->end_row, (int)ceil(MAX(y0, y1)) + d->pen + 1);
    if (fabs(x1 - x0) > fabs(y1 - y0))
        draw_flat(d, x0, y0, x1, y1, weight, (uint8_t)color, top);
    else
        draw_steep(d, x0, y0, x1, y1, weight, (uint8_t)color, top);
}

void density_line(density *d, double x0, double y0, double x1, double y1, float weight, unsigned color)
{
    density_draw(d, x0, y0, x1, y1, weight, color, false);
}

void density_line_on_top(density *d, double x0, double y0, double x1, double y1, unsigned color)
{
    density_draw(d, x0, y0, x1, y1, 1, color, true);
}

uint64_t density_work(const density *d)
{
    return d->work;
}

/* Returns the strength of a pixel: `single` for one line, growing with the logarithm of the number of lines. */
static float strength_of(float total, float single, float log_max)
{
    if (total < 1)
        return total * single;
    return single + (0.95f - single) * MIN(logf(total) / log_max, 1);
}

/* A table contains the strengths, because computing a logarithm for every pixel would take too long. The index in the
 * table consists of the exponent of a total, from 2^-8 to 2^32, and the first four bits of its fraction. */
enum { FRACTION_BITS = 4, FIRST_EXPONENT = -8, EXPONENTS = 40, STRENGTHS = EXPONENTS << FRACTION_BITS };

static inline unsigned density_place_of(float total)
{
    uint32_t bits;
    memcpy(&bits, &total, sizeof bits);
    int place = (int)(bits >> (23 - FRACTION_BITS)) - ((127 + FIRST_EXPONENT) << FRACTION_BITS);
    return (unsigned)CLAMP(place, 0, STRENGTHS - 1);
}

static void make_strengths(uint8_t strengths[STRENGTHS], float single, float log_max)
{
    for (unsigned i = 0; i < STRENGTHS; i++) {
        float low = ldexpf(1 + (float)(i % (1 << FRACTION_BITS)) / (1 << FRACTION_BITS),
                           (int)(i >> FRACTION_BITS) + FIRST_EXPONENT);
        strengths[i] = (uint8_t)(strength_of(low, single, log_max) * 255 + 0.5f);
    }
}

typedef struct ink {
    uint32_t red, green, blue; /* 0 to 255 */
} ink;

static inline uint32_t pixel_of(const ink *i, uint32_t alpha)
{
    uint32_t red = (i->red * alpha + 127) / 255, green = (i->green * alpha + 127) / 255,
             blue = (i->blue * alpha + 127) / 255;
    return alpha << 24 | red << 16 | green << 8 | blue;
}

static uint32_t *make_table(const ink *i, const uint8_t strengths[STRENGTHS])
{
    uint32_t *table = g_new(uint32_t, STRENGTHS);
    for (unsigned place = 0; place < STRENGTHS; place++)
        table[place] = pixel_of(i, strengths[place]);
    return table;
}

static void make_inks(ink inks[256], bool dark)
{
    for (unsigned i = 0; i < 256; i++) {
        color c = i == DENSITY_ALARM   ? palette_alarm()
                  : i == DENSITY_MIXED ? palette_mixed(dark)
                                       : palette_series(i, dark);
        inks[i] = (ink){(uint32_t)(c.red * 255 + 0.5), (uint32_t)(c.green * 255 + 0.5), (uint32_t)(c.blue * 255 + 0.5)};
    }
}

/* Finds the first and the last row with content. Returns false if all rows are empty. */
static bool find_rows(const density *d, int *first, int *end)
{
    *first = MAX(d->first_row, 0);
    *end = MIN(d->end_row, d->height);
    return *first < *end;
}

enum {
    FILLED_AT_ONCE = 16, /* number of columns in a strip, which keeps accesses to memory local */
    SHARED_MIN = 100000, /* minimum number of pixels for which a second thread helps */
};

/* A picture that two threads fill, strip by strip. */
typedef struct filling {
    const density *density;
    unsigned char *data;
    int stride, first, end;
    uint8_t strengths[STRENGTHS];
    ink inks[256];
    int strips;
    atomic_int next; /* the next strip */
} filling;

static void fill_strip(const filling *f, int left, uint32_t *tables[256])
{
    const density *d = f->density;
    int right = MIN(left + FILLED_AT_ONCE, d->width);
    for (int y = f->first; y < f->end; y++) {
        uint32_t *row = (uint32_t *)(void *)(f->data + (size_t)(y - f->first) * f->stride);
        for (int x = left; x < right; x++) {
            size_t at = (size_t)x * d->height + y;
            float total = d->totals[at];
            if (total > 0) {
                uint8_t own = d->votes[at] & COLOR_BITS;
                if (tables[own] == NULL)
                    tables[own] = make_table(&f->inks[own], f->strengths);
                row[x] = tables[own][density_place_of(total)];
            } else if (total < 0)
                row[x] = pixel_of(&f->inks[d->votes[at] & COLOR_BITS], (uint32_t)(MIN(-total, 1) * 242));
        }
    }
}

static void fill_strips(void *user)
{
    filling *f = user;
    uint32_t *tables[256] = {NULL}; /* for each color, the pixel values of each strength; created on first use */
    for (int strip; (strip = f->next++) < f->strips;)
        fill_strip(f, strip * FILLED_AT_ONCE, tables);
    for (unsigned i = 0; i < 256; i++)
        g_free(tables[i]);
}

static void fill(const density *d, cairo_surface_t *surface, int first, int end, bool dark, float max)
{
    unsigned char *data = cairo_image_surface_get_data(surface);
    if (data == NULL)
        return;
    filling f = {.density = d,
                 .data = data,
                 .stride = cairo_image_surface_get_stride(surface),
                 .first = first,
                 .end = end,
                 .strips = (d->width + FILLED_AT_ONCE - 1) / FILLED_AT_ONCE};
    make_strengths(f.strengths, d->single, logf(MAX(max, 16)));
    make_inks(f.inks, dark);
    if ((int64_t)d->width * (end - first) >= SHARED_MIN)
        beside_run(fill_strips, &f);
    else
        fill_strips(&f);
    cairo_surface_mark_dirty(surface);
}

/* Counts the pixels of an area, four pixels at a time. */
typedef struct tally {
    four_floats max, sum;
    four_ints touched; /* number of pixels, negated */
} tally;

static void count_four(tally *t, four_floats total)
{
    four_ints is_touched = total > 0, is_more = total > t->max;
    t->max = (four_floats)(((four_ints)total & is_more) | ((four_ints)t->max & ~is_more));
    t->sum += (four_floats)((four_ints)total & is_touched);
    t->touched += is_touched;
}

/* Returns the maximum number of lines on a pixel. Sets d->single, which is larger if few lines overlap. */
static float find_max(density *d, int first, int end)
{
    tally t = {0};
    for (int x = 0; x < d->width; x++) {
        const float *column = d->totals + (size_t)x * d->height;
        int y = first;
        for (; y + 4 <= end; y += 4)
            count_four(&t, *(const four_floats *)(column + y));
        for (; y < end; y++)
            count_four(&t, (four_floats){column[y]});
    }
    float max = 0, sum = 0, touched = 0;
    for (int i = 0; i < 4; i++) {
        max = MAX(max, t.max[i]);
        sum += t.sum[i];
        touched -= (float)t.touched[i];
    }
    float mean = sum / MAX(touched, 1);
    d->single = mean < 1.5f ? 0.85f : mean < 4 ? 0.65f : 0.5f;
    return max;
}

void density_paint(density *d, cairo_t *cr, bool dark, float max)
{
    int first, end;
    if (!find_rows(d, &first, &end))
        return;
    max = max > 0 ? max : find_max(d, first, end);
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, d->width, end - first);
    fill(d, surface, first, end, dark, max);
    cairo_save(cr);
    cairo_translate(cr, d->left, d->top);
    cairo_scale(cr, 1 / d->scale, 1 / d->scale);
    cairo_set_source_surface(cr, surface, 0, first);
    cairo_pattern_set_filter(cairo_get_source(cr), CAIRO_FILTER_FAST); /* the filter affects only coarse pictures */
    cairo_paint(cr);
    cairo_restore(cr);
    cairo_surface_destroy(surface);
}
