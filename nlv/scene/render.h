/* Writes a view or a comparison to a PNG, SVG or PDF file; the file name's extension selects the format. Needs no
 * display. */
#ifndef NLV_RENDER_H
#define NLV_RENDER_H

#include "scene/comparison_drawing.h"
#include "scene/scene.h"

/* Write the picture. Return false and set the error on failure. */
bool render_to_file(const model *m, const scene_view *view, const char *path);
bool render_comparison_to_file(const comparison *c, const comparison_view *view, const char *path);

/* Returns whether the file name has the extension of a known format. */
bool render_knows(const char *path);

#endif
