/* The layers of a scene, one file each: they draw into a pane that layout.h has placed. */
#ifndef NLV_LAYERS_H
#define NLV_LAYERS_H

#include "scene/layout.h"
#include "scene/palette.h"

typedef struct layer_context {
    const model *model;
    const scene_view *view;
    const layout *layout;
    cairo_t *cr;
} layer_context;

/* The colour that the model has given a string. */
color layer_color(const layer_context *c, uint32_t string);

/* What is behind the data: the pane itself, rows and their labels. */
void lifelines_layer_back(const layer_context *c, const pane *p);
void lifelines_layer_draw(const layer_context *c, const pane *p);
void points_layer_back(const layer_context *c, const pane *p);
void points_layer_draw(const layer_context *c, const pane *p);
void loadlines_layer_draw(const layer_context *c, const pane *p); /* back and front: its axis depends on the data */

/* A loadline's name with its unit, to be freed with g_free; the numbers of its axis stand behind it, so wide at most.
 */
char *loadlines_layer_name(const drawing_loadline *definition);
enum { LOADLINE_NUMBERS = 48 };

/* The rectangle of a pane; a row's line and label. */
void layer_pane(const layer_context *c, const pane *p);
void layer_row(const layer_context *c, const pane *p, unsigned row, const char *label);

/*
 * The mark nearest to a place in a pane, nearer than *distance (in pixels), which is then set, with its record and
 * object (-1).
 */
void lifelines_layer_find(const layer_context *c, const pane *p, double x, double y, double *distance, size_t *record,
                          int64_t *object);
void points_layer_find(const layer_context *c, const pane *p, double x, double y, double *distance, size_t *record);

#endif
