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

/*
 * The names that are not ticked, of events (0), hosts (1) or programs (2): by name, NULL at the end, to be freed with
 * g_strfreev. And unticks just these, whether the log has them yet or not, without telling that something changed.
 */
char **chooser_hidden(const chooser *c, int group);
void chooser_hide(chooser *c, int group, char *const *names);

#endif
