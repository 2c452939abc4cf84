/* The editor's page for lifelines. The page shows one lifeline at a time. */
#ifndef NLV_LIFELINE_PAGE_H
#define NLV_LIFELINE_PAGE_H

#include "model/catalog.h"

#include <gtk/gtk.h>

typedef struct lifeline_page lifeline_page;

/* Returns a page, which its widget owns. */
lifeline_page *lifeline_page_new(void);
GtkWidget *lifeline_page_widget(lifeline_page *p);

/* Begins to edit the lifelines of d. d and the catalog must outlive the page. */
void lifeline_page_edit(lifeline_page *p, drawing *d, const catalog *c);

#endif
