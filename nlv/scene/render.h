/* A view drawn into a file, without any display: PNG, SVG or PDF, by the name's end. */
#ifndef NLV_RENDER_H
#define NLV_RENDER_H

#include "scene/scene.h"

/* Draws and writes. Returns false on failure. */
bool render_to_file(const model *m, const scene_view *view, const char *path);

/* Whether the name ends as one of the formats does. */
bool render_knows(const char *path);

#endif
