/*
 * Threads: a row for each thread, below the name of its host. Draws nested spans in lanes, one below another, and the
 * states of the thread in a strip below them. If several spans of a lane are in one pixel, draws only the first of
 * them. If several states are in one pixel, draws the state that takes most of the time, from a sample. The cost thus
 * depends on the size of the picture.
 */
#include "config.h"

#include "scene/layers.h"

#include "base/text.h"
#include "model/threads.h"
#include "scene/axis.h"
#include "scene/text.h"

#include <math.h>
#include <string.h>

enum {
    HOST = 20,      /* height of a host's name */
    LANE = 14,      /* distance between lanes */
    BAR = 13,       /* height of a bar */
    STATES = 7,     /* height of the strip of states */
    STATES_GAP = 2, /* distance between the lanes and the strip */
    ROW_GAP = 6,    /* distance between rows */
    NAME_MIN = 26,  /* minimum width of a bar with a name */
    NAMES_MAX_DRAWN = 600,
    INDENT = 12, /* distance of a label from the left edge of the picture */
    MORE = 16,   /* height of the text about rows that do not fit */
    LEGEND_GAP = 14,
    SAMPLE = 10, /* width of a color in the legend of states */
};

static const thread_row *row_at(const thread_list *l, guint i)
{
    return g_ptr_array_index(l->rows, i);
}

static bool has_states(const thread_row *r)
{
    return r->states != NULL;
}

static double row_height(const thread_row *r, bool is_collapsed)
{
    if (is_collapsed)
        return LANE + ROW_GAP;
    return LANE * (double)MAX(r->lane_count, r->lane_count == 0 && !has_states(r) ? 1u : 0u) +
           (has_states(r) ? STATES + (r->lane_count > 0 ? STATES_GAP : LANE - STATES) : 0) + ROW_GAP;
}

GArray *threads_layer_slots(const model *m, const scene_view *view, bool pinned)
{
    const thread_list *l = model_threads(m);
    GArray *slots = g_array_new(FALSE, FALSE, sizeof(thread_slot));
    double top = 0;
    uint32_t host = 0;
    bool is_open = true;
    guint host_slot = 0;
    for (guint i = 0; l != NULL && i < l->rows->len; i++) {
        const thread_row *r = row_at(l, i);
        if (track_set_has(&view->pinned, r->key) != pinned)
            continue;
        if (!pinned && (slots->len == 0 || r->host_key != host)) {
            host = r->host_key;
            is_open = !track_set_has(&view->collapsed, host);
            const thread_slot slot = {.top = top, .height = HOST, .row = i, .is_host = true, .is_collapsed = !is_open};
            host_slot = slots->len;
            g_array_append_val(slots, slot);
            top += HOST;
        }
        if (!pinned)
            g_array_index(slots, thread_slot, host_slot).count++;
        if (!pinned && !is_open)
            continue;
        const bool is_collapsed = track_set_has(&view->collapsed, r->key);
        const thread_slot slot = {
            .top = top, .height = row_height(r, is_collapsed), .row = i, .is_collapsed = is_collapsed};
        g_array_append_val(slots, slot);
        top += slot.height;
    }
    return slots;
}

uint32_t threads_layer_track(const model *m, const thread_slot *slot)
{
    const thread_row *r = row_at(model_threads(m), slot->row);
    return slot->is_host ? r->host_key : r->key;
}

double threads_layer_height(const model *m, const scene_view *view, bool pinned)
{
    GArray *slots = threads_layer_slots(m, view, pinned);
    double height = pinned ? 0 : LANE;
    if (slots->len > 0) {
        const thread_slot *last = &g_array_index(slots, thread_slot, slots->len - 1);
        height = last->top + last->height;
    }
    g_array_free(slots, TRUE);
    return height;
}

/* Returns the label of a thread. The caller frees it with g_free. */
static char *label_of(const thread_row *r, bool names_host)
{
    return g_strdup_printf("%s%s%s%s%s", names_host ? r->host : "", names_host && *r->host != '\0' ? " " : "",
                           r->program, *r->program != '\0' ? " " : "", r->thread);
}

double threads_layer_label_width(const model *m, cairo_t *cr)
{
    const thread_list *l = model_threads(m);
    const thread_row *longest = NULL;
    size_t length = 0;
    for (guint i = 0; l != NULL && i < l->rows->len; i++) {
        const thread_row *r = row_at(l, i);
        const size_t own = strlen(r->program) + strlen(r->thread);
        longest = longest == NULL || own > length ? r : longest;
        length = MAX(length, own);
    }
    if (longest == NULL)
        return 0;
    char *label = label_of(longest, false);
    const double width = text_width(cr, label, TEXT_NORMAL) + INDENT;
    g_free(label);
    return width;
}

/* ---- bars ---- */

static int64_t record_time(const thread_bar *bar)
{
    return bar->is_begin ? bar->begin_ns : bar->end_ns;
}

static uint32_t record_of(const layer_context *c, const thread_bar *bar)
{
    return store_find_place(c->store, record_time(bar), bar->place);
}

/* Sets *lifeline and *object to the object of a record. Returns false if it belongs to no object. */
static bool find_object(const layer_context *c, uint32_t record, size_t *lifeline, uint32_t *object)
{
    const store *s = c->store;
    for (unsigned layer = 0; record != STORE_NONE && layer < s->spec->layers; layer++) {
        const spec_step step = spec_step_of(s->spec, store_event(s, record), layer);
        *object = store_object(s, record, layer);
        *lifeline = step.lifeline;
        if (step.lifeline != SPEC_NONE && *object != STORE_NONE)
            return true;
    }
    return false;
}

static color color_of(const layer_context *c, const thread_row *r, uint32_t record)
{
    size_t lifeline;
    uint32_t object;
    if (find_object(c, record, &lifeline, &object))
        return palette_series(model_object_color(c->model, lifeline, object), c->view->dark);
    const uint16_t host = names_find(c->store->names.hosts, r->logged_host);
    return palette_series(host != NAMES_NONE ? model_host_color(c->model, host) : 0, c->view->dark);
}

static bool is_selected(const layer_context *c, uint32_t record)
{
    size_t lifeline;
    uint32_t object;
    if (record == STORE_NONE)
        return false;
    if (c->view->has_single)
        return store_time(c->store, record) == c->view->single_ns &&
               store_place(c->store, record) == c->view->single_place;
    return c->view->selected >= 0 && find_object(c, record, &lifeline, &object) &&
           lifeline == c->view->selected_lifeline && object == c->view->selected;
}

typedef struct bar_place {
    double left, right;
} bar_place;

static bar_place place_of(const layer_context *c, const thread_bar *bar)
{
    const layout *l = c->layout;
    const double left = MAX(layout_x(l, c->view, bar->begin_ns), l->left - 2),
                 right = MIN(layout_x(l, c->view, bar->end_ns), l->right + 2);
    return (bar_place){left, MAX(right, left + 1)};
}

/* Returns the index of the first bar after `i` that ends in another pixel. */
static size_t next_bar(const layer_context *c, const GArray *lane, size_t i, double right)
{
    return thread_lane_find(lane, layout_time(c->layout, c->view, right), i + 1);
}

static void draw_span(const layer_context *c, const thread_row *r, const thread_bar *bar, double top, unsigned *names)
{
    const uint32_t record = record_of(c, bar);
    const bool dark = c->view->dark, is_hidden = record == STORE_NONE && model_filter(c->model) != NULL;
    const bar_place p = place_of(c, bar);
    const color ink = bar->failed ? palette_error(dark) : color_of(c, r, record);
    if (is_hidden)
        return;
    palette_set(c->cr, ink, 0.35);
    cairo_rectangle(c->cr, p.left, top, p.right - p.left, BAR);
    cairo_fill(c->cr);
    if (p.right - p.left > 3) { /* an edge, so that adjacent spans are distinct */
        palette_set(c->cr, ink, 1);
        cairo_rectangle(c->cr, p.left, top, 2, BAR);
        cairo_fill(c->cr);
    }
    if (is_selected(c, record)) {
        palette_set(c->cr, palette_text(dark), 1);
        cairo_set_line_width(c->cr, 1.5);
        cairo_rectangle(c->cr, p.left - 0.5, top - 0.5, p.right - p.left + 1, BAR + 1);
        cairo_stroke(c->cr);
    }
    const double left = MAX(p.left, c->layout->left) + 5, width = MIN(p.right, c->layout->right) - left - 2;
    if (width < NAME_MIN || *names >= NAMES_MAX_DRAWN)
        return;
    ++*names;
    text_draw(c->cr, names_text(model_threads(c->model)->names, bar->name), TEXT_SMALL, palette_text(dark), TEXT_START,
              left, top + BAR / 2.0, width);
}

/* Returns whether a bar has the width of a line, and needs no mark of its own. */
static bool is_thin(const layer_context *c, const thread_bar *bar, const bar_place *p)
{
    return p->right - p->left < 1.5 && !bar->failed && c->view->selected < 0 && !c->view->has_single &&
           model_filter(c->model) == NULL;
}

/* Adds a thin bar to the path, as whole pixels. Joins it with the previous bar if they touch, because a path of many
 * bars takes long to fill. */
static void add_thin(const layer_context *c, bar_place *joined, bar_place next, double top)
{
    const double left = floor(next.left * c->scale) / c->scale,
                 right = MAX(round(next.right * c->scale), floor(next.left * c->scale) + 1) / c->scale;
    if (left <= joined->right) {
        joined->right = MAX(joined->right, right);
        return;
    }
    if (joined->left < joined->right)
        cairo_rectangle(c->cr, joined->left, top, joined->right - joined->left, BAR);
    *joined = (bar_place){left, right};
}

/* Draws the bars of a lane. Draws the thin bars together, in the color of the first of them, because there may be many.
 */
static void draw_lane(const layer_context *c, const thread_row *r, const GArray *lane, double top, unsigned *names)
{
    GArray *wide = g_array_new(FALSE, FALSE, sizeof(size_t));
    bar_place joined = {-1, -1}; /* left of all bars */
    bool any = false;
    for (size_t i = thread_lane_find(lane, c->view->from_ns, 0); i < lane->len;) {
        const thread_bar *bar = &g_array_index(lane, thread_bar, i);
        if (bar->begin_ns > c->view->to_ns)
            break;
        const bar_place p = place_of(c, bar);
        if (!is_thin(c, bar, &p)) {
            g_array_append_val(wide, i);
        } else {
            if (!any)
                palette_set(c->cr, color_of(c, r, record_of(c, bar)), 0.35);
            any = true;
            add_thin(c, &joined, p, top);
        }
        i = next_bar(c, lane, i, p.right);
    }
    if (any) {
        cairo_rectangle(c->cr, joined.left, top, joined.right - joined.left, BAR);
        cairo_fill(c->cr);
    }
    for (guint i = 0; i < wide->len; i++)
        draw_span(c, r, &g_array_index(lane, thread_bar, g_array_index(wide, size_t, i)), top, names);
    g_array_free(wide, TRUE);
}

/* Returns the state that takes most of the time from the bar `i` to the right edge of its pixel. */
static unsigned main_state(const layer_context *c, const GArray *states, size_t i, double right)
{
    enum { SAMPLED_MAX = 32 };
    const int64_t end_ns = layout_time(c->layout, c->view, right);
    int64_t sums_ns[THREAD_STATES] = {0};
    unsigned main = 0;
    for (size_t at = i; at < states->len && at - i < SAMPLED_MAX; at++) {
        const thread_bar *bar = &g_array_index(states, thread_bar, at);
        if (bar->begin_ns > end_ns)
            break;
        sums_ns[bar->name] += MIN(bar->end_ns, end_ns) - bar->begin_ns;
    }
    for (unsigned state = 0; state < THREAD_STATES; state++)
        main = sums_ns[state] > sums_ns[main] ? state : main;
    return main;
}

static void draw_states(const layer_context *c, const GArray *states, double top)
{
    for (size_t i = thread_lane_find(states, c->view->from_ns, 0); i < states->len;) {
        const thread_bar *bar = &g_array_index(states, thread_bar, i);
        if (bar->begin_ns > c->view->to_ns)
            return;
        const bar_place p = place_of(c, bar);
        const bool is_narrow = p.right <= p.left + 1;
        palette_set(c->cr, palette_state(is_narrow ? main_state(c, states, i, p.right) : bar->name, c->view->dark), 1);
        cairo_rectangle(c->cr, p.left, top, p.right - p.left, STATES);
        cairo_fill(c->cr);
        i = next_bar(c, states, i, p.right);
    }
}

/* Returns the top of the strip of states in a row. */
static double states_top(const thread_row *r, double top)
{
    return top + (r->lane_count > 0 ? LANE * r->lane_count + STATES_GAP - 1 : (LANE - STATES) / 2.0);
}

static void draw_bars(const layer_context *c, const thread_row *r, const thread_slot *slot, double top, unsigned *names)
{
    const layout *l = c->layout;
    cairo_save(c->cr);
    cairo_rectangle(c->cr, l->left, top, l->right - l->left, slot->height);
    cairo_clip(c->cr);
    for (unsigned lane = 0; lane < (slot->is_collapsed ? MIN(r->lane_count, 1u) : r->lane_count); lane++)
        draw_lane(c, r, r->lanes[lane], top + lane * LANE, names);
    if (has_states(r) && (!slot->is_collapsed || r->lane_count == 0)) {
        draw_states(c, r->states, states_top(r, top));
        draw_states(c, r->waits, states_top(r, top));
    }
    cairo_restore(c->cr);
}

static void draw_label(const layer_context *c, const thread_row *r, const thread_slot *slot, double top, bool pinned)
{
    const bool dark = c->view->dark;
    const double y = top + LANE / 2.0;
    char *label = slot->is_host && slot->is_collapsed
                      ? g_strdup_printf("%s   %u thread%s", *r->host != '\0' ? r->host : "no host", slot->count,
                                        nl_plural(slot->count))
                  : slot->is_host ? g_strdup(*r->host != '\0' ? r->host : "no host")
                                  : label_of(r, pinned);
    const bool is_chosen = c->view->track != 0 && c->view->track == (slot->is_host ? r->host_key : r->key);
    const color ink = is_chosen ? palette_accent(dark) : palette_text(dark);
    if (slot->is_host) {
        palette_set(c->cr, palette_grid(dark), 0.6);
        cairo_rectangle(c->cr, 4, top + 1, c->layout->right - 4, HOST - 4);
        cairo_fill(c->cr);
        text_draw(c->cr, slot->is_collapsed ? "\342\226\270" : "\342\226\276", TEXT_NORMAL, ink, TEXT_LEFT, 8, y + 2,
                  0);
        text_draw(c->cr, label, TEXT_NORMAL, ink, TEXT_START, 8 + INDENT, y + 2, c->layout->right - 8 - INDENT);
    } else {
        if (slot->is_collapsed)
            text_draw(c->cr, "\342\226\270", TEXT_NORMAL, ink, TEXT_LEFT, 8, y, 0);
        text_draw(c->cr, label, TEXT_NORMAL, ink, TEXT_RIGHT, c->layout->left - 8, y, c->layout->left - 8 - 8 - INDENT);
    }
    g_free(label);
}

/* Draws the meanings of the colors of the states at the right of the title. */
static void draw_legend(const layer_context *c)
{
    static const char *const names[THREAD_STATES] = {"running", "runnable", "disk",   "futex",
                                                     "lock",    "network",  "waiting"};
    double width = 0;
    for (unsigned i = 0; i < THREAD_STATES; i++)
        width += SAMPLE + 4 + text_width(c->cr, names[i], TEXT_SMALL) + LEGEND_GAP;
    double x = c->layout->right - width;
    const double y = 14 + text_height(TEXT_TITLE) / 2;
    palette_set(c->cr, palette_background(c->view->dark), 1);
    cairo_rectangle(c->cr, x - 8, y - text_height(TEXT_TITLE) / 2, c->view->width - x + 8, text_height(TEXT_TITLE));
    cairo_fill(c->cr);
    for (unsigned i = 0; i < THREAD_STATES; i++) {
        palette_set(c->cr, palette_state(i, c->view->dark), 1);
        cairo_rectangle(c->cr, x, y - STATES / 2.0, SAMPLE, STATES);
        cairo_fill(c->cr);
        x += SAMPLE + 4;
        x += text_draw(c->cr, names[i], TEXT_SMALL, palette_text(c->view->dark), TEXT_LEFT, x, y, 0) + LEGEND_GAP;
    }
}

void threads_layer_draw_legend(const layer_context *c)
{
    const thread_list *l = model_threads(c->model);
    bool any = false;
    for (guint i = 0; l != NULL && i < l->rows->len && !any; i++)
        any = has_states(row_at(l, i));
    if (any && c->view->shows_threads)
        draw_legend(c);
}

/* Draws the reason why there are no rows. */
static void draw_reason(const layer_context *c, double top)
{
    const thread_list *l = model_threads(c->model);
    char *reading = NULL;
    const char *text;
    if (l == NULL || !l->is_complete)
        text = reading = g_strdup_printf("Reading the threads, %.0f %%", 100 * model_threads_progress(c->model));
    else if (!l->names_threads)
        text = "No record names a thread. Log the fields TID (the thread) and PID (the process) with spans, or record "
               "threads with \"nlkernel trace\" or with \"nlkernel record -e 'sched:*'\".";
    else
        text = "The records name threads, but no thread has a span or a state. Log the duration of spans (DUR), or "
               "pairs of "
               "events such as Query.start and Query.end, or record states with \"nlkernel record -e 'sched:*'\".";
    text_draw_paragraph(c->cr, text, TEXT_NORMAL, palette_text(c->view->dark), c->layout->left + 12, top + 12,
                        c->layout->right - c->layout->left - 24);
    g_free(reading);
}

static void draw_more(const layer_context *c, guint more, double bottom)
{
    char text[80];
    g_snprintf(text, sizeof text, "%u more thread%s %s not fit; make the picture higher", more, nl_plural(more),
               more == 1 ? "does" : "do");
    palette_set(c->cr, palette_background(c->view->dark), 1);
    cairo_rectangle(c->cr, 0, bottom - MORE, c->view->width, MORE);
    cairo_fill(c->cr);
    text_draw(c->cr, text, TEXT_SMALL, palette_muted(c->view->dark), TEXT_LEFT, c->layout->left, bottom - MORE / 2.0,
              0);
}

void threads_layer_draw(const layer_context *c, const pane *p)
{
    double top, bottom;
    unsigned names = 0;
    guint more = 0;
    if (!layout_visible(c->layout, p, &top, &bottom))
        return;
    GArray *slots = threads_layer_slots(c->model, c->view, p->is_pinned);
    if (slots->len == 0)
        draw_reason(c, p->top);
    if (!c->view->scrolls && slots->len > 0) {
        const thread_slot *last = &g_array_index(slots, thread_slot, slots->len - 1);
        bottom -= p->top + last->top + last->height > bottom + 0.5 ? MORE : 0;
    }
    for (guint i = 0; i < slots->len; i++) {
        const thread_slot *slot = &g_array_index(slots, thread_slot, i);
        const double at = p->top + slot->top;
        if (!c->view->scrolls && at + slot->height > bottom + 0.5) {
            more += !slot->is_host;
            continue;
        }
        if (at + slot->height < top || at > bottom)
            continue;
        const thread_row *r = row_at(model_threads(c->model), slot->row);
        draw_label(c, r, slot, at, p->is_pinned);
        if (!slot->is_host)
            draw_bars(c, r, slot, at, &names);
    }
    if (more > 0)
        draw_more(c, more, p->bottom);
    g_array_free(slots, TRUE);
}

/* ---- finding ---- */

/* Returns the bar of a lane at or near x, or NULL. */
static const thread_bar *bar_at(const layer_context *c, const GArray *lane, double x)
{
    const double reach = 2;
    const size_t i = thread_lane_find(lane, layout_time(c->layout, c->view, x - reach), 0);
    const thread_bar *bar = i < lane->len ? &g_array_index(lane, thread_bar, i) : NULL;
    return bar != NULL && layout_x(c->layout, c->view, bar->begin_ns) <= x + reach ? bar : NULL;
}

/* Returns the bar at a position, or NULL. Sets *row to its thread, and *is_state to whether it is a state. */
static const thread_bar *find_bar(const layer_context *c, const pane *p, double x, double y, const thread_row **row,
                                  bool *is_state)
{
    GArray *slots = threads_layer_slots(c->model, c->view, p->is_pinned);
    const thread_bar *found = NULL;
    *is_state = false;
    for (guint i = 0; i < slots->len && x >= c->layout->left; i++) {
        const thread_slot slot = g_array_index(slots, thread_slot, i);
        const double top = p->top + slot.top;
        if (slot.is_host || y < top || y >= top + slot.height)
            continue;
        *row = row_at(model_threads(c->model), slot.row);
        const double lane = floor((y - top) / LANE), states = states_top(*row, top);
        *is_state = has_states(*row) && (!slot.is_collapsed || (*row)->lane_count == 0) && y >= states - 1;
        if (*is_state) {
            found = bar_at(c, (*row)->waits, x);
            found = found != NULL ? found : bar_at(c, (*row)->states, x);
        } else if (lane < (slot.is_collapsed ? 1 : (*row)->lane_count)) {
            found = bar_at(c, (*row)->lanes[(unsigned)lane], x);
        }
        break;
    }
    g_array_free(slots, TRUE);
    return found;
}

void threads_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found)
{
    const thread_row *row;
    bool is_state;
    const thread_bar *bar = find_bar(c, p, x, y, &row, &is_state);
    const uint32_t record = bar != NULL ? record_of(c, bar) : STORE_NONE;
    size_t lifeline;
    uint32_t object;
    if (record == STORE_NONE)
        return;
    *found = (scene_found){.distance = 0, .record = record, .object = -1};
    if (!is_state && find_object(c, record, &lifeline, &object)) {
        found->object = object;
        found->lifeline = lifeline;
    }
}

char *threads_layer_describe(const layer_context *c, const pane *p, double x, double y)
{
    const thread_row *row;
    bool is_state;
    const thread_bar *bar = find_bar(c, p, x, y, &row, &is_state);
    char took[32];
    if (bar == NULL)
        return NULL;
    axis_span_label((double)(bar->end_ns - bar->begin_ns), took);
    char *label = label_of(row, true);
    char *text = g_strdup_printf("%s, %s%s\n%s",
                                 is_state ? thread_state_text((thread_state)bar->name)
                                          : names_text(model_threads(c->model)->names, bar->name),
                                 took, bar->failed ? ", failed" : "", label);
    g_free(label);
    return text;
}
