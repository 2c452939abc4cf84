/*
 * The bar in which expressions are typed: what to find, match after match, and what to show only. Hidden until it is
 * asked for.
 */
#ifndef NLV_SEARCH_BAR_H
#define NLV_SEARCH_BAR_H

#include "model/model.h"

#include <gtk/gtk.h>

typedef struct search_bar search_bar;

typedef struct search_bar_callbacks {
    int64_t (*where)(void *user, bool backwards);                /* the time from which on the next match is wanted */
    void (*found)(void *user, int64_t time_ns, uint32_t record); /* STORE_NONE: it is no longer there */
    bool (*filter)(void *user, const char *expression); /* show that only, NULL: all; false: it is no expression */
    void (*left)(void *user);                           /* keys go elsewhere again */
    void *user;
} search_bar_callbacks;

/* Belongs to its widget and goes with it. The model must outlive it. */
search_bar *search_bar_new(model *m, search_bar_callbacks callbacks);
GtkWidget *search_bar_widget(search_bar *b);

void search_bar_begin_find(search_bar *b);
void search_bar_begin_filter(search_bar *b);
void search_bar_next(search_bar *b, bool backwards);

/* What is shown only, as it was typed (NULL: all), so that the bar says it too. */
void search_bar_set_filter(search_bar *b, const char *expression);

/* Hides it; whether it was to be seen. What is shown only stays so. */
bool search_bar_hide(search_bar *b);

/* To be called now and then: a search goes on by itself, and this shows how far it is. */
void search_bar_tick(search_bar *b);

#endif
