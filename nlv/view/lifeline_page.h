/* The editor's page for lifelines, one at a time. */
#ifndef NLV_LIFELINE_PAGE_H
#define NLV_LIFELINE_PAGE_H

#include "model/catalog.h"

#include <gtk/gtk.h>

typedef struct lifeline_page lifeline_page;

/* Returns a page, which its widget owns. */
lifeline_page *lifeline_page_new(void);
GtkWidget *lifeline_page_widget(lifeline_page *p);

/* Makes d the drawing to edit. d and the catalog must outlive the page. */
void lifeline_page_edit(lifeline_page *p, drawing *d, const catalog *c);

#endif
