/* A table of text with a title. The table shows text without control characters, and aligns numbers at the right. */
#ifndef NLV_TABLE_H
#define NLV_TABLE_H

#include <gtk/gtk.h>
#include <stdint.h>

/* Returns a table. `columns` is a NULL-terminated array of headings. '#' before a heading marks a column of numbers. */
GtkWidget *table_new(const char *title, const char *const *columns);

/* Adds a row. `texts` contains one text for each column. */
void table_add(GtkWidget *table, const char *const *texts);

/* Makes a text of the latest row a link. `follow` is called with the numbers when the user activates the link. */
typedef void table_follow(void *user, int64_t first, uint64_t second);
void table_link(GtkWidget *table, int column, table_follow *follow, void *user, int64_t first, uint64_t second);

#endif
