/* A list of names with multiple selection. */
#ifndef NLV_NAME_LIST_H
#define NLV_NAME_LIST_H

#include <gtk/gtk.h>

typedef struct name_list name_list;

/* Returns a list with a heading. The list's widget owns the list. Calls `activated` after a double click or Enter. */
name_list *name_list_new(const char *title, void (*activated)(void *user), void *user);
GtkWidget *name_list_widget(name_list *l);

/* Replaces the names. The array is NULL-terminated; the list copies the names. */
void name_list_set(name_list *l, char *const *names);

/* Returns the indices (int) of the chosen names. The caller frees the array with g_array_free. */
GArray *name_list_chosen(const name_list *l);

/* Chooses only the name at the index `place`, and scrolls to this name. */
void name_list_choose(name_list *l, int place);

#endif
