/* The list of views that the user has seen, in which the user can go back and forward. */
#ifndef NLV_HISTORY_H
#define NLV_HISTORY_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct history_view {
    int64_t from_ns, to_ns;
} history_view;

typedef struct history {
    GArray *views;     /* history_view */
    guint at;          /* index of the current view */
    gint64 changed_us; /* time of the last move */
} history;

void history_init(history *h);
void history_free(history *h); /* frees the members, not the struct */

/* Adds the view `now` after a move from `before`. Moves in quick succession count as one move. */
void history_move(history *h, history_view before, history_view now);

/* Goes to the previous (-1) or next (1) view. Returns false if no such view exists. */
bool history_go(history *h, int step, history_view *view);

#endif
