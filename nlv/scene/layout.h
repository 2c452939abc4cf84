/* Places all parts of a view: panes one above another, with a common time axis below. This module has no state. */
#ifndef NLV_LAYOUT_H
#define NLV_LAYOUT_H

#include "scene/scene.h"

typedef enum pane_kind { PANE_LIFELINES, PANE_POINTS, PANE_LOADLINE, PANE_THREADS } pane_kind;

typedef struct pane {
    pane_kind kind;
    guint index;        /* index in the drawing's list of its kind; points have one pane */
    uint32_t track;     /* key of the track (tracks.h); 0 for threads, which are tracks themselves */
    double top, bottom; /* top and bottom of the pane's plot */
    unsigned rows;      /* number of rows; for a loadline: the number of strips, or 1 for curves */
    bool is_collapsed;  /* only the name is visible */
    bool is_pinned;     /* it is above the tracks that scroll */
} pane;

enum {
    LAYOUT_PANES = 32,
    LAYOUT_LINE = 13 /* height of a collapsed pane */,
    LAYOUT_STRIPS_HEAD = 18 /* height of the line above strips */
};

typedef struct layout {
    double left, right; /* edges of the plot, which shows view->from_ns to view->to_ns */
    double legend_y, axis_y, caption_y;
    double top;                           /* top of the panes */
    double scroll_top, scroll_bottom;     /* the area of the panes that scroll; panes outside of it are invisible */
    double scroll, scroll_max;            /* the position of this area, and its maximum; 0: everything is visible */
    double caption_text_y;                /* the top of the view's caption */
    double overview_top, overview_bottom; /* top and bottom of the overview; equal if there is no overview */
    double overview_right;                /* right edge of the overview, whose left edge is `left` */
    double histogram_left; /* left edge of the histogram, whose right edge is `right`; equal to `right` if there is no
                              histogram */
    int64_t whole_from_ns, whole_to_ns; /* the time that the overview shows: the whole log, or the side of a large gap
                                           (checks.h) to which the view belongs */
    int64_t origin_ns;                  /* the start of the log */
    bool has_heat;                      /* the overview is the heat map of requests */
    bool has_title;                     /* there is space for the title */
    pane panes[LAYOUT_PANES];
    unsigned pane_count;
} layout;

/* Returns whether a part of a pane is visible. Sets *top and *bottom to the edges of the visible part. */
bool layout_visible(const layout *l, const pane *p, double *top, double *bottom);

layout layout_make(const model *m, const scene_view *view, cairo_t *cr);

/* Returns the x coordinate of a time. Times far outside the view are clamped. */
double layout_x(const layout *l, const scene_view *view, int64_t time_ns);

/* Returns the time at x, which may be outside the plot. */
int64_t layout_time(const layout *l, const scene_view *view, double x);

/* Like layout_x, but in the overview. */
double layout_overview_x(const layout *l, int64_t time_ns);
int64_t layout_overview_time(const layout *l, double x);

/* Returns the y coordinate of the middle of a row. Rows are numbered from the bottom. */
double layout_row_y(const pane *p, unsigned row);

#endif
