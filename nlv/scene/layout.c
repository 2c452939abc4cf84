#include "config.h"

#include "scene/layout.h"

#include "model/checks.h"
#include "scene/layers.h"
#include "scene/text.h"

#include <math.h>
#include <string.h>

enum {
    HISTOGRAM_PLOT_MIN = 400,
    HISTOGRAM_GAP = 10,
    STRIPS_TALL = 40,     /* with more strips, a pane does not become higher */
    STRIP_READABLE = 5,   /* minimum height of a strip whose colors a reader can compare with its neighbors */
    STRIPS_READABLE = 12, /* with more strips, a strip may show several hosts */
    COLLAPSED_GAP = 2,
    ROW_MIN = 11,        /* minimum height of a row with a label, if the panes can scroll */
    CURVES_MIN = 44,     /* minimum height of curves, if the panes can scroll */
    OVERVIEW_FROM = 180, /* minimum height of a picture with an overview */
    TITLE_FROM = 150,    /* minimum height of a picture with a title */
};

static const double margin = 14, label_gap = 8;

/* Returns whether a loadline has a strip for each host. A loadline of a rate has one sum over all hosts. */
static bool has_strips(const model *m, guint loadline)
{
    const drawing_loadline *l = g_ptr_array_index(model_drawing(m)->loadlines, loadline);
    return !l->rate && store_has_strips(model_store(m), loadline);
}

/* Returns the longest name of a host of a loadline. */
static const char *longest_host(const store *s, size_t loadline)
{
    const char *longest = "";
    for (size_t i = 0; i < s->loadlines[loadline].count; i++) {
        const char *name = names_text(s->names.hosts, s->loadlines[loadline].hosts[i].host);
        if (strlen(name) > strlen(longest))
            longest = name;
    }
    return longest;
}

/* Returns the width of the labels at the left: the width of the widest label, but at most 30 % of the picture. */
static double label_width(const model *m, const scene_view *view, cairo_t *cr)
{
    const drawing *d = model_drawing(m);
    double max = 56;
    for (guint i = 0; i < d->lifelines->len; i++) {
        const drawing_lifeline *l = g_ptr_array_index(d->lifelines, i);
        for (char **event = l->events; *event != NULL; event++)
            max = MAX(max, text_width(cr, *event, TEXT_NORMAL));
    }
    for (guint i = 0; i < d->points->len; i++)
        max = MAX(max, text_width(cr, ((drawing_point *)g_ptr_array_index(d->points, i))->name, TEXT_NORMAL));
    for (guint i = 0; i < d->loadlines->len; i++) {
        if (has_strips(m, i)) {
            max = MAX(max, text_width(cr, longest_host(model_store(m), i), TEXT_SMALL));
            continue;
        }
        char *name = loadlines_layer_name(g_ptr_array_index(d->loadlines, i));
        max = MAX(max, text_width(cr, name, TEXT_NORMAL) + LOADLINE_NUMBERS);
        g_free(name);
    }
    if (view->shows_threads)
        max = MAX(max, threads_layer_label_width(m, cr));
    return MIN(max, view->width * 0.3);
}

/*
 * Returns the distance between two panes, which must have space for the numbers of both axes. `height` is the total
 * height of all panes.
 */
static double pane_gap(double height)
{
    return CLAMP(height / 30, 10, 18);
}

/* Returns the relative height of a pane. `height` is the total height of all panes. In a low picture, the other panes
 * get a smaller share, so that the rows of the lifelines are high enough. */
static double weight(const pane *p, double height)
{
    if (p->is_collapsed)
        return 0;
    const double others = CLAMP(height / 600, 0.7, 1);
    switch (p->kind) {
    case PANE_LIFELINES:
        return 60 + 34.0 * p->rows;
    case PANE_THREADS:
        return p->is_pinned ? 0 : 100; /* the pane of pinned threads is as high as its rows */
    case PANE_POINTS:
        return others * (12 + 20.0 * p->rows);
    default: /* strips for hosts, or curves */
        return others * (64 + (p->rows > 1 ? 6.0 * MIN(p->rows, STRIPS_TALL) : 0));
    }
}

/* Returns whether the view shows at least half of the log, and so many records that lifelines are illegible. */
static bool is_dense(const layout *l, const model *m, const scene_view *view)
{
    enum { RECORDS_PER_UNIT = 20 };
    const store *s = model_store(m);
    const double shown = (double)MIN(view->to_ns, l->whole_to_ns) - (double)MAX(view->from_ns, l->whole_from_ns),
                 records = (double)store_find_time(s, view->to_ns) - (double)store_find_time(s, view->from_ns);
    return 2 * shown >= (double)l->whole_to_ns - (double)l->whole_from_ns &&
           records >= RECORDS_PER_UNIT * (l->right - l->left);
}

/*
 * Places the overview, a strip at the bottom, if the picture is high enough. One of these conditions must also be true:
 * the view requests the overview, a part of the log is not visible, or there are requests but no lifelines. A heat map
 * is higher than a strip of densities, and the histogram of durations may be beside the heat map. If the lines fill the
 * panes, the panes do not show single requests, so the heat map gets a large part of the height.
 */
static void place_overview(layout *l, const model *m, const scene_view *view, bool is_part)
{
    const request_list *requests = model_requests(m);
    const bool has_requests = requests != NULL && requests->heat.count > 0,
               is_only_heat = has_requests && model_drawing(m)->lifelines->len == 0,
               has_overview = (view->overview || is_part || is_only_heat) && view->height >= OVERVIEW_FROM,
               is_main = !view->shows_threads && (is_only_heat || (has_requests && is_dense(l, m, view)));
    l->has_heat = has_overview && has_requests;
    const double height = !l->has_heat ? 30
                          : is_main    ? CLAMP(view->height * 0.4, 40, 400)
                                       : CLAMP(view->height * 0.18, 40, 130);
    l->overview_top = l->overview_bottom = l->caption_y - text_height(TEXT_SMALL) / 2 - 6;
    if (has_overview)
        l->overview_top -= height;
    const double plot = l->right - l->left;
    l->overview_right = l->histogram_left = l->right;
    if (l->has_heat && view->histogram && plot >= HISTOGRAM_PLOT_MIN) {
        l->histogram_left = floor(l->right - CLAMP(plot * 0.13, 70, 150));
        l->overview_right = l->histogram_left - HISTOGRAM_GAP;
    }
}

static bool list_has_records(const list *l, uint32_t from, uint32_t to)
{
    size_t at = l->count > l->start ? list_find(l, from, l->start) : l->count;
    return at < l->count && list_at(l, at) < to;
}

static bool has_records(const model *m, const scene_view *view, const pane *p)
{
    const store *s = model_store(m);
    uint32_t from = store_find_time(s, view->from_ns), to = store_find_time(s, view->to_ns);
    bool any = false;
    if (p->kind == PANE_LIFELINES) {
        const unsigned layer = s->spec->lifelines[p->index].layer;
        for (uint32_t i = from; i < to && !any; i++)
            any = spec_step_of(s->spec, store_event(s, i), layer).lifeline == p->index;
    } else if (p->kind == PANE_POINTS) {
        for (unsigned i = 0; i < p->rows && i < s->point_count && !any; i++)
            any = list_has_records(&s->points[i], from, to);
    } else {
        for (size_t i = 0; i < s->loadlines[p->index].count && !any; i++)
            any = list_has_records(s->loadlines[p->index].hosts[i].list, from, to);
    }
    return any;
}

static uint32_t key_of(const drawing *d, const pane *p)
{
    if (p->kind == PANE_LIFELINES)
        return track_key("lifeline", ((const drawing_lifeline *)g_ptr_array_index(d->lifelines, p->index))->name);
    if (p->kind == PANE_LOADLINE)
        return track_key("measurement", ((const drawing_loadline *)g_ptr_array_index(d->loadlines, p->index))->name);
    return track_key("points", "");
}

static void add_pane(layout *l, pane p)
{
    if (l->pane_count < LAYOUT_PANES)
        l->panes[l->pane_count++] = p;
}

/* Adds the panes of the drawing. If `pinned` is true, adds only the pinned panes; otherwise, adds the others. */
static void add_panes(layout *l, const model *m, const scene_view *view, bool is_part, bool pinned)
{
    const drawing *d = model_drawing(m);
    const guint points = d->points->len > 0, count = d->lifelines->len + points + d->loadlines->len;
    for (guint i = 0; i < count && l->pane_count < LAYOUT_PANES; i++) {
        pane p = {.kind = PANE_LOADLINE, .index = i - d->lifelines->len - points, .rows = 1};
        if (i < d->lifelines->len) {
            const drawing_lifeline *lifeline = g_ptr_array_index(d->lifelines, i);
            p = (pane){.kind = PANE_LIFELINES, .index = i, .rows = g_strv_length(lifeline->events)};
        } else if (i < d->lifelines->len + points) {
            p = (pane){.kind = PANE_POINTS, .rows = d->points->len};
        } else if (has_strips(m, p.index)) {
            p.rows = (unsigned)model_store(m)->loadlines[p.index].count;
        }
        p.track = key_of(d, &p);
        p.is_collapsed = track_set_has(&view->collapsed, p.track);
        p.is_pinned = track_set_has(&view->pinned, p.track);
        if (p.is_pinned == pinned && (!view->hides_empty || !is_part || has_records(m, view, &p)))
            add_pane(l, p);
    }
}

/* Sets the time range of the whole log in `l`. Returns whether a part of the log is not visible. */
static bool find_whole(layout *l, const model *m, const scene_view *view)
{
    if (!model_time_range(m, &l->whole_from_ns, &l->whole_to_ns))
        return false;
    const bool is_part = view->from_ns > l->whole_from_ns || view->to_ns < l->whole_to_ns;
    checks_gap gap;
    l->origin_ns = l->whole_from_ns;
    if (model_find_gap(m, &gap) && view->from_ns > gap.from_ns)
        l->whole_from_ns = gap.to_ns;
    else if (model_find_gap(m, &gap) && view->to_ns < gap.to_ns)
        l->whole_to_ns = gap.from_ns;
    if (l->whole_from_ns == l->whole_to_ns)
        l->whole_to_ns++;
    return is_part;
}

/* Returns the distance between a pane and the next pane. */
static double gap_after(const layout *l, unsigned pane, double gap)
{
    return pane + 1 == l->pane_count                                        ? 0
           : l->panes[pane].is_collapsed && l->panes[pane + 1].is_collapsed ? COLLAPSED_GAP
                                                                            : gap;
}

/* Returns the minimum height of a pane if the panes can scroll. */
static double height_min(const model *m, const scene_view *view, const pane *p)
{
    if (p->is_collapsed)
        return LAYOUT_LINE;
    if (p->kind == PANE_THREADS)
        return threads_layer_height(m, view, p->is_pinned);
    if (p->kind == PANE_LOADLINE)
        return p->rows > 1 ? LAYOUT_STRIPS_HEAD + STRIP_READABLE * MIN((double)p->rows, STRIPS_READABLE) : CURVES_MIN;
    return ROW_MIN * (double)p->rows;
}

/* Returns whether the height of a pane is its minimum. */
static bool is_fixed(const pane *p)
{
    return p->is_collapsed || (p->kind == PANE_THREADS && p->is_pinned);
}

/* Sets the heights of the panes. Returns their sum, with the gaps. */
static double size_panes(layout *l, const model *m, const scene_view *view, double capacity)
{
    const double gap = pane_gap(capacity);
    double shared = capacity, weights = 0, sum = 0;
    for (unsigned i = 0; i < l->pane_count; i++) {
        weights += weight(&l->panes[i], capacity);
        shared -= gap_after(l, i, gap) + (is_fixed(&l->panes[i]) ? height_min(m, view, &l->panes[i]) : 0);
    }
    shared = MAX(shared, 1);
    for (unsigned i = 0; i < l->pane_count; i++) {
        pane *p = &l->panes[i];
        const double min = view->scrolls ? height_min(m, view, p) : 1;
        p->top = 0;
        p->bottom = is_fixed(p) ? height_min(m, view, p) : MAX(shared * weight(p, capacity) / weights, min);
        sum += p->bottom + gap_after(l, i, gap);
    }
    return sum;
}

/* Reduces the heights of the panes that are higher than their minimum, so that the sum of all heights decreases by
 * `excess` if possible. */
static void shrink_panes(layout *l, const model *m, const scene_view *view, double excess)
{
    double spare = 0;
    for (unsigned i = 0; i < l->pane_count; i++)
        spare += l->panes[i].bottom - MIN(height_min(m, view, &l->panes[i]), l->panes[i].bottom);
    const double share = spare > 0 ? MIN(excess / spare, 1) : 0;
    for (unsigned i = 0; i < l->pane_count; i++) {
        pane *p = &l->panes[i];
        p->bottom -= share * (p->bottom - MIN(height_min(m, view, p), p->bottom));
    }
}

/*
 * Divides the height among the panes. If the panes are then too low to read, and can scroll, makes them higher: the
 * pinned panes get at most half of the height, and the others scroll below them.
 */
static void place_panes(layout *l, const model *m, const scene_view *view, double top, double capacity)
{
    const double gap = pane_gap(capacity);
    const double excess = size_panes(l, m, view, capacity) - capacity;
    double at = top;
    if (excess > 0.5 && view->scrolls)
        shrink_panes(l, m, view, excess);
    l->top = top;
    l->scroll_top = top;
    l->scroll_bottom = top + capacity;
    for (unsigned i = 0; i < l->pane_count; i++) {
        pane *p = &l->panes[i];
        if (p->is_pinned)
            p->bottom = MIN(p->bottom, MAX(top + capacity / 2 - at, LAYOUT_LINE));
        p->top = at;
        p->bottom += at;
        at = p->bottom + gap_after(l, i, gap);
        if (p->is_pinned)
            l->scroll_top = MIN(at, l->scroll_bottom);
    }
    l->scroll_max = view->scrolls && at > top + capacity + 0.5 ? at - top - capacity : 0;
    l->scroll = CLAMP(view->scroll, 0, l->scroll_max);
    for (unsigned i = 0; i < l->pane_count; i++) {
        if (l->panes[i].is_pinned)
            continue;
        l->panes[i].top -= l->scroll;
        l->panes[i].bottom -= l->scroll;
    }
}

bool layout_visible(const layout *l, const pane *p, double *top, double *bottom)
{
    *top = p->is_pinned ? p->top : MAX(p->top, l->scroll_top);
    *bottom = p->is_pinned ? p->bottom : MIN(p->bottom, l->scroll_bottom);
    return *bottom > *top;
}

static bool is_open_strips(const pane *p)
{
    return p->kind == PANE_LOADLINE && p->rows > 1 && !p->is_collapsed;
}

/*
 * If strips are too low to read, or not all tracks are visible, collapses the last loadline with strips that the user
 * has not expanded. Always leaves one loadline with strips. Returns false if there is no loadline to collapse.
 */
static bool collapse_one(layout *l, const scene_view *view)
{
    pane *last = NULL;
    unsigned open = 0;
    bool is_low = l->scroll_max > 0;
    for (unsigned i = 0; i < l->pane_count && view->collapses; i++) {
        pane *p = &l->panes[i];
        if (!is_open_strips(p))
            continue;
        open++;
        is_low =
            is_low || p->bottom - p->top < LAYOUT_STRIPS_HEAD + STRIP_READABLE * MIN((double)p->rows, STRIPS_READABLE);
        last = track_set_has(&view->expanded, p->track) || p->is_pinned ? last : p;
    }
    if (!is_low || open < 2 || last == NULL)
        return false;
    last->is_collapsed = true;
    return true;
}

layout layout_make(const model *m, const scene_view *view, cairo_t *cr)
{
    layout l = {.left = margin + label_width(m, view, cr) + label_gap, .right = view->width - margin - 6};
    if (l.right < l.left + 10)
        l.right = l.left + 10;
    const bool is_part = find_whole(&l, m, view);
    add_panes(&l, m, view, is_part, true);
    if (view->shows_threads) {
        if (threads_layer_height(m, view, true) > 0)
            add_pane(&l, (pane){.kind = PANE_THREADS, .rows = 1, .is_pinned = true});
        add_pane(&l, (pane){.kind = PANE_THREADS, .rows = 1});
    } else {
        add_panes(&l, m, view, is_part, false);
    }
    l.has_title = view->height >= TITLE_FROM;
    double top = l.has_title ? margin + text_height(TEXT_TITLE) + 4 : margin / 2;
    l.legend_y = top + text_height(TEXT_NORMAL) / 2;
    top += text_height(TEXT_NORMAL) + 10;
    double caption_height =
        view->caption == NULL ? 0 : text_paragraph_height(cr, view->caption, TEXT_NORMAL, l.right - l.left) + 6;
    l.caption_text_y = view->height - margin / 2 - caption_height;
    l.caption_y = l.caption_text_y - text_height(TEXT_SMALL) / 2 - (caption_height > 0 ? 6 : 0);
    place_overview(&l, m, view, is_part);
    l.axis_y = l.overview_top - 6 - 18;
    const double capacity = MAX(l.axis_y - 6 - top, 10);
    do
        place_panes(&l, m, view, top, capacity);
    while (collapse_one(&l, view));
    return l;
}

double layout_x(const layout *l, const scene_view *view, int64_t time_ns)
{
    double share = ((double)time_ns - (double)view->from_ns) / ((double)view->to_ns - (double)view->from_ns);
    /* use integers, which are exact, unless the difference of distant times overflows */
    int64_t offset;
    if (!__builtin_sub_overflow(time_ns, view->from_ns, &offset))
        share = (double)offset / (double)(view->to_ns - view->from_ns);
    share = share < -2 ? -2 : share > 3 ? 3 : share;
    return l->left + share * (l->right - l->left);
}

static int64_t time_at(int64_t from_ns, int64_t to_ns, double share)
{
    int64_t sum, offset = (int64_t)CLAMP(share * ((double)to_ns - (double)from_ns), -9e18, 9e18);
    if (__builtin_add_overflow(from_ns, offset, &sum))
        return offset < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

int64_t layout_time(const layout *l, const scene_view *view, double x)
{
    return time_at(view->from_ns, view->to_ns, (x - l->left) / (l->right - l->left));
}

double layout_overview_x(const layout *l, int64_t time_ns)
{
    double share = ((double)time_ns - (double)l->whole_from_ns) / ((double)l->whole_to_ns - (double)l->whole_from_ns);
    return l->left + CLAMP(share, -2, 3) * (l->overview_right - l->left);
}

int64_t layout_overview_time(const layout *l, double x)
{
    return time_at(l->whole_from_ns, l->whole_to_ns, (x - l->left) / (l->overview_right - l->left));
}

double layout_row_y(const pane *p, unsigned row)
{
    return p->bottom - (row + 0.5) * (p->bottom - p->top) / p->rows;
}
