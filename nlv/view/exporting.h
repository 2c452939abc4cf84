/* Saving the picture with a caption, and the records of what is chosen, marked or visible. */
#ifndef NLV_EXPORTING_H
#define NLV_EXPORTING_H

#include "view/window_private.h"

/* Each asks for a name, and says what came of it. Records are written by a thread; the window lives on. */
void exporting_picture(window *w);
void exporting_records(window *w);

#endif
