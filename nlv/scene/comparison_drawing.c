#include "config.h"

#include "scene/comparison_drawing.h"

#include "base/text.h"
#include "requests/printable.h"
#include "scene/axis.h"
#include "scene/palette.h"
#include "scene/text.h"
#include "scene/waterfall_drawing.h"

#include <math.h>

enum { MARGIN = 12, LINE = 20, NUMBER = 82, INTERVAL = 150, BAR_MIN = 60, TABLE_ROWS_MIN = 3, WATERFALL_MIN = 120 };

typedef struct comparing_area {
    const comparison *c;
    const comparison_view *view;
    cairo_t *cr;
    double y; /* the top of the next part */
} comparing_area;

static color color_of_side(const comparing_area *a, unsigned side)
{
    return palette_series(side, a->view->dark);
}

static color plain(const comparing_area *a)
{
    return palette_text(a->view->dark);
}

static color muted(const comparing_area *a)
{
    return palette_muted(a->view->dark);
}

/* Writes a duration with three digits. */
static void write_rounded(double ns, char text[32])
{
    const double digit = ns > 0 ? pow(10, floor(log10(ns)) - 2) : 1;
    axis_span_label(digit > 1 ? round(ns / digit) * digit : ns, text);
}

static void write_difference(double ns, char text[40])
{
    char length[32];
    const bool is_zero = fabs(ns) < 0.5;
    write_rounded(is_zero ? 0 : fabs(ns), length);
    g_snprintf(text, 40, "%s%s", is_zero ? "" : ns < 0 ? "\342\210\222" : "+", length);
}

static void write_interval(const contrast *t, char text[96])
{
    char low[40], high[40];
    const double half = contrast_half_width(t, COMPARED_LEVEL), by = t->after - t->before;
    write_difference(by - half, low);
    write_difference(by + half, high);
    g_snprintf(text, 96, "%s to %s", low, high);
}

/* ---- text ---- */

static const char *const letters[COMPARED_SIDES] = {"A", "B"};

/* Returns the answer if most requests differ, but a few slow requests hide the difference of the means. */
static char *describe_most(const comparison *c)
{
    char medians[COMPARED_SIDES][32];
    for (unsigned side = 0; side < COMPARED_SIDES; side++)
        write_rounded((double)c->sides[side].median_ns, medians[side]);
    return g_strdup_printf("Most requests of B are %s: the median is %s (A: %s). The means differ by %+.1f %%, which "
                           "may be chance, because a few requests are much slower than the others.",
                           c->slower.after > c->slower.before ? "slower" : "faster", medians[1], medians[0],
                           100 * (c->total.after - c->total.before) / c->total.before);
}

char *comparison_describe(const comparison *c)
{
    char before[32], after[32];
    const contrast *t = &c->total;
    if (c->reason != NULL)
        return g_strdup(c->reason);
    write_rounded(t->before, before);
    write_rounded(t->after, after);
    if (!t->tested || t->before <= 0)
        return g_strdup_printf("Cannot tell: there are too few requests, or they have no duration. A request of B "
                               "takes %s; a request of A takes %s.",
                               after, before);
    const double base = t->before / 100, by = t->after - t->before, half = contrast_half_width(t, COMPARED_LEVEL);
    if (!c->changed && c->most_changed)
        return describe_most(c);
    if (!c->changed)
        return g_strdup_printf("No difference found: a request of A takes %s, and a request of B %s. A difference of "
                               "%.1f %% would be found in 19 of 20 cases.",
                               before, after, contrast_detectable(t, COMPARED_LEVEL) / base);
    return g_strdup_printf(
        "B is %s: a request takes %s (A: %s), which differs by %+.1f %% (95 %% confidence: %+.1f to %+.1f %%).",
        by > 0 ? "slower" : "faster", after, before, by / base, (by - half) / base, (by + half) / base);
}

/* Appends sentences about the requests of a side that the comparison omits or contains only in part. */
static void describe_left_out(const comparison_side *s, const char *letter, GString *text)
{
    if (s->undrawn > 0)
        g_string_append_printf(
            text, " %s leaves out %" G_GUINT64_FORMAT " request%s, because the drawing shows no event of %s.", letter,
            s->undrawn, nl_plural(s->undrawn), s->undrawn == 1 ? "it" : "them");
    if (s->overlapping > 0)
        g_string_append_printf(text,
                               " %s leaves out %" G_GUINT64_FORMAT
                               " span%s, because spans without an ID overlap in one thread or program.",
                               letter, s->overlapping, nl_plural(s->overlapping));
    if (s->cut > 0)
        g_string_append_printf(text,
                               " %s contains only a part of %" G_GUINT64_FORMAT
                               " request%s, because of the memory limit (--max-memory).",
                               letter, s->cut, nl_plural(s->cut));
}

char *comparison_describe_left_out(const comparison *c)
{
    GString *text = g_string_new(NULL);
    if (c->filter != NULL)
        g_string_append_printf(text, " Only requests that match the filter are compared: %s.", c->filter);
    for (unsigned side = 0; side < COMPARED_SIDES; side++)
        describe_left_out(&c->sides[side], letters[side], text);
    char *valid = text->len > 0 ? printable(text->str + 1) : NULL;
    g_string_free(text, TRUE);
    return valid;
}

char *comparison_describe_row(const comparison *c, guint row)
{
    char before[32], after[32], by[40], interval[96];
    const compared_row *r = comparison_row(c, row);
    write_rounded(r->time.before, before);
    write_rounded(r->time.after, after);
    write_difference(r->time.after - r->time.before, by);
    write_interval(&r->time, interval);
    char *text =
        g_strdup_printf("%s: A %s, B %s, difference %s%s%s%s", r->name, before, after, by, r->time.tested ? ", " : "",
                        r->time.tested ? interval : "", r->changed ? "" : ", may be chance");
    char *valid = printable(text);
    g_free(text);
    return valid;
}

static void draw_head(comparing_area *a)
{
    double x = MARGIN;
    a->y = MARGIN;
    for (unsigned side = 0; side < COMPARED_SIDES; side++) {
        const comparison_side *s = &a->c->sides[side];
        char failed[48] = "", all[48] = "";
        const uint64_t all_count = s->requests + s->unselected + s->undrawn;
        if (s->failed > 0)
            g_snprintf(failed, sizeof failed, ", %" G_GUINT64_FORMAT " failed", s->failed);
        if (all_count > s->requests)
            g_snprintf(all, sizeof all, " of %" G_GUINT64_FORMAT, all_count);
        char *name = printable(s->name);
        char *text = g_strdup_printf("%s: %s (%" G_GUINT64_FORMAT "%s request%s%s)", letters[side], name, s->requests,
                                     all, nl_plural(all_count), failed);
        const double max = (a->view->width - 2 * MARGIN) / COMPARED_SIDES - 30;
        palette_set(a->cr, color_of_side(a, side), 1);
        cairo_rectangle(a->cr, x, a->y + LINE / 2.0 - 5, 12, 10);
        cairo_fill(a->cr);
        x += 18;
        x += text_draw(a->cr, text, TEXT_NORMAL, plain(a), TEXT_LEFT, x, a->y + LINE / 2.0, max) + 24;
        g_free(text);
        g_free(name);
    }
    a->y += LINE + 4;
    char *answer = comparison_describe(a->c), *valid = printable(answer);
    const double width = a->view->width - 2 * MARGIN;
    text_draw_paragraph(a->cr, valid, TEXT_TITLE, plain(a), MARGIN, a->y, width);
    a->y += text_paragraph_height(a->cr, valid, TEXT_TITLE, width) + 8;
    char *left_out = comparison_describe_left_out(a->c);
    if (left_out != NULL) {
        text_draw_paragraph(a->cr, left_out, TEXT_NORMAL, plain(a), MARGIN, a->y, width);
        a->y += text_paragraph_height(a->cr, left_out, TEXT_NORMAL, width) + 8;
    }
    g_free(left_out);
    g_free(answer);
    g_free(valid);
}

/* ---- histograms ---- */

/* The scale of durations of both sides. */
typedef struct bin_scale {
    unsigned low, high; /* bins: [low, high) */
    double max;         /* largest share of a side's requests in a bin */
    double left, right, top, bottom;
} bin_scale;

static double share_of(const comparison_side *s, unsigned bin)
{
    return s->requests > 0 ? (double)s->bins[bin] / (double)s->requests : 0;
}

static double bin_x(const bin_scale *b, double bin)
{
    return b->left + (bin - b->low) / (b->high - b->low) * (b->right - b->left);
}

static double bin_of_ns(double ns)
{
    const unsigned row = heat_row((int64_t)CLAMP(ns, 0, 9e18));
    return row + (ns - heat_row_ns(row)) / (heat_row_ns(row + 1) - heat_row_ns(row));
}

static bin_scale scale_of(const comparison *c)
{
    bin_scale b = {.low = HEAT_ROWS};
    for (unsigned bin = 0; bin < HEAT_ROWS; bin++)
        for (unsigned side = 0; side < COMPARED_SIDES; side++) {
            if (c->sides[side].bins[bin] == 0)
                continue;
            b.low = MIN(b.low, bin);
            b.high = bin + 1;
            b.max = fmax(b.max, share_of(&c->sides[side], bin));
        }
    b.low -= MIN(b.low, 2);
    b.high = MIN(b.high + 2, HEAT_ROWS);
    return b;
}

static void draw_bin_axis(const comparing_area *a, const bin_scale *b)
{
    static const double steps[] = {1, 2, 5};
    double free = b->left;
    for (double unit_ns = 1; unit_ns < 1e18; unit_ns *= 10)
        for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
            const double x = floor(bin_x(b, bin_of_ns(steps[i] * unit_ns))) + 0.5;
            char label[32];
            axis_span_label(steps[i] * unit_ns, label);
            const double half = text_width(a->cr, label, TEXT_SMALL) / 2;
            if (x - half < free || x + half > b->right)
                continue;
            palette_set(a->cr, palette_grid(a->view->dark), 1);
            cairo_set_line_width(a->cr, 1);
            cairo_move_to(a->cr, x, b->top);
            cairo_line_to(a->cr, x, b->bottom);
            cairo_stroke(a->cr);
            text_draw(a->cr, label, TEXT_SMALL, muted(a), TEXT_CENTER, x, b->bottom + LINE / 2.0, 0);
            free = x + half + 12;
        }
}

/* Draws the steps of a side's histogram. A single request is visible as a bar of two units. */
static void draw_bins(const comparing_area *a, const bin_scale *b, unsigned side)
{
    const comparison_side *s = &a->c->sides[side];
    cairo_new_path(a->cr);
    cairo_move_to(a->cr, b->left, b->bottom);
    for (unsigned bin = b->low; bin < b->high; bin++) {
        const double height = share_of(s, bin) / b->max * (b->bottom - b->top - 4),
                     y = b->bottom - (s->bins[bin] > 0 ? fmax(height, 2) : 0);
        cairo_line_to(a->cr, bin_x(b, bin), y);
        cairo_line_to(a->cr, bin_x(b, bin + 1), y);
    }
    cairo_line_to(a->cr, b->right, b->bottom);
    palette_set(a->cr, color_of_side(a, side), 0.25);
    cairo_fill_preserve(a->cr);
    palette_set(a->cr, color_of_side(a, side), 1);
    cairo_set_line_width(a->cr, 1.5);
    cairo_stroke(a->cr);
}

static void draw_quantiles(const comparing_area *a, const bin_scale *b, unsigned side)
{
    const comparison_side *s = &a->c->sides[side];
    const struct {
        int64_t ns;
        const char *name;
    } quantiles[] = {{s->median_ns, "p50"}, {s->p99_ns, "p99"}};
    for (size_t i = 0; i < G_N_ELEMENTS(quantiles); i++) {
        char duration[32], label[64];
        const double ns = (double)quantiles[i].ns, x = floor(bin_x(b, bin_of_ns(ns))) + 0.5;
        write_rounded(ns, duration);
        g_snprintf(label, sizeof label, "%s %s %s", side == 0 ? "A" : "B", quantiles[i].name, duration);
        const double dashes[] = {4, 3}, width = text_width(a->cr, label, TEXT_SMALL),
                     y = b->top + (0.5 + (double)(COMPARED_SIDES * i + side)) * (LINE - 5);
        palette_set(a->cr, color_of_side(a, side), 1);
        cairo_set_line_width(a->cr, 1.5);
        cairo_set_dash(a->cr, dashes, 2, 0);
        cairo_move_to(a->cr, x, b->top);
        cairo_line_to(a->cr, x, b->bottom);
        cairo_stroke(a->cr);
        cairo_set_dash(a->cr, NULL, 0, 0);
        const bool is_right = x + 4 + width < b->right;
        text_draw(a->cr, label, TEXT_SMALL, color_of_side(a, side), is_right ? TEXT_LEFT : TEXT_RIGHT,
                  x + (is_right ? 4 : -4), y, 0);
    }
}

static void draw_histograms(comparing_area *a, double height)
{
    bin_scale b = scale_of(a->c);
    b.left = MARGIN;
    b.right = a->view->width - MARGIN;
    b.top = a->y + LINE;
    b.bottom = a->y + height - LINE - 6;
    text_draw(a->cr, "Share of the requests by duration (logarithmic)", TEXT_SMALL, muted(a), TEXT_LEFT, MARGIN,
              a->y + LINE / 2.0, 0);
    palette_set(a->cr, palette_pane(a->view->dark), 1);
    cairo_rectangle(a->cr, b.left, b.top, b.right - b.left, b.bottom - b.top);
    cairo_fill(a->cr);
    draw_bin_axis(a, &b);
    for (unsigned side = 0; side < COMPARED_SIDES; side++)
        draw_bins(a, &b, side);
    for (unsigned side = 0; side < COMPARED_SIDES; side++)
        draw_quantiles(a, &b, side);
    a->y += height;
}

/* ---- the table ---- */

/* The right edges of the table's columns, and the edges of the bars. */
typedef struct table_columns {
    double name, a, b, by, interval, bar_left, bar_right;
} table_columns;

static table_columns columns_of(const comparing_area *a)
{
    table_columns t = {.bar_right = a->view->width - MARGIN};
    const double numbers = 3 * NUMBER + INTERVAL, bar = fmax(BAR_MIN, (a->view->width - numbers) * 0.25);
    t.bar_left = t.bar_right - bar;
    t.interval = t.bar_left - MARGIN;
    t.by = t.interval - INTERVAL;
    t.b = t.by - NUMBER;
    t.a = t.b - NUMBER;
    t.name = t.a - NUMBER;
    return t;
}

/* Draws a row's difference as a bar from the middle, with its confidence interval. */
static void draw_difference_bar(const comparing_area *a, const table_columns *t, const compared_row *r, double max,
                                double y)
{
    const double middle = floor((t->bar_left + t->bar_right) / 2), half_width = (t->bar_right - t->bar_left) / 2,
                 by = r->time.after - r->time.before, scale = max > 0 ? half_width / max : 0;
    palette_set(a->cr, r->changed ? color_of_side(a, by > 0) : muted(a), r->changed ? 0.9 : 0.4);
    cairo_rectangle(a->cr, middle, y - 5, by * scale, 10);
    cairo_fill(a->cr);
    palette_set(a->cr, plain(a), 0.8);
    cairo_set_line_width(a->cr, 1);
    if (r->time.tested) {
        const double half = contrast_half_width(&r->time, COMPARED_LEVEL);
        cairo_move_to(a->cr, middle + CLAMP((by - half) * scale, -half_width, half_width), floor(y) + 0.5);
        cairo_line_to(a->cr, middle + CLAMP((by + half) * scale, -half_width, half_width), floor(y) + 0.5);
    }
    cairo_move_to(a->cr, middle + 0.5, y - LINE / 2.0);
    cairo_line_to(a->cr, middle + 0.5, y + LINE / 2.0);
    cairo_stroke(a->cr);
}

static void draw_compared_row(const comparing_area *a, const table_columns *t, const compared_row *r, double max)
{
    char text[96];
    const color ink = r->changed ? plain(a) : muted(a);
    const double y = a->y + LINE / 2.0;
    char *name = printable(r->name), *program = printable(r->program);
    const double width = text_draw(a->cr, name, TEXT_NORMAL, ink, TEXT_LEFT, MARGIN, y, t->name - 2 * MARGIN);
    if (*program != '\0' && t->name - width - 4 * MARGIN > 40)
        text_draw(a->cr, program, TEXT_SMALL, muted(a), TEXT_LEFT, MARGIN + width + 8, y, t->name - width - 3 * MARGIN);
    g_free(name);
    g_free(program);
    write_rounded(r->time.before, text);
    text_draw(a->cr, text, TEXT_NORMAL, ink, TEXT_RIGHT, t->a, y, NUMBER - 4);
    write_rounded(r->time.after, text);
    text_draw(a->cr, text, TEXT_NORMAL, ink, TEXT_RIGHT, t->b, y, NUMBER - 4);
    write_difference(r->time.after - r->time.before, text);
    text_draw(a->cr, text, TEXT_NORMAL, ink, TEXT_RIGHT, t->by, y, NUMBER - 4);
    if (r->time.tested)
        write_interval(&r->time, text);
    text_draw(a->cr, r->time.tested ? text : "too few", TEXT_SMALL, ink, TEXT_RIGHT, t->interval, y, INTERVAL - 4);
    draw_difference_bar(a, t, r, max, y);
}

static void draw_table(comparing_area *a, double height)
{
    const table_columns t = columns_of(a);
    const double y = a->y + LINE / 2.0;
    const guint count = a->c->rows->len, fit = (guint)fmax(height / LINE - 1, 1);
    const guint shown = count <= fit ? count : fit - 1;
    double max = 0;
    text_draw(a->cr, "Time on the critical path, per request", TEXT_SMALL, muted(a), TEXT_LEFT, MARGIN, y,
              t.name - 2 * MARGIN);
    text_draw(a->cr, "A", TEXT_SMALL, color_of_side(a, 0), TEXT_RIGHT, t.a, y, 0);
    text_draw(a->cr, "B", TEXT_SMALL, color_of_side(a, 1), TEXT_RIGHT, t.b, y, 0);
    text_draw(a->cr, "B \342\210\222 A", TEXT_SMALL, muted(a), TEXT_RIGHT, t.by, y, 0);
    text_draw(a->cr, "95 % confidence", TEXT_SMALL, muted(a), TEXT_RIGHT, t.interval, y, INTERVAL);
    text_draw(a->cr, "B faster | slower", TEXT_SMALL, muted(a), TEXT_CENTER, (t.bar_left + t.bar_right) / 2, y, 0);
    a->y += LINE;
    for (guint i = 0; i < shown; i++) {
        const compared_row *r = comparison_row(a->c, i);
        max = fmax(max, fabs(r->time.after - r->time.before));
    }
    for (guint i = 0; i < shown; i++, a->y += LINE)
        draw_compared_row(a, &t, comparison_row(a->c, i), max);
    if (shown < count) {
        char text[64];
        g_snprintf(text, sizeof text, "and %u row%s with smaller differences", count - shown, nl_plural(count - shown));
        text_draw(a->cr, text, TEXT_SMALL, muted(a), TEXT_LEFT, MARGIN, a->y + LINE / 2.0, 0);
        a->y += LINE;
    }
}

/* ---- one request beside another ---- */

waterfall *comparison_read_typical(const model *m, const comparison *c, unsigned side)
{
    const compared_request *r = &c->sides[side].typical;
    if (c->sides[side].sample->len == 0)
        return NULL;
    return waterfall_read(m, r->lifeline, store_find_place(model_store(m), r->step_ns, r->step_place));
}

static void draw_requests(comparing_area *a)
{
    const double width = floor(a->view->width / COMPARED_SIDES), height = a->view->height - a->y - LINE;
    int64_t length_ns = 0;
    for (unsigned side = 0; side < COMPARED_SIDES; side++)
        if (a->view->requests[side] != NULL)
            length_ns = MAX(length_ns, a->view->requests[side]->length_ns);
    for (unsigned side = 0; side < COMPARED_SIDES && height > 0; side++) {
        const waterfall *w = a->view->requests[side];
        char text[80], duration[32];
        if (w == NULL)
            continue;
        axis_span_label((double)a->c->sides[side].typical.duration_ns, duration);
        g_snprintf(text, sizeof text, "%s: a request of median duration, %s", side == 0 ? "A" : "B", duration);
        text_draw(a->cr, text, TEXT_SMALL, color_of_side(a, side), TEXT_LEFT, side * width + MARGIN, a->y + LINE / 2.0,
                  width - 2 * MARGIN);
        cairo_save(a->cr);
        cairo_rectangle(a->cr, side * width, a->y + LINE, width, height);
        cairo_clip(a->cr);
        cairo_translate(a->cr, side * width + MARGIN / 2.0, a->y + LINE);
        waterfall_draw(w, a->cr, width - MARGIN, length_ns, a->view->dark);
        cairo_restore(a->cr);
    }
}

void comparison_draw(const comparison *c, const comparison_view *view, cairo_t *cr)
{
    comparing_area a = {.c = c, .view = view, .cr = cr};
    palette_set(cr, palette_background(view->dark), 1);
    cairo_paint(cr);
    draw_head(&a);
    if (c->reason != NULL)
        return;
    const double rest = view->height - a.y, waterfalls = fmin(fmax(WATERFALL_MIN, rest * 0.35), 260),
                 histograms = CLAMP(rest * 0.3, 120, 240);
    draw_histograms(&a, histograms);
    draw_table(&a, fmax(rest - waterfalls - histograms - 8, (TABLE_ROWS_MIN + 1) * LINE));
    a.y += 8;
    draw_requests(&a);
}
