/* The page of the editor on which events are put into lifelines: one lifeline at a time. */
#ifndef NLV_LIFELINE_PAGE_H
#define NLV_LIFELINE_PAGE_H

#include "model/catalog.h"

#include <gtk/gtk.h>

typedef struct lifeline_page lifeline_page;

/* Belongs to its widget and goes with it. */
lifeline_page *lifeline_page_new(void);
GtkWidget *lifeline_page_widget(lifeline_page *p);

/* Edits d from now on, which is changed as the user goes along, with what the log has to offer. Both outlive it. */
void lifeline_page_edit(lifeline_page *p, drawing *d, const catalog *c);

#endif
