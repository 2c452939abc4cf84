/* Moves the view automatically: follows the log in real time, or plays the log like a film. The module owns the button
 * "Follow" or "Pause", the player (button, slider, speed) and the speed. The module moves the canvas's view. */
#ifndef NLV_PLAYBACK_H
#define NLV_PLAYBACK_H

#include "view/canvas.h"

typedef struct playback playback;

typedef struct playback_callbacks {
    void (*changed)(void *user); /* the view has moved automatically, or following or playing has begun or ended */
    void *user;
} playback_callbacks;

/* Returns the playback, which its player widget owns. The canvas must outlive the playback. */
playback *playback_new(model *m, canvas *c, playback_callbacks callbacks);
GtkWidget *playback_player(const playback *p);
GtkWidget *playback_button(const playback *p);

bool playback_is_live(const playback *p);
void playback_set_live(playback *p, bool live);

/* Moves the view so that the newest record is near the right edge. The width of the view does not change. */
void playback_follow(playback *p);

/* Returns the speed as a multiple of real time, or 0 if the log is not playing. */
double playback_speed(const playback *p);

/* Stops if the log is playing; otherwise, begins to play at the last speed. */
void playback_toggle(playback *p);

/* Plays at the last speed multiplied by `factor`. */
void playback_speed_up(playback *p, double factor);

/* Ends playing and following in real time. Call this function when the user has moved the view. */
void playback_stop(playback *p);

/* Moves the view according to the time since the last call, and updates the player. */
void playback_tick(playback *p);

#endif
