/* What the canvas shows, on paper. */
#ifndef NLV_PRINTING_H
#define NLV_PRINTING_H

#include "view/window_private.h"

/* Asks where, and prints the view with its caption, on a light ground whatever the window's is. */
void printing_print(window *w);

#endif
