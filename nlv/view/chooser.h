/* Check boxes for events, hosts and programs: what is to be seen of the log. */
#ifndef NLV_CHOOSER_H
#define NLV_CHOOSER_H

#include "model/model.h"

#include <gtk/gtk.h>

typedef struct chooser chooser;

/* changed is called when a box was ticked or unticked. Belongs to its widget, a popover beside relative_to. */
chooser *chooser_new(model *m, GtkWidget *relative_to, void (*changed)(void *user), void *user);

/* Shows it, with what the log holds by now. */
void chooser_show(chooser *c);

/* The expression that says what is ticked, to be freed with g_free; NULL when all is. */
char *chooser_expression(const chooser *c);

#endif
