/* The legend: the meanings of the colors, in a line below the title. If some meanings do not fit, the legend shows the
 * number of omitted meanings. This module has no state. */
#include "config.h"

#include "model/checks.h"
#include "model/color_filter.h"
#include "scene/layers.h"
#include "scene/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_violations(const store *s)
{
    for (size_t i = 0; i < s->spec->lifeline_count; i++) {
        const lifeline_lists *l = &s->lifelines[i];
        for (size_t j = 0; l->violations != NULL && j < (size_t)l->rows * l->rows; j++)
            if (l->violations[j] != NULL && l->violations[j]->count > l->violations[j]->start)
                return true;
    }
    return false;
}

enum {
    NAME_MIN = 100, /* minimum width in units of a shortened name */
    MORE = 90,      /* width in units of the text about the omitted colors */
    WHOLE = 10000,  /* do not shorten the name */
    SAMPLE_WIDTH = 16,
    NAME_AT = 21, /* distance of the name from the left edge of the entry */
    ENTRY_GAP = 17,
};

/* Draws a color and its name, which gets at most `max` units. */
static void draw_entry(const layer_context *c, double x, color ink, const char *name, double max)
{
    double y = c->layout->legend_y;
    palette_set(c->cr, ink, 1);
    cairo_set_line_width(c->cr, 3);
    cairo_move_to(c->cr, x, y);
    cairo_line_to(c->cr, x + SAMPLE_WIDTH, y);
    cairo_stroke(c->cr);
    text_draw(c->cr, name, TEXT_NORMAL, palette_text(c->view->dark), TEXT_LEFT, x + NAME_AT, y, max);
}

/*
 * Returns the text of the legend for a color: the name of a host, or another value. If the host's clock has a visible
 * offset or error, the text contains the offset or error.
 */
static char *legend_text(const layer_context *c, const char *text)
{
    uint16_t host = names_find(c->store->names.hosts, text);
    double pixel_ns = (double)(c->view->to_ns - c->view->from_ns) / (c->layout->right - c->layout->left);
    if (*text == '\0' || host == NAMES_NONE || c->store->count == c->store->first)
        return g_strdup(*text == '\0' ? "(none)" : text);
    store_clock clock = store_clock_at(c->store, host, MIN(c->from, c->store->count - 1));
    bool is_off = clock.low_ns > 0 || clock.high_ns < 0;
    double max_ns = fmax(fabs(clock.low_ns), fabs(clock.high_ns)), middle_ns = (clock.low_ns + clock.high_ns) / 2;
    if (!clock.is_known || max_ns < 3 * pixel_ns)
        return g_strdup(text);
    char *off = checks_time_text(is_off ? fabs(middle_ns) : max_ns);
    char *with = is_off ? g_strdup_printf("%s (%s %s)", text, off, middle_ns > 0 ? "slow" : "fast")
                        : g_strdup_printf("%s (\302\261 %s)", text, off);
    g_free(off);
    return with;
}

/* Returns whether all lifelines have the color of one host although they also visit other hosts. The legend omits this
 * color, because it does not distinguish lifelines. */
static bool is_color_meaningless(const layer_context *c)
{
    const store *s = c->store;
    const uint16_t host = names_find(s->names.hosts, model_color_text(c->model, 0));
    for (size_t i = 0; host != NAMES_NONE && i < names_count(s->names.hosts); i++)
        if (i != host && s->visits[i] > 0)
            return true;
    return false;
}

/* An entry of the legend. */
typedef struct entry {
    char *name;
    double left, max, right; /* `max` is the maximum width of the name */
    int color;               /* number of the color, or a value of special_color */
} entry;

typedef enum special_color { COLOR_ALARM = -1, COLOR_FOUND = -2, COLOR_TITLE = -3 } special_color;

static void clear_entry(gpointer data)
{
    g_free(((entry *)data)->name);
}

/* Adds an entry and takes ownership of `name`. Returns the left edge of the next entry. */
static double add_entry(const layer_context *c, GArray *entries, double left, char *name, double max, int color)
{
    const double width = MIN(text_width(c->cr, name, TEXT_NORMAL), max);
    const entry e = {name, left, max, left + (color == COLOR_TITLE ? 0 : NAME_AT) + width, color};
    g_array_append_val(entries, e);
    return e.right + ENTRY_GAP;
}

/* Returns the title of the colors: the field that gives every lifeline its color. Returns NULL if the fields differ. */
static const char *title_of(const layer_context *c)
{
    const GPtrArray *lifelines = model_drawing(c->model)->lifelines;
    const char *field = model_color_count(c->model) > 0 ? color_filter_field(c->model, 0) : NULL;
    for (guint i = 0; i < lifelines->len && field != NULL; i++)
        if (strcmp(((const drawing_lifeline *)g_ptr_array_index(lifelines, i))->color, field) != 0)
            return NULL;
    return field != NULL && strcmp(field, DRAWING_COLOR_LOG) == 0 ? "Log" : field;
}

static int by_name(const void *a, const void *b, void *user)
{
    const model *m = user;
    return strverscmp(model_color_text(m, *(const size_t *)a), model_color_text(m, *(const size_t *)b));
}

/*
 * Returns the colors sorted by name, with numbers in names in numerical order. The order in which nlv assigns colors is
 * not suitable for the legend, because this order depends on the log. Sorts at most the number of colors that the user
 * can filter, because the legend has no space for more colors. The caller frees the array.
 */
static size_t *order_colors(const layer_context *c)
{
    const size_t count = model_color_count(c->model);
    size_t *order = g_new(size_t, MAX(count, 1));
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    if (count <= COLOR_FILTER_MAX)
        qsort_r(order, count, sizeof *order, by_name, (void *)c->model);
    return order;
}

/* Returns the position of a color in the legend. */
static size_t position_of(const layer_context *c, const size_t *order, size_t color)
{
    size_t i = 0;
    while (i < model_color_count(c->model) && order[i] != color)
        i++;
    return i;
}

/* The part of the legend that fits. */
typedef struct legend {
    GArray *entries; /* entry */
    size_t next;     /* position of the first color that does not fit */
    size_t omitted;  /* number of colors that do not fit */
    double end;      /* left edge of the text about the omitted colors */
} legend;

/* Returns a legend whose first color is at the position `first` of `order`. The caller frees its entries. */
static legend place_from(const layer_context *c, const size_t *order, size_t first)
{
    GArray *entries = g_array_new(FALSE, FALSE, sizeof(entry));
    const size_t count = model_color_count(c->model);
    double x = c->layout->left;
    g_array_set_clear_func(entries, clear_entry);
    if (has_violations(c->store))
        x = add_entry(c, entries, x, g_strdup("effect before its cause"), WHOLE, COLOR_ALARM);
    if (model_found_requests(c->model) != NULL)
        x = add_entry(c, entries, x, g_strdup("found"), WHOLE, COLOR_FOUND);
    const bool has_colors = count != 1 || (*model_color_text(c->model, 0) != '\0' && !is_color_meaningless(c));
    const char *title = has_colors ? title_of(c) : NULL;
    if (title != NULL)
        x = add_entry(c, entries, x, g_strconcat(title, ":", NULL), WHOLE, COLOR_TITLE);
    size_t i = has_colors ? first : count;
    for (; i < count; i++) {
        char *name = legend_text(c, model_color_text(c->model, order[i]));
        const double space = c->layout->right - x - NAME_AT - (first > 0 || i + 1 < count ? MORE : 0);
        if (space < MIN(text_width(c->cr, name, TEXT_NORMAL), NAME_MIN)) {
            g_free(name);
            break;
        }
        x = add_entry(c, entries, x, name, space, (int)order[i]);
    }
    return (legend){entries, i < count ? i : 0, has_colors ? count - i + first : 0, x};
}

/* Returns the part of the legend that fits from the first color on. If the color that the user has chosen with the
 * keyboard does not fit, returns a later part that contains the color. The caller frees the part's entries. */
static legend place_entries(const layer_context *c, const size_t *order)
{
    legend l = place_from(c, order, 0);
    const size_t chosen = c->view->has_color ? position_of(c, order, c->view->color) : 0;
    while (l.next > 0 && chosen >= l.next) {
        const size_t first = l.next;
        g_array_free(l.entries, TRUE);
        l = place_from(c, order, first);
        if (l.next == first) /* the picture is too narrow for any color */
            break;
    }
    return l;
}

/* Draws a line through the name of a color that the filter hides. */
static void strike_entry(const layer_context *c, const entry *e)
{
    const double y = floor(c->layout->legend_y) + 0.5;
    palette_set(c->cr, palette_text(c->view->dark), 0.8);
    cairo_set_line_width(c->cr, 1);
    cairo_move_to(c->cr, e->left + NAME_AT - 2, y);
    cairo_line_to(c->cr, e->right + 2, y);
    cairo_stroke(c->cr);
}

static void frame_entry(const layer_context *c, const entry *e)
{
    const double half = text_height(TEXT_NORMAL) / 2 + 2;
    palette_set(c->cr, palette_accent(c->view->dark), 1);
    cairo_set_line_width(c->cr, 1.5);
    cairo_rectangle(c->cr, e->left - 4, c->layout->legend_y - half, e->right - e->left + 8, 2 * half);
    cairo_stroke(c->cr);
}

static color ink_of_entry(const layer_context *c, const entry *e)
{
    const bool dark = c->view->dark;
    return e->color == COLOR_ALARM   ? palette_alarm()
           : e->color == COLOR_FOUND ? palette_accent(dark)
                                     : palette_series((size_t)e->color, dark);
}

void legend_layer_draw(const layer_context *c)
{
    const bool dark = c->view->dark;
    bool is_hidden[COLOR_FILTER_MAX];
    const size_t known = color_filter_find_hidden(c->model, is_hidden);
    size_t *order = order_colors(c);
    const legend l = place_entries(c, order);
    g_free(order);
    for (guint i = 0; i < l.entries->len; i++) {
        const entry *e = &g_array_index(l.entries, entry, i);
        if (e->color == COLOR_TITLE) {
            text_draw(c->cr, e->name, TEXT_NORMAL, palette_muted(dark), TEXT_LEFT, e->left, c->layout->legend_y, 0);
            continue;
        }
        draw_entry(c, e->left, ink_of_entry(c, e), e->name, e->max);
        if (e->color >= 0 && (size_t)e->color < known && is_hidden[e->color])
            strike_entry(c, e);
        if (c->view->has_color && e->color == (int)c->view->color)
            frame_entry(c, e);
    }
    g_array_free(l.entries, TRUE);
    if (l.omitted == 0)
        return;
    char more[32];
    g_snprintf(more, sizeof more, "+ %zu more", l.omitted);
    text_draw(c->cr, more, TEXT_NORMAL, palette_muted(dark), TEXT_LEFT, l.end, c->layout->legend_y, 0);
}

int legend_layer_find(const layer_context *c, double x, double y, bool *is_more)
{
    int found = -1;
    *is_more = false;
    if (fabs(y - c->layout->legend_y) > text_height(TEXT_NORMAL) / 2 + 3)
        return -1;
    size_t *order = order_colors(c);
    const legend l = place_entries(c, order);
    for (guint i = 0; i < l.entries->len; i++) {
        const entry *e = &g_array_index(l.entries, entry, i);
        if (e->color >= 0 && x >= e->left && x <= e->right && color_filter_is_possible(c->model, (size_t)e->color))
            found = e->color;
    }
    if (l.omitted > 0 && x >= l.end && x <= l.end + MORE) {
        *is_more = true;
        found = (int)order[l.next];
    }
    g_array_free(l.entries, TRUE);
    g_free(order);
    return found;
}

int legend_layer_step(const layer_context *c, int from, int by)
{
    size_t *order = order_colors(c);
    const legend l = place_from(c, order, 0);
    const bool has_colors =
        l.omitted > 0 || (l.entries->len > 0 && g_array_index(l.entries, entry, l.entries->len - 1).color >= 0);
    g_array_free(l.entries, TRUE);
    const int count = has_colors ? (int)MIN(model_color_count(c->model), COLOR_FILTER_MAX) : 0;
    int found = from;
    for (int i = (from < 0 ? -1 : (int)position_of(c, order, (size_t)from)) + by; i >= 0 && i < count; i += by)
        if (color_filter_is_possible(c->model, order[i])) {
            found = (int)order[i];
            break;
        }
    g_free(order);
    return found;
}
