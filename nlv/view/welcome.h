/* The page that nlv shows while no log is open: recent logs, an example, and an entry for the address of a collector.
 */
#ifndef NLV_WELCOME_H
#define NLV_WELCOME_H

#include <gtk/gtk.h>

typedef struct welcome_callbacks {
    void (*open)(void *user, const char *url); /* open a log or a collector */
    void (*choose)(void *user);                /* let the user choose a file */
    void *user;
} welcome_callbacks;

GtkWidget *welcome_new(welcome_callbacks callbacks);

/* Moves the focus to the entry for a collector's address. */
void welcome_begin_address(GtkWidget *welcome);

/* Adds a log to the recent logs. */
void welcome_remember(const char *path);

#endif
