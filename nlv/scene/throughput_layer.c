/*
 * Throughput: draws the sum of a field per second, over all hosts. If a record contains a duration, spreads the value
 * evenly over the record's span. Otherwise, adds the value at the record's time. Examines all records of the event
 * whose spans may be visible.
 */
#include "config.h"

#include "scene/layers.h"

#include "scene/axis.h"

#include <math.h>
#include <string.h>

enum { COLUMNS_MAX = 300 };

typedef struct throughput_sums {
    const layer_context *c;
    const list *durations; /* NULL: no record has a duration */
    int columns;
    double column_ns;
    double sums[COLUMNS_MAX];
    double whole[COLUMNS_MAX + 1]; /* for spans that cover whole columns: the value of a column minus the value of the
                                      previous column */
} throughput_sums;

/* Returns the duration of a record's span in nanoseconds, or 0 if the record has no duration. The duration is negative
 * if the span begins with the record. */
static double duration_of(const throughput_sums *t, uint32_t record)
{
    size_t at = t->durations != NULL ? list_find(t->durations, record, t->durations->start) : 0;
    bool found = t->durations != NULL && at < t->durations->count && list_at(t->durations, at) == record;
    return found ? list_value(t->durations, at) : 0;
}

static void add_part(throughput_sums *t, int column, double value)
{
    if (column >= 0 && column < t->columns)
        t->sums[column] += value;
}

/* Spreads a value over a span. Times are relative to the start of the view. */
static void spread(throughput_sums *t, double from_ns, double to_ns, double value)
{
    double first = floor(from_ns / t->column_ns), last = floor(to_ns / t->column_ns);
    if (last < 0 || first >= t->columns)
        return;
    if (first == last || to_ns <= from_ns) {
        add_part(t, (int)last, value);
        return;
    }
    double each = value * t->column_ns / (to_ns - from_ns);
    if (first >= 0)
        add_part(t, (int)first, each * (first + 1 - from_ns / t->column_ns));
    if (last < t->columns)
        add_part(t, (int)last, each * (to_ns / t->column_ns - last));
    t->whole[(int)MAX(first + 1, 0)] += each;
    t->whole[(int)MIN(last, t->columns)] -= each;
}

static void add_host(throughput_sums *t, const list *values)
{
    const layer_context *c = t->c;
    double longest_ns = t->durations != NULL ? fabs((double)list_max(t->durations)) : 0;
    for (size_t i = values->count > values->start ? values->start : values->count; i < values->count; i++) {
        uint32_t record = list_at(values, i);
        double at_ns = (double)(store_time(c->store, record) - c->view->from_ns), long_ns = duration_of(t, record);
        if (at_ns - longest_ns > t->column_ns * t->columns)
            break;
        spread(t, MIN(at_ns, at_ns - long_ns), MAX(at_ns, at_ns - long_ns), list_value(values, i));
    }
}

void throughput_layer_draw(const layer_context *c, const pane *p)
{
    const drawing_loadline *definition = g_ptr_array_index(model_drawing(c->model)->loadlines, p->index);
    const loadline_lists *l = &c->store->loadlines[p->index];
    throughput_sums t = {.c = c, .columns = (int)MIN(COLUMNS_MAX, (c->layout->right - c->layout->left) / 2)};
    t.column_ns = (double)(c->view->to_ns - c->view->from_ns) / t.columns;
    t.durations = store_durations(c->store, names_find(c->store->names.events, definition->event));
    for (size_t i = 0; i < l->count; i++)
        add_host(&t, l->hosts[i].list);
    double covering = 0, high = 0;
    for (int i = 0; i < t.columns; i++) {
        covering += t.whole[i];
        t.sums[i] = (t.sums[i] + MAX(covering, 0)) / (t.column_ns / 1e9);
        high = MAX(high, t.sums[i]);
    }
    double step = axis_step(MAX(high / 2, 1e-9));
    high = MAX(ceil(high / step), 1) * step;
    loadlines_layer_axis(c, p, 0, high, l->count > 0);
    double width = (c->layout->right - c->layout->left) / t.columns;
    palette_set(c->cr, palette_series(0, c->view->dark), 0.7);
    for (int i = 0; i < t.columns; i++) {
        double height = t.sums[i] / high * (p->bottom - p->top);
        cairo_rectangle(c->cr, c->layout->left + i * width, p->bottom - height, width, height);
    }
    cairo_fill(c->cr);
}
