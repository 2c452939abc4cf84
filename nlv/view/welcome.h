/* What the first window offers when there is no log: those opened lately, an example, a collector's address. */
#ifndef NLV_WELCOME_H
#define NLV_WELCOME_H

#include <gtk/gtk.h>

typedef struct welcome_callbacks {
    void (*open)(void *user, const char *url); /* a log, or a collector */
    void (*choose)(void *user);                /* a log is to be chosen from files */
    void *user;
} welcome_callbacks;

GtkWidget *welcome_new(welcome_callbacks callbacks);

/* Puts the keyboard where a collector's address is typed. */
void welcome_begin_address(GtkWidget *welcome);

/* Remembers a log that was opened. */
void welcome_remember(const char *path);

/* Writes the example; returns its path, to be freed with g_free; NULL on failure. */
char *welcome_make_example(void);

#endif
