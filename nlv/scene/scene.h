/*
 * The scene: a model drawn with cairo, the same for the window, a PNG, an SVG and a PDF. No GTK.
 *
 * Time runs to the right. From top to bottom: title and legend, one pane for each kind of lifeline (its events are
 * rows, the first at the bottom, as in the paper), one with a row for each kind of point, one for each loadline, the
 * time axis, a caption.
 */
#ifndef NLV_SCENE_H
#define NLV_SCENE_H

#include "model/model.h"

#include <cairo.h>

typedef struct scene_view {
    int64_t from_ns, to_ns; /* visible; from_ns < to_ns */
    double width, height;   /* in pixels or points */
    bool dark;
    int64_t selected;         /* an object that is drawn emphasised, -1 for none */
    size_t selected_lifeline; /* whose it is */
    const char *title;        /* instead of the drawing's; NULL otherwise */
    bool has_range;           /* a stretch of time is marked, from range_from_ns to range_to_ns in any order */
    bool is_zooming;          /* and is what will be zoomed to */
    int64_t range_from_ns, range_to_ns;
    bool has_mark; /* a time is marked: what was searched for */
    int64_t mark_ns;
    const GArray *marks; /* session_mark: bookmarks with their notes; NULL: none */
    const char *caption; /* in words below the picture; NULL: none */
    bool overview;       /* the strip of the whole log, also when all of it is visible */
    bool is_coarse;      /* lines are drawn by two pixels, or by units that have more: for speed, while it moves */
} scene_view;

/* A view of all of a model, with a little room on both sides. */
scene_view scene_fit(const model *m, double width, double height);

/* Draws all of it. */
void scene_draw(const model *m, const scene_view *view, cairo_t *cr);

/* Where the plot lies in a view, from left to right: the area that stands for the visible time. */
void scene_plot_extents(const model *m, const scene_view *view, cairo_t *cr, double *left, double *right);

/* The mark nearest to a place. */
typedef struct scene_found {
    double distance; /* units */
    uint32_t record;
    int64_t object; /* -1: it is no step of one */
    size_t lifeline;
} scene_found;

/* The record whose mark is nearest to a place and at most a few units away; false when there is none. */
bool scene_find(const model *m, const scene_view *view, cairo_t *cr, double x, double y, scene_found *found);

/* Whether a place is in the overview, and which time is there. */
bool scene_is_overview(const model *m, const scene_view *view, cairo_t *cr, double x, double y, int64_t *time_ns);

/* Changes what is visible: by a factor around the time at share (0 left, 1 right) of the plot; by a share of the width.
 */
void scene_zoom(scene_view *view, double factor, double share);
void scene_pan(scene_view *view, double share);

#endif
