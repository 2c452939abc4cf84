/*
 * Saves and prints the picture, and saves the records of the chosen lifeline, the marked time range, the view or the
 * whole log. The module owns the caption and counts the threads that write records.
 */
#ifndef NLV_EXPORTING_H
#define NLV_EXPORTING_H

#include "view/canvas.h"

typedef struct exporting exporting;

/* Returns a new object. `say` shows a message in the window. The arguments must outlive the object. */
exporting *exporting_new(GtkWindow *window, model *m, canvas *c, void (*say)(void *user, const char *text), void *user);
void exporting_free(exporting *e);

/* Each function asks the user for a file name, and shows the result. A thread writes the records. */
void exporting_picture(exporting *e);
void exporting_records(exporting *e);

void exporting_print(exporting *e);

/* Returns whether a thread is still writing records and therefore needs the model. */
bool exporting_is_busy(const exporting *e);

#endif
