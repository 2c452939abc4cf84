#include "config.h"

#include "scene/heat_scale.h"

#include "scene/text.h"

#include <math.h>

enum {
    ROWS_MIN = 16,
    ROWS_MARGIN = 2,
    ROWS_PER_TEN = 13,      /* number of rows for each power of ten */
    HEIGHT_WITH_COUNTS = 60 /* minimum height of a strip with space for the histogram's counts */
};

static const double pick_distance = 4;

bool heat_scale_has_counts(const layout *l)
{
    return l->histogram_left < l->right && l->overview_bottom - l->overview_top >= HEIGHT_WITH_COUNTS;
}

/*
 * Returns the lowest row of the scale if the lowest row with requests is `first`. If a few requests are shorter than
 * the others by more than two powers of ten, omits their rows, because the rows would leave only a part of the scale
 * for the other requests.
 */
static unsigned lowest_row(const heat_map *h, unsigned first)
{
    enum { FEW_PER_CENT = 1, COUNT_MIN = 20 };
    const uint64_t few = MAX(h->count * FEW_PER_CENT / 100, 1);
    uint64_t below = 0;
    unsigned row = first;
    for (; row < HEAT_ROWS && below + h->totals[row] <= few; row++)
        below += h->totals[row];
    return h->count >= COUNT_MIN && row > first + 2 * ROWS_PER_TEN ? row - ROWS_PER_TEN / 2 : first;
}

heat_scale heat_scale_of(const heat_map *h, const layout *l)
{
    heat_scale s = {HEAT_ROWS, 0, l->overview_top + 2, l->overview_bottom - 1, false};
    for (unsigned row = 0; row < HEAT_ROWS; row++)
        if (h->totals[row] > 0) {
            s.low = MIN(s.low, row);
            s.high = row + 1;
        }
    const unsigned first = s.low;
    s.low = lowest_row(h, first);
    const unsigned missing = s.high - s.low < ROWS_MIN ? ROWS_MIN - (s.high - s.low) : 0;
    s.low -= MIN(s.low, ROWS_MARGIN + missing / 2);
    s.is_cut = first < s.low;
    unsigned margin = ROWS_MARGIN + missing / 2;
    /* Leave space at the top, so that the histogram's counts do not cover the longest requests, which are few and
     * important. */
    if (heat_scale_has_counts(l)) {
        const double label = text_height(TEXT_SMALL);
        margin = MAX(margin, (unsigned)ceil(label * (s.high - s.low) / (s.bottom - s.top - label)));
    }
    s.high = MIN(HEAT_ROWS, s.high + margin);
    return s;
}

double heat_scale_y(const heat_scale *s, double row)
{
    return s->bottom - (row - s->low) / (s->high - s->low) * (s->bottom - s->top);
}

double heat_row_of_ns(double duration_ns)
{
    const unsigned row = heat_row((int64_t)CLAMP(duration_ns, 0, 9e18));
    return row + (duration_ns - heat_row_ns(row)) / (heat_row_ns(row + 1) - heat_row_ns(row));
}

unsigned heat_scale_slow_row(const heat_map *h)
{
    return (unsigned)CLAMP(ceil(heat_row_of_ns(heat_map_slow_ns(h))), 0, HEAT_ROWS);
}

/* Returns the row at a position in the strip. The fraction is the position within the row. */
static double row_at(const heat_scale *s, double y)
{
    return CLAMP(s->low + (s->bottom - y) / (s->bottom - s->top) * (s->high - s->low), 0, HEAT_ROWS);
}

static int64_t column_time(const heat_map *h, double column)
{
    return h->from_ns + (int64_t)CLAMP(column, 0, HEAT_COLUMNS) * h->width_ns;
}

request_choice heat_scale_area(const heat_map *h, const layout *l, double x0, double y0, double x1, double y1)
{
    const heat_scale s = heat_scale_of(h, l);
    const bool is_click = fabs(x1 - x0) < pick_distance && fabs(y1 - y0) < pick_distance;
    const double margin = is_click ? pick_distance : 0, left = MIN(x0, x1) - margin, right = MAX(x0, x1) + margin,
                 top = MIN(y0, y1) - margin, bottom = MAX(y0, y1) + margin;
    request_choice area = request_choice_all;
    if (x0 < l->histogram_left && h->width_ns > 0) {
        area.from_ns = column_time(h, floor(heat_map_column(h, layout_overview_time(l, left))));
        area.to_ns = column_time(h, floor(heat_map_column(h, layout_overview_time(l, right))) + 1);
    }
    if (top > l->overview_top)
        area.longest_ns = heat_row_ns((unsigned)ceil(row_at(&s, top)));
    if (bottom < l->overview_bottom && row_at(&s, bottom) >= s.low + 1)
        area.shortest_ns = heat_row_ns((unsigned)floor(row_at(&s, bottom)));
    return area;
}

color heat_scale_log_color(const model *m, unsigned log, bool dark)
{
    const request_summary *first = &model_requests(m)->logs[log].first;
    const store *s = model_store(m);
    const uint32_t record = store_find_place(s, first->step_ns, first->step_place);
    if (record == STORE_NONE || first->lifeline >= s->spec->lifeline_count)
        return palette_text(dark); /* a filter hides the record, or the record is no longer in memory */
    const uint32_t object = store_object(s, record, s->spec->lifelines[first->lifeline].layer);
    return object != STORE_NONE ? palette_series(model_object_color(m, first->lifeline, object), dark)
                                : palette_text(dark);
}
