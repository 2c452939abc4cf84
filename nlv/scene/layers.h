/* The layers of a scene, one file each: they draw into a pane that layout.h has placed. */
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
    uint32_t from, to; /* the records that are visible: [from, to) */
    uint32_t *columns; /* the first record in each of column_count columns of the plot, one unit wide; then to */
    unsigned column_count;
    bool is_near;   /* columns begin so many records apart that their first ones are known only about (STORE_MARK) */
    bool is_raster; /* drawn on pixels; otherwise (SVG, PDF) on paper */
    double scale;   /* pixels to a unit */
} layer_context;

/* The place of a record's time. */
double layer_x(const layer_context *c, uint32_t record);

/* What is behind the data: the pane itself, rows and their labels. */
void lifelines_layer_back(const layer_context *c, const pane *p);
void lifelines_layer_draw(const layer_context *c, const pane *p);
void points_layer_back(const layer_context *c, const pane *p);
void points_layer_draw(const layer_context *c, const pane *p);
void loadlines_layer_draw(const layer_context *c, const pane *p); /* back and front: its axis depends on the data */

/* The bookmarks of the view, before all panes. */
void marks_layer_draw(const layer_context *c);

/* The whole log in a strip, the part that is visible marked. */
void overview_layer_draw(const layer_context *c);

/* A loadline's name with its unit, to be freed with g_free; the numbers of its axis stand behind it, so wide at most.
 */
char *loadlines_layer_name(const drawing_loadline *definition);
enum { LOADLINE_NUMBERS = 48 };

/* The rectangle of a pane; a row's line and label. */
void layer_pane(const layer_context *c, const pane *p);
void layer_row(const layer_context *c, const pane *p, unsigned row, const char *label);

/* The mark nearest to a place in a pane, nearer than found->distance (units), is put into found. */
void lifelines_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found);
void points_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found);
void loadlines_layer_find(const layer_context *c, const pane *p, double x, double y, scene_found *found);

#endif
