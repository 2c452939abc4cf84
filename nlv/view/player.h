/* The bar that plays: a button, how quickly, and a slider for where in the log one is. */
#ifndef NLV_PLAYER_H
#define NLV_PLAYER_H

#include <gtk/gtk.h>
#include <stdbool.h>

typedef struct player player;

typedef struct player_callbacks {
    void (*play)(void *user);               /* begins, or ends */
    void (*faster)(void *user, bool is_it); /* otherwise slower */
    void (*seek)(void *user, double share); /* the middle of the view goes to that share of the log, 0 to 1 */
    void *user;
} player_callbacks;

/* Belongs to its widget and goes with it. */
player *player_new(player_callbacks callbacks);
GtkWidget *player_widget(player *p);

/* Shows where one is, and how quickly it plays; 0: not. */
void player_show(player *p, double share, double speed, double speed_when_played);

#endif
