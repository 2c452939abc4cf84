/* The layers of a scene, one file each. They draw into panes that layout.h has placed. */
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
    uint32_t *columns; /* the first record of each of column_count columns, one unit wide; then to */
    unsigned column_count;
    bool is_near;   /* the first records of columns are known to STORE_MARK only */
    bool is_raster; /* draws pixels; otherwise vectors (SVG, PDF) */
    double scale;   /* pixels per unit */
} layer_context;

/* The x of a record's time. */
double layer_x(const layer_context *c, uint32_t record);

/* The background: the pane, rows and their labels. */
void lifelines_layer_back(const layer_context *c, const pane *p);
void lifelines_layer_draw(const layer_context *c, const pane *p);
void points_layer_back(const layer_context *c, const pane *p);
void points_layer_draw(const layer_context *c, const pane *p);
void loadlines_layer_draw(const layer_context *c,
                          const pane *p); /* with its background, because the axis depends on the data */

/* The bookmarks of the view, in front of all panes. */
void marks_layer_draw(const layer_context *c);

/* The whole log in a strip, with the visible part marked. */
void overview_layer_draw(const layer_context *c);

/* A loadline's name with its unit, to be freed with g_free. The numbers of its axis take LOADLINE_NUMBERS units. */
char *loadlines_layer_name(const drawing_loadline *definition);
enum { LOADLINE_NUMBERS = 48 };

/* The rectangle of a pane; a row's line and label. */
void layer_pane(const layer_context *c, const pane *p);
void layer_row(const layer_context *c, const pane *p, unsigned row, const char *label);

/* Puts the mark nearest to a place into found, if it is nearer than found->distance (units). */
void lifelines_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found);
void points_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found);
void loadlines_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found);

#endif
