/* The list of bookmarks with their notes, which are typed there: a popover. */
#ifndef NLV_BOOKMARKS_H
#define NLV_BOOKMARKS_H

#include "model/session.h"

#include <gtk/gtk.h>

typedef struct bookmarks bookmarks;

typedef struct bookmarks_callbacks {
    void (*changed)(void *user);             /* a note was written, a bookmark removed */
    void (*go)(void *user, int64_t time_ns); /* that time is to be shown */
    void *user;
} bookmarks_callbacks;

/* Belongs to its popover, beside relative_to. */
bookmarks *bookmarks_new(GtkWidget *relative_to, bookmarks_callbacks callbacks);

/* Shows the marks of a session, which are changed as the user goes along; focus: whose note is typed next, or -1. */
void bookmarks_show(bookmarks *b, session *s, int focus);

#endif
