/*
 * The page of the editor on which fields are put into loadlines, or events into points: what the log has to offer at
 * the left, what is drawn at the right, a row each.
 */
#ifndef NLV_ROW_PAGE_H
#define NLV_ROW_PAGE_H

#include "model/catalog.h"

#include <gtk/gtk.h>
#include <stdbool.h>

typedef struct row_page row_page;

/* Belongs to its widget and goes with it. is_loadlines: of loadlines, otherwise of points. */
row_page *row_page_new(bool is_loadlines);
GtkWidget *row_page_widget(row_page *p);

/* Edits d from now on, which is changed as the user goes along, with what the log has to offer. Both outlive it. */
void row_page_edit(row_page *p, drawing *d, const catalog *c);

#endif
