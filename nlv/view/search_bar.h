/* The bar with the entries "Find" and "Show only". The bar is hidden at first. */
#ifndef NLV_SEARCH_BAR_H
#define NLV_SEARCH_BAR_H

#include "model/model.h"

#include <gtk/gtk.h>

typedef struct search_bar search_bar;

typedef struct search_bar_callbacks {
    int64_t (*where)(void *user, bool backwards); /* returns the time at which the search for the next match begins */
    void (*found)(void *user, int64_t time_ns, uint32_t record); /* STORE_NONE: the match is no longer in memory */
    bool (*filter)(void *user,
                   const char *expression); /* Shows only records that match `expression` (NULL: all records). Returns
                                               false and sets the error if the expression is invalid. */
    void (*left)(void *user);               /* the callback must move the focus to a widget outside the bar */
    void *user;
} search_bar_callbacks;

/* Returns a search bar, which its widget owns. The model must outlive the search bar. */
search_bar *search_bar_new(model *m, search_bar_callbacks callbacks);
GtkWidget *search_bar_widget(search_bar *b);

void search_bar_begin_find(search_bar *b);
void search_bar_begin_filter(search_bar *b);
void search_bar_next(search_bar *b, bool backwards);

/* Shows a filter in its entry; NULL means no filter. */
void search_bar_set_filter(search_bar *b, const char *expression);

/* Hides the bar and ends the search. The filter stays active. Returns whether the bar was visible. */
bool search_bar_hide(search_bar *b);

/* Shows the progress and the result of a search. Call this function often. */
void search_bar_tick(search_bar *b);

#endif
