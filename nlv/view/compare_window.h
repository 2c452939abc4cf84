/* The window that compares two groups of requests, two logs or two time ranges (model/comparison.h). */
#ifndef NLV_COMPARE_WINDOW_H
#define NLV_COMPARE_WINDOW_H

#include "model/model.h"

#include <gtk/gtk.h>

typedef struct compare_window compare_window;

/* Returns the window, which is hidden at first. The model must outlive the window. */
compare_window *compare_window_new(GtkWindow *parent, model *m);

/* Shows the window. `first` and `second` describe the sides (model/compare_query.h); NULL: an empty side. If both are
 * NULL, the window keeps its sides. Begins the comparison unless both sides are empty and there is only one log. */
void compare_window_show(compare_window *w, const char *first, const char *second, bool dark);

/* Shows a finished comparison. Call this function regularly. */
void compare_window_tick(compare_window *w);

#endif
