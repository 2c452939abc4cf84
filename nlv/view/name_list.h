/* A list of names with multiple selection. */
#ifndef NLV_NAME_LIST_H
#define NLV_NAME_LIST_H

#include <gtk/gtk.h>

typedef struct name_list name_list;

/* title is its heading. activated is called after a double click or Enter. Belongs to its widget. */
name_list *name_list_new(const char *title, void (*activated)(void *user), void *user);
GtkWidget *name_list_widget(name_list *l);

/* Shows other names (NULL at the end), which are copied. */
void name_list_set(name_list *l, char *const *names);

/* Returns the indices (int) of the chosen names; the caller frees the array with g_array_free. */
GArray *name_list_chosen(const name_list *l);

/* Chooses only the name at an index, and shows it. */
void name_list_choose(name_list *l, int place);

#endif
