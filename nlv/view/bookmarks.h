/* The popover with the list of bookmarks and their notes. */
#ifndef NLV_BOOKMARKS_H
#define NLV_BOOKMARKS_H

#include "model/session.h"

#include <gtk/gtk.h>

typedef struct bookmarks bookmarks;

typedef struct bookmarks_callbacks {
    void (*changed)(void *user);             /* the user has edited a note or removed a bookmark */
    void (*go)(void *user, int64_t time_ns); /* the user wants to go to this time */
    void *user;
} bookmarks_callbacks;

/* Returns the list of bookmarks, which its popover owns. The popover points to relative_to. */
bookmarks *bookmarks_new(GtkWidget *relative_to, bookmarks_callbacks callbacks);

/*
 * Shows the bookmarks of a session, which the user can then change. The note of bookmark number `focus` gets the
 * keyboard focus, unless `focus` is -1.
 */
void bookmarks_show(bookmarks *b, session *s, int focus);

/* Replaces the session of bookmarks_show with `s`. Call the function before freeing the old session, for example when
 * nlv undoes a change. */
void bookmarks_replace_session(bookmarks *b, session *s);

#endif
