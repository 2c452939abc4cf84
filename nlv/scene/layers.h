/* The layers of a scene, one file for each layer. The layers draw into panes that layout.h has placed. */
#ifndef NLV_LAYERS_H
#define NLV_LAYERS_H

#include "scene/layout.h"
#include "scene/palette.h"

typedef struct layer_context {
    const model *model;
    const store *store;
    const scene_view *view;
    const layout *layout;
    cairo_t *cr;
    uint32_t from, to; /* the visible records: [from, to) */
    uint32_t *columns; /* the first record of each of the column_count columns, followed by `to` */
    unsigned column_count;
    bool is_near;   /* the first records in `columns` are rounded to multiples of STORE_MARK */
    bool is_raster; /* the output has pixels; otherwise, it has vectors (SVG, PDF) */
    double scale;   /* pixels per unit */
} layer_context;

/* Returns the x coordinate of a record's time. */
double layer_x(const layer_context *c, uint32_t record);

/* Draws the background of a pane of lifelines: the rectangle, the lines of the rows, and their labels. */
void lifelines_layer_back(const layer_context *c, const pane *p);
void lifelines_layer_draw(const layer_context *c, const pane *p);
void lifelines_layer_name_slowest(const layer_context *c);
void points_layer_back(const layer_context *c, const pane *p);
void points_layer_draw(const layer_context *c, const pane *p);
/* Draws loadlines and the pane's background, because the axis in the background depends on the data. */
void loadlines_layer_draw(const layer_context *c, const pane *p);

/* Draws the throughput of a loadline with rate=true, and the pane's background. */
void throughput_layer_draw(const layer_context *c, const pane *p);

/* Draws the numbers of an axis from `low` to `high` at the left of a pane, and the name of a loadline. */
void loadlines_layer_axis(const layer_context *c, const pane *p, double low, double high, bool any);

/*
 * Draws the spans of an event's records with durations, as bars in a row of a pane. In a pane of lifelines, draws only
 * spans of lifeline p->index whose start is not in the log. Returns the number of spans that end in the view.
 */
size_t bars_draw(const layer_context *c, const pane *p, unsigned row, uint16_t event);

/*
 * Returns the value of a loadline at view->crosshair_ns: the largest of the hosts' latest values, with the unit and the
 * host. Returns NULL if there is no value. The caller frees the text with g_free.
 */
char *loadlines_layer_value(const layer_context *c, const pane *p);

/*
 * The rows of threads (model/threads.h). A pane with is_pinned has only the pinned threads; the other pane has the
 * others, below the names of their hosts. threads_layer_height returns the height of all rows of such a pane.
 */
void threads_layer_draw(const layer_context *c, const pane *p);
double threads_layer_height(const model *m, const scene_view *view, bool pinned);
double threads_layer_label_width(const model *m, cairo_t *cr);

/* Draws the meanings of the colors of states beside the title, if the view shows states. */
void threads_layer_draw_legend(const layer_context *c);
void threads_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found);

/* Returns a text about the span or state at a position, or NULL. The caller frees it with g_free. */
char *threads_layer_describe(const layer_context *c, const pane *p, double x, double y);

/* A row of threads, or the name of a host. */
typedef struct thread_slot {
    double top, height; /* relative to the top of the pane */
    guint row;          /* index of the thread, or of the host's first thread */
    bool is_host, is_collapsed;
    guint count; /* of a host: the number of its threads */
} thread_slot;

/* Returns the slots (thread_slot) of a pane from top to bottom. The caller frees the array. */
GArray *threads_layer_slots(const model *m, const scene_view *view, bool pinned);

/* Returns the key of the track of a slot. */
uint32_t threads_layer_track(const model *m, const thread_slot *slot);

/* Returns the height of the bars of an event in a pane of lifelines, or 0 if the event's records have no durations. */
double bars_height(const layer_context *c, const pane *p, uint16_t event);

/* Like points_layer_find, for the bars that bars_draw draws. The result belongs to no object. */
void bars_find(const layer_context *c, const pane *p, unsigned row, uint16_t event, double x, double y,
               scene_found *found);

/*
 * legend_layer_draw draws the meanings of the colors. legend_layer_find and legend_layer_step return the results of
 * scene_find_color and scene_step_color.
 */
void legend_layer_draw(const layer_context *c);
int legend_layer_find(const layer_context *c, double x, double y, bool *is_more);
int legend_layer_step(const layer_context *c, int from, int by);

/* In the right margin and above the plot, draws the flashes of slow requests that have just ended. */
void marks_layer_flash(const layer_context *c);

/* Draws the bookmarks of the view, in front of all panes. */
void marks_layer_draw(const layer_context *c);

/* Draws the whole log in a strip, with the visible part marked: the heat map, or the density if there are no requests.
 */
void overview_layer_draw(const layer_context *c);

/* Draws the heat map of requests in the strip. */
void heat_layer_draw(const layer_context *c);

/* If the heat map is visible, draws its legend in the caption's line up to `right`. Returns the left edge of the
 * legend. */
double heat_layer_legend(const layer_context *c, double right);

/* Returns the part of the legend of the heat map at a position. */
typedef enum heat_legend { HEAT_LEGEND_OTHER, HEAT_LEGEND_ERRORS, HEAT_LEGEND_SLOW } heat_legend;
heat_legend heat_layer_find_legend(const layer_context *c, double x, double y);

/* Draws the area of the heat map and the histogram that the user marks or has marked. */
void heat_layer_draw_area(const layer_context *c);

/* Draws the histogram of durations at the right of the heat map, if the layout has space for it. */
void histogram_layer_draw(const layer_context *c);

/*
 * Returns a loadline's name with its unit, which the caller frees with g_free. LOADLINE_NUMBERS is the width of the
 * numbers of a loadline's axis in units.
 */
char *loadlines_layer_name(const drawing_loadline *definition);
enum { LOADLINE_NUMBERS = 48 };

/* layer_pane draws the rectangle of a pane. layer_row draws the line and label of a row. */
void layer_pane(const layer_context *c, const pane *p);
void layer_row(const layer_context *c, const pane *p, unsigned row, const char *label);

/* Find the record whose mark is nearest to (x, y). If the mark is nearer than found->distance (in units), the functions
 * store the record and the distance in `found`. */
void lifelines_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found);
void points_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found);
void loadlines_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found);

#endif
