/* The views that the user has been at: back, and forward again. */
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
    guint at;          /* the one that is shown */
    gint64 changed_us; /* when it was last moved */
} history;

void history_init(history *h);
void history_free(history *h); /* what it holds */

/* The view has become another one. Moves that follow each other quickly are one. */
void history_move(history *h, history_view before, history_view now);

/* Gives the view before or after the present one; false when there is none. */
bool history_go(history *h, int step, history_view *view);

#endif
