/*
 * The editor's page for loadlines or points: the log's fields or events at the left, the drawn fields or events at the
 * right.
 */
#ifndef NLV_ROW_PAGE_H
#define NLV_ROW_PAGE_H

#include "model/catalog.h"

#include <gtk/gtk.h>
#include <stdbool.h>

typedef struct row_page row_page;

/* Belongs to its widget. is_loadlines: for loadlines, otherwise for points. */
row_page *row_page_new(bool is_loadlines);
GtkWidget *row_page_widget(row_page *p);

/* Edits d from now on. d and the catalog must outlive the page. */
void row_page_edit(row_page *p, drawing *d, const catalog *c);

#endif
