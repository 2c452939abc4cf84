/*
 * Filters by color: shows only the requests with a color (isolates it), or hides them. Such a filter is a part of the
 * model's filter on requests (filters.h): the terms any(FIELD == "VALUE") and !any(FIELD == "VALUE") follow the user's
 * other conditions. The user therefore sees the colors in the filter, and links and sessions contain them. This module
 * has no state. The caller must lock the model.
 */
#ifndef NLV_COLOR_FILTER_H
#define NLV_COLOR_FILTER_H

#include "model/model.h"

enum { COLOR_FILTER_MAX = 256 /* the module ignores further colors */ };

/* Returns the field whose value has a color, DRAWING_COLOR_LOG for the name of a log, or NULL. */
const char *color_filter_field(const model *m, size_t color);

/* Returns whether a filter can isolate and hide a color. */
bool color_filter_is_possible(const model *m, size_t color);

/* Sets is_hidden[i] to whether the model's filter hides the color i, or isolates other colors. Returns the number of
 * elements that the function has set. */
size_t color_filter_find_hidden(const model *m, bool is_hidden[COLOR_FILTER_MAX]);

/*
 * Returns the filter that isolates a color or, if the color is isolated, shows all colors. If `hides` is true, returns
 * the filter that hides the color or, if the color is hidden, shows it. The result keeps the other conditions of the
 * model's filter. Returns NULL for no filter. The caller frees the result with g_free.
 */
char *color_filter_toggle(const model *m, size_t color, bool hides);

#endif
