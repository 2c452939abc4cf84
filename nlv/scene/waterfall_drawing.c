#include "config.h"

#include "scene/waterfall_drawing.h"

#include "base/text.h"
#include "scene/axis.h"
#include "scene/palette.h"
#include "scene/text.h"

#include <math.h>

enum {
    ROW = 20,
    HEAD = 22,
    BAR = 10,
    INDENT = 10,
    MARGIN = 6,
    LABELS_MIN = 120,
    NUMBERS = 170,
    NUMBERS_NARROW = 135, /* width of the numbers in a narrow drawing */
    NARROW = 450,
    PLACE_MIN = 60, /* minimum width of the name of a span's host and program */
    DIFFERENCE = 72,
    RECORD = 16,
    TIME = 66
};

/* The share of the drawing's width that the names of spans get. */
static const double labels_share = 0.34;

/* A span is much slower than its median if its duration is at least `much` times the median. */
static const double much = 2;

typedef struct drawing_area {
    const waterfall *w;
    cairo_t *cr;
    bool dark;
    double left, right; /* edges of the bars' area */
    double width;       /* width of the drawing in units */
    int64_t length_ns;  /* time in nanoseconds that the width of the bars' area represents */
    double visible_top, visible_bottom;
} drawing_area;

/* Returns the y coordinate at which the records begin: below the rows, or below the reason why there are no rows. */
static double records_top(const waterfall *w)
{
    return HEAD + ROW * (MAX(1, w->rows->len) + (w->left_out > 0));
}

double waterfall_height(const waterfall *w)
{
    return records_top(w) + (w->records->len > 0 ? ROW + RECORD * (w->records->len + (w->more > 0)) : 0);
}

static double x_of(const drawing_area *a, int64_t time_ns)
{
    const double share = a->length_ns > 0 ? (double)time_ns / (double)a->length_ns : 0;
    return a->left + CLAMP(share, 0, 1) * (a->right - a->left);
}

static double y_of(unsigned row)
{
    return HEAD + ROW * (row + 0.5);
}

static const waterfall_row *row_at(const waterfall *w, unsigned i)
{
    return &g_array_index(w->rows, waterfall_row, i);
}

/* Returns whether a row with its middle at y is visible. The module draws text only in visible rows, because text takes
 * most of the time of drawing. */
static bool is_visible(const drawing_area *a, double y)
{
    return y + ROW > a->visible_top && y - ROW < a->visible_bottom;
}

static void draw_axis(const drawing_area *a)
{
    enum { LABEL_WIDTH = 90 };
    const double bottom = HEAD + ROW * a->w->rows->len;
    const int64_t ticks = (int64_t)MAX(1, floor((a->right - a->left) / LABEL_WIDTH)),
                  step_ns = axis_time_step_ns(MAX(a->length_ns / ticks, 1));
    for (int64_t i = 0; i <= a->length_ns / step_ns; i++) {
        const int64_t at_ns = i * step_ns;
        char label[32];
        const double x = floor(x_of(a, at_ns)) + 0.5;
        palette_set(a->cr, palette_grid(a->dark), 1);
        cairo_set_line_width(a->cr, 1);
        cairo_move_to(a->cr, x, HEAD - 4);
        cairo_line_to(a->cr, x, bottom);
        cairo_stroke(a->cr);
        axis_span_label((double)at_ns, label);
        text_draw(a->cr, label, TEXT_SMALL, palette_muted(a->dark), at_ns > 0 ? TEXT_CENTER : TEXT_LEFT, x, HEAD / 2.0,
                  0);
    }
}

/* Draws the bar of a wait: an outline, which is dashed if the edge is inferred. */
static void draw_wait(const drawing_area *a, const waterfall_row *r, double y)
{
    static const double dashes[] = {4, 3};
    const double x0 = x_of(a, r->begin_ns), x1 = x_of(a, r->end_ns);
    cairo_save(a->cr);
    palette_set(a->cr, palette_muted(a->dark), 0.15);
    cairo_rectangle(a->cr, x0 + 0.5, y - BAR / 2.0 + 0.5, MAX(1, x1 - x0 - 1), BAR - 1);
    cairo_fill_preserve(a->cr);
    palette_set(a->cr, palette_muted(a->dark), 1);
    cairo_set_line_width(a->cr, 1);
    if (r->inferred)
        cairo_set_dash(a->cr, dashes, G_N_ELEMENTS(dashes), 0);
    cairo_stroke(a->cr);
    cairo_restore(a->cr);
}

static void fill_bar(const drawing_area *a, const waterfall_row *s, double y, int64_t from_ns, int64_t to_ns,
                     double alpha)
{
    const double x0 = x_of(a, from_ns), x1 = x_of(a, to_ns);
    palette_set(a->cr, s->failed ? palette_error(a->dark) : palette_series(s->color, a->dark), alpha);
    cairo_rectangle(a->cr, x0, y - BAR / 2.0, MAX(1, x1 - x0), BAR);
    cairo_fill(a->cr);
}

/* Fills the parts of a span's bar in which no child runs and the span does not wait. The children and waits follow the
 * span, in the order of their starts. */
static void fill_own_time(const drawing_area *a, unsigned row)
{
    const waterfall_row *s = row_at(a->w, row);
    int64_t own_ns = s->begin_ns;
    for (unsigned i = row + 1; i < a->w->rows->len && row_at(a->w, i)->depth > s->depth; i++) {
        const waterfall_row *child = row_at(a->w, i);
        if (child->parent != row)
            continue;
        if (child->begin_ns > own_ns)
            fill_bar(a, s, y_of(row), own_ns, MIN(child->begin_ns, s->end_ns), 1);
        own_ns = MAX(own_ns, child->end_ns);
    }
    if (own_ns < s->end_ns)
        fill_bar(a, s, y_of(row), own_ns, s->end_ns, 1);
}

static bool is_much_slower(const waterfall_row *s)
{
    return s->median_ns >= 0 && (double)(s->end_ns - s->begin_ns) > much * s->median_ns;
}

static void write_numbers(const waterfall_row *s, char text[80])
{
    char took[32];
    axis_span_label((double)(s->end_ns - s->begin_ns), took);
    g_snprintf(text, 80, "%s%s%s", took, s->failed ? ", failed" : "", s->incomplete ? ", incomplete" : "");
}

/* Draws the difference from the median, and a tick where a much slower span would have ended. */
static void draw_difference(const drawing_area *a, const waterfall_row *s, double y)
{
    char length[32], text[40];
    const double by_ns = (double)(s->end_ns - s->begin_ns) - s->median_ns;
    const color c = is_much_slower(s) ? palette_slow(a->dark) : palette_muted(a->dark);
    if (s->median_ns < 0)
        return;
    axis_span_label(fabs(by_ns), length);
    g_snprintf(text, sizeof text, "%s%s", by_ns < 0 ? "\342\210\222" : "+", length);
    text_draw(a->cr, text, TEXT_SMALL, c, TEXT_RIGHT, a->width - MARGIN, y, DIFFERENCE - MARGIN);
    if (!is_much_slower(s))
        return;
    const double x = floor(x_of(a, s->begin_ns + (int64_t)s->median_ns)) + 0.5;
    palette_set(a->cr, palette_text(a->dark), 1);
    cairo_set_line_width(a->cr, 1);
    cairo_move_to(a->cr, x, y - BAR / 2.0 - 2);
    cairo_line_to(a->cr, x, y + BAR / 2.0 + 2);
    cairo_stroke(a->cr);
}

/* Draws the duration beside the bar, in front of the critical path. */
static void draw_numbers(const drawing_area *a, unsigned row)
{
    const waterfall_row *s = row_at(a->w, row);
    char numbers[80];
    write_numbers(s, numbers);
    const color c = s->failed           ? palette_error(a->dark)
                    : is_much_slower(s) ? palette_slow(a->dark)
                                        : palette_text(a->dark);
    const double y = y_of(row), height = text_height(TEXT_SMALL), after = x_of(a, s->end_ns) + MARGIN,
                 max = MAX(a->width - DIFFERENCE - after, 20);
    palette_set(a->cr, palette_background(a->dark), 0.85);
    cairo_rectangle(a->cr, after - 1, y - height / 2, MIN(text_width(a->cr, numbers, TEXT_SMALL), max) + 2, height);
    cairo_fill(a->cr);
    text_draw(a->cr, numbers, TEXT_SMALL, c, TEXT_START, after, y, max);
}

static void draw_labels(const drawing_area *a, unsigned row)
{
    const waterfall_row *s = row_at(a->w, row);
    const double y = y_of(row), indent = MARGIN + INDENT * MIN(s->depth, 12);
    const double name =
        text_draw(a->cr, s->name, TEXT_NORMAL, s->is_wait ? palette_muted(a->dark) : palette_text(a->dark), TEXT_LEFT,
                  indent, y, a->left - indent - MARGIN);
    const double left = a->left - indent - name - 3 * MARGIN;
    if (left > PLACE_MIN)
        text_draw(a->cr, s->place, TEXT_SMALL, palette_muted(a->dark), TEXT_LEFT, indent + name + MARGIN, y, left);
}

static void draw_row(const drawing_area *a, unsigned row)
{
    const waterfall_row *s = row_at(a->w, row);
    const double y = y_of(row);
    if (is_visible(a, y)) {
        draw_labels(a, row);
        if (s->is_wait) {
            draw_wait(a, s, y);
        } else {
            fill_bar(a, s, y, s->begin_ns, s->end_ns, 0.3);
            fill_own_time(a, row);
        }
        draw_difference(a, s, y);
    }
    if (!s->is_wait && s->parent < row) { /* a line from the parent, which starts the span */
        const double x = floor(x_of(a, s->begin_ns)) + 0.5;
        palette_set(a->cr, palette_muted(a->dark), 0.7);
        cairo_set_line_width(a->cr, 1);
        cairo_move_to(a->cr, x, y_of(s->parent) + BAR / 2.0);
        cairo_line_to(a->cr, x, y - BAR / 2.0);
        cairo_stroke(a->cr);
    }
}

/* Draws the critical path as lines under the bars of the running spans and of the waits, and connects these lines. */
static void draw_path(const drawing_area *a)
{
    double x = 0, y = 0;
    bool begun = false;
    cairo_set_line_width(a->cr, 2);
    palette_set(a->cr, palette_text(a->dark), 1);
    for (guint i = 0; i < a->w->path->len; i++) {
        const waterfall_step *step = &g_array_index(a->w->path, waterfall_step, i);
        if (step->row == G_MAXUINT)
            continue;
        const double own_y = y_of(step->row) + BAR / 2.0 + 2;
        if (begun) {
            cairo_move_to(a->cr, x, y);
            cairo_line_to(a->cr, x_of(a, step->from_ns), own_y);
        }
        x = x_of(a, step->to_ns);
        y = own_y;
        begun = true;
        cairo_move_to(a->cr, x_of(a, step->from_ns), y);
        cairo_line_to(a->cr, x, y);
    }
    cairo_stroke(a->cr);
}

static void draw_records(const drawing_area *a)
{
    const waterfall *w = a->w;
    const color plain = palette_text(a->dark), muted = palette_muted(a->dark);
    double y = records_top(w) + ROW / 2.0;
    char text[80];
    if (w->records->len == 0)
        return;
    g_snprintf(text, sizeof text, "%u record%s", w->records->len + w->more, nl_plural(w->records->len + w->more));
    text_draw(a->cr, text, TEXT_SMALL, muted, TEXT_LEFT, MARGIN, y, a->width);
    y += (ROW + RECORD) / 2.0;
    for (guint i = 0; i < w->records->len; i++, y += RECORD) {
        if (!is_visible(a, y))
            continue;
        const waterfall_record *r = &g_array_index(w->records, waterfall_record, i);
        axis_span_label((double)r->time_ns, text);
        text_draw(a->cr, text, TEXT_SMALL, muted, TEXT_RIGHT, TIME, y, TIME);
        const double event = TIME + 2 * MARGIN;
        double end = event + MARGIN;
        end += text_draw(a->cr, r->event, TEXT_SMALL, plain, TEXT_LEFT, event, y, a->width - event);
        if (a->left - end > 5 * INDENT)
            text_draw(a->cr, r->place, TEXT_SMALL, muted, TEXT_LEFT, end, y, a->left - end - MARGIN);
        const double fields = MAX(a->left, end);
        if (a->width - fields > 3 * INDENT)
            text_draw(a->cr, r->fields, TEXT_SMALL, muted, TEXT_LEFT, fields, y, a->width - fields - MARGIN);
    }
    if (w->more > 0) {
        g_snprintf(text, sizeof text, "and %u later record%s", w->more, nl_plural(w->more));
        text_draw(a->cr, text, TEXT_SMALL, muted, TEXT_LEFT, TIME + 2 * MARGIN, y, a->width);
    }
}

void waterfall_draw(const waterfall *w, cairo_t *cr, double width, int64_t length_ns, bool dark)
{
    drawing_area a = {.w = w, .cr = cr, .dark = dark, .width = width, .length_ns = MAX(length_ns, w->length_ns)};
    a.left = floor(MAX(LABELS_MIN, width * labels_share));
    a.right = MAX(a.left + 40, width - (width < NARROW ? NUMBERS_NARROW : NUMBERS));
    double left, right;
    cairo_clip_extents(cr, &left, &a.visible_top, &right, &a.visible_bottom);
    palette_set(cr, palette_background(dark), 1);
    cairo_paint(cr);
    draw_records(&a);
    if (w->rows->len == 0) {
        text_draw_paragraph(cr, w->reason != NULL ? w->reason : "Select a request.", TEXT_NORMAL, palette_muted(dark),
                            MARGIN, MARGIN, width - 2 * MARGIN);
        return;
    }
    text_draw(cr, "from median", TEXT_SMALL, palette_muted(dark), TEXT_RIGHT, width - MARGIN, HEAD / 2.0, DIFFERENCE);
    draw_axis(&a);
    for (unsigned i = 0; i < w->rows->len; i++)
        draw_row(&a, i);
    draw_path(&a);
    for (unsigned i = 0; i < w->rows->len; i++)
        if (is_visible(&a, y_of(i)))
            draw_numbers(&a, i);
    if (w->left_out > 0) {
        char text[80];
        g_snprintf(text, sizeof text, "%u more row%s not drawn; nlstat --slowest prints all rows", w->left_out,
                   w->left_out == 1 ? " is" : "s are");
        text_draw(cr, text, TEXT_NORMAL, palette_muted(dark), TEXT_LEFT, MARGIN, y_of(w->rows->len),
                  width - 2 * MARGIN);
    }
}

unsigned waterfall_find(const waterfall *w, double y)
{
    const double row = floor((y - HEAD) / ROW);
    return row >= 0 && row < w->rows->len ? (unsigned)row : G_MAXUINT;
}

char *waterfall_describe(const waterfall *w, unsigned row)
{
    const waterfall_row *s = row_at(w, row);
    char took[32], begin[32], path[32], median[32], certainty[64] = "";
    if (s->inferred)
        g_snprintf(certainty, sizeof certainty, "; inferred: this order holds in %.0f %% of the requests",
                   100 * s->certainty);
    axis_span_label((double)(s->end_ns - s->begin_ns), took);
    axis_span_label((double)s->begin_ns, begin);
    axis_span_label((double)s->path_ns, path);
    axis_span_label(s->median_ns, median);
    return g_strdup_printf("%s, %s: %s, from %s; %s on the critical path%s%s%s%s%s", s->name, s->place, took, begin,
                           path, s->median_ns >= 0 ? "; median " : "", s->median_ns >= 0 ? median : "",
                           s->failed ? "; failed" : "", s->incomplete ? "; start or end is missing" : "", certainty);
}
