/* Draws a view into a PNG, SVG or PDF file, by the ending of its name. Needs no display. */
#ifndef NLV_RENDER_H
#define NLV_RENDER_H

#include "scene/scene.h"

/* Returns false and sets the error on failure. */
bool render_to_file(const model *m, const scene_view *view, const char *path);

/* Returns whether the name has the ending of a known format. */
bool render_knows(const char *path);

#endif
