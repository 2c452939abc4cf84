/*
 * The scene: a picture of a model, drawn with cairo for the window and for PNG, SVG and PDF files. Does not use GTK.
 *
 * Time runs to the right. From top to bottom, the scene has the title and legend, a pane for each lifeline definition,
 * a pane with a row for each kind of point, and a pane for each loadline. The time axis, the overview and a caption
 * follow. In a lifeline's pane, each event has a row. The first event is at the bottom.
 */
#ifndef NLV_SCENE_H
#define NLV_SCENE_H

#include "model/model.h"
#include "model/tracks.h"

#include "scene/axis.h"

#include <cairo.h>

/* A slow request that has just ended. */
typedef struct scene_flash {
    int64_t end_ns, duration_ns;
    double strength; /* 1: new; 0: invisible */
} scene_flash;

typedef struct scene_view {
    int64_t from_ns, to_ns; /* visible time range; from_ns < to_ns */
    double width, height;   /* size in pixels or points */
    bool dark;
    int64_t selected;         /* the emphasized object, or -1 */
    size_t selected_lifeline; /* the lifeline definition of the emphasized object */
    bool has_single; /* a request that belongs to no object is emphasized; its record has the time single_ns and
                        the place single_place (batch.h) */
    int64_t single_ns;
    uint64_t single_place;
    const char *title; /* replaces the drawing's title; NULL: use the drawing's title */
    bool has_range;    /* mark the time range between range_from_ns and range_to_ns, which may be in either order */
    bool is_zooming;   /* the marked range is the target of a zoom */
    int64_t range_from_ns, range_to_ns;
    bool has_mark; /* mark mark_ns as the match of a search */
    int64_t mark_ns;
    const GArray *marks;   /* bookmarks (session_mark), or NULL */
    const GArray *flashes; /* scene_flash, the newest last, or NULL */
    const char *caption;   /* text below the picture, or NULL */
    bool names_slowest;    /* write the names of events beside the longest line of the slowest kind (slow.h) */
    bool overview;         /* draw the overview even if the whole log is visible */
    bool histogram;        /* draw the histogram of durations beside the heat map */
    bool hides_empty;      /* if a part of the log is visible, omit the panes without records in this part */
    bool has_brush;        /* mark the area of the overview between two corners */
    double brush_x[2], brush_y[2];
    bool has_area; /* mark the selected requests in the overview */
    request_choice area;
    bool has_color; /* frame a color of the legend */
    size_t color;
    bool has_crosshair; /* draw a line through all panes at crosshair_ns, with the time and the measured values */
    int64_t crosshair_ns;
    int64_t hovered; /* the object of the line to draw thick, which ends with hovered_record; -1: no line */
    size_t hovered_lifeline;
    uint32_t hovered_record;
    bool is_coarse;                        /* draw lines with half the resolution, for speed while the view moves */
    axis_clock clock;                      /* the kind of times on the axis */
    bool collapses;                        /* collapse loadlines whose strips would be too low to read */
    bool shows_threads;                    /* show a row for each thread, and the pinned panes */
    bool scrolls;                          /* panes that would be too low to read scroll */
    double scroll;                         /* the position of the panes that scroll, in units */
    track_set collapsed, expanded, pinned; /* the tracks that the user has collapsed, expanded and pinned */
    uint32_t track;                        /* the track that the user has chosen with the keyboard; 0: no track */
} scene_view;

/* Returns a view of the whole model, with a margin on both sides. */
scene_view scene_fit(const model *m, double width, double height);

/*
 * Returns the first view of a model: the whole model, or about 25 requests if the model has many requests, or covers a
 * much longer time than these requests. These requests include the request with the longest line of the slowest kind
 * (slow.h). If a gap without records covers nearly the whole log, the view shows only the part before or after the gap,
 * whichever the records cover more evenly (checks.h).
 */
scene_view scene_first(const model *m, double width, double height);

/* Emphasizes the object of a record. If the record belongs to no object, emphasizes the request that the record
 * describes or ends. If `record` is STORE_NONE, removes the emphasis. */
void scene_select(scene_view *view, const store *s, uint32_t record);

/* Sets *record to a record of the emphasized request, and *lifeline to the index of its lifeline or
 * REQUEST_NO_LIFELINE. Returns false if no request is emphasized, or its records are not in the store. */
bool scene_find_selected(const scene_view *view, const store *s, size_t *lifeline, uint32_t *record);

void scene_draw(const model *m, const scene_view *view, cairo_t *cr);

/* Sets *left and *right to the x coordinates of the plot's edges. */
void scene_plot_extents(const model *m, const scene_view *view, cairo_t *cr, double *left, double *right);

/* The record whose mark is nearest to a point. */
typedef struct scene_found {
    double distance; /* in units */
    uint32_t record;
    int64_t object; /* -1: no object */
    size_t lifeline;
} scene_found;

/* Finds the record whose mark is nearest to (x, y), within a few units. Returns false if there is no mark. */
bool scene_find(const model *m, const scene_view *view, cairo_t *cr, double x, double y, scene_found *found);

/* Returns the key of the track whose name or label is at (x, y), or 0. */
uint32_t scene_find_track(const model *m, const scene_view *view, cairo_t *cr, double x, double y);

/*
 * Returns the next visible or invisible track after `track`, or if `by` is -1, the previous track. Returns the first
 * track if `track` is 0, and `track` if there is no next track.
 */
uint32_t scene_step_track(const model *m, const scene_view *view, cairo_t *cr, uint32_t track, int by);

/* Returns the name of a track, which the caller frees with g_free, or NULL. */
char *scene_track_name(const model *m, const scene_view *view, cairo_t *cr, uint32_t track);

/* Expands a track if it is collapsed; otherwise, collapses it. */
void scene_toggle_track(const model *m, scene_view *view, cairo_t *cr, uint32_t track);

/* Pins a track above the tracks that scroll, or returns it to its place. The lists of hosts' threads cannot be pinned:
 * returns false for a host. */
bool scene_pin_track(const model *m, scene_view *view, cairo_t *cr, uint32_t track);

/* Expands the next collapsed track in place of the tracks that the user has expanded. Returns false if no track is
 * collapsed. */
bool scene_expand_next(const model *m, scene_view *view, cairo_t *cr);

/* scene_scroll moves the panes that scroll by a number of units. scene_show_track makes a track visible.
 * scene_scroll_page returns the height of the area that scrolls, or 0 if everything is visible. */
void scene_scroll(const model *m, scene_view *view, cairo_t *cr, double by);
void scene_show_track(const model *m, scene_view *view, cairo_t *cr, uint32_t track);
double scene_scroll_page(const model *m, const scene_view *view, cairo_t *cr);

/*
 * scene_write_time writes a time as axis_write_time does; the origin of relative times is the start of the log.
 * scene_describe_record returns a record as text (model_describe) with such a time, without the date. The caller frees
 * it with g_free.
 */
void scene_write_time(const model *m, axis_clock clock, int64_t time_ns, char out[AXIS_TIME_SIZE]);
char *scene_describe_record(const model *m, axis_clock clock, uint32_t record);

/* Returns a text about the span or the state of a thread at (x, y), or NULL. The caller frees it with g_free. */
char *scene_describe_thread(const model *m, const scene_view *view, cairo_t *cr, double x, double y);

/* Returns whether (x, y) is in the overview. If so, sets *time_ns to the time at x. */
bool scene_is_overview(const model *m, const scene_view *view, cairo_t *cr, double x, double y, int64_t *time_ns);

/*
 * Returns whether the overview is the heat map of requests, and the point `from` is in the heat map or in its
 * histogram. If so, sets *area to the requests between the points `from` and `to`. If the points are nearly equal, sets
 * *area to the requests near them.
 */
bool scene_find_requests(const model *m, const scene_view *view, cairo_t *cr, const double from[2], const double to[2],
                         request_choice *area);

/* Returns the slow requests or, if `errors` is true, the failed and incomplete requests, by the rules of the numbers in
 * the heat map's legend. If there are no such requests, returns all requests. */
request_choice scene_choose_requests(const model *m, bool errors);

/*
 * Returns whether (x, y) is on the number of slow requests, or of failed and incomplete requests, in the legend of the
 * heat map. If so, sets *choice to these requests.
 */
bool scene_find_legend(const model *m, const scene_view *view, cairo_t *cr, double x, double y, request_choice *choice);

/* Returns the color at (x, y) of the legend, which color_filter_toggle can isolate or hide, or -1. If (x, y) is on the
 * number of the omitted colors, sets *is_more to true, and returns the first omitted color. */
int scene_find_color(const model *m, const scene_view *view, cairo_t *cr, double x, double y, bool *is_more);

/* Returns the color of the legend after the color `from` (-1: the first color) or, if `by` is -1, the color before it.
 * Returns `from` if there is no such color. */
int scene_step_color(const model *m, const scene_view *view, cairo_t *cr, int from, int by);

/* The edges of the heat map of requests. */
typedef struct scene_heat {
    double left, right, top, bottom;
    double slow_y; /* lower edge of the slow requests */
} scene_heat;

/* Returns whether the overview is the heat map of requests. If so, sets *places. */
bool scene_find_heat(const model *m, const scene_view *view, cairo_t *cr, scene_heat *places);

/*
 * scene_zoom multiplies the width of the view by `factor`. The time at `share` of the plot's width (0: left, 1: right)
 * stays in its position. scene_pan moves the view by a share of its width.
 */
void scene_zoom(scene_view *view, double factor, double share);
void scene_pan(scene_view *view, double share);

#endif
