/*
 * The editor's page for loadlines or points. The list on the left contains the log's fields or events. The list on the
 * right contains the drawn fields or events.
 */
#ifndef NLV_ROW_PAGE_H
#define NLV_ROW_PAGE_H

#include "model/catalog.h"

#include <gtk/gtk.h>
#include <stdbool.h>

typedef struct row_page row_page;

/* Returns a page for loadlines, or a page for points if `is_loadlines` is false. The page's widget owns the page. */
row_page *row_page_new(bool is_loadlines);
GtkWidget *row_page_widget(row_page *p);

/* Begins to edit the loadlines or points of d. d and the catalog must outlive the page. */
void row_page_edit(row_page *p, drawing *d, const catalog *c);

#endif
