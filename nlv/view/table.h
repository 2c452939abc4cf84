/* A table of text that grows by rows: a heading above, columns, those of numbers to the right. */
#ifndef NLV_TABLE_H
#define NLV_TABLE_H

#include <gtk/gtk.h>

/* columns are their headings, NULL at the end; those that begin with '#' are of numbers, and lose it. */
GtkWidget *table_new(const char *title, const char *const *columns);

/* Adds a row of as many texts. */
void table_add(GtkWidget *table, const char *const *texts);

#endif
