/* A popover with check boxes for events, hosts and programs. nlv shows the records whose check boxes are ticked. */
#ifndef NLV_CHOOSER_H
#define NLV_CHOOSER_H

#include "model/model.h"

#include <gtk/gtk.h>

typedef struct chooser chooser;

/* Returns a chooser, which its popover owns. Calls `changed` after the user has ticked or unticked a check box. The
 * popover points to relative_to. */
chooser *chooser_new(model *m, GtkWidget *relative_to, void (*changed)(void *user), void *user);

/* Shows the popover with the model's current names. */
void chooser_show(chooser *c);

/* Returns the expression for the ticked boxes, or NULL if all boxes are ticked. The caller frees it with g_free. */
char *chooser_expression(const chooser *c);

/*
 * Returns the names of events (0), hosts (1) or programs (2) that are not ticked, sorted and NULL-terminated. The
 * caller frees them with g_strfreev. chooser_hide unticks exactly these boxes, without calling `changed`.
 */
char **chooser_hidden(const chooser *c, int group);
void chooser_hide(chooser *c, int group, char *const *names);

#endif
