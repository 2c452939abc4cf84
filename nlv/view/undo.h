/*
 * What can be undone: the texts of a session (model/session.h) after each change. Whoever changes something need not
 * say so: the session is looked at now and then, and once it is another one and stays so for a moment, that is a step.
 */
#ifndef NLV_UNDO_H
#define NLV_UNDO_H

#include <gtk/gtk.h>
#include <stdbool.h>

typedef struct undo {
    GPtrArray *texts;
    guint at;   /* the one that holds now; meaningless while there is none */
    char *seen; /* when it was last looked at */
} undo;

void undo_init(undo *u);
void undo_free(undo *u); /* what it holds */

/* The session is that now; at_once: it is a step even when it has only just become so. Whether it is a new step. */
bool undo_look(undo *u, const char *text, bool at_once);

/* The text to go back to (-1) or forward again (1), which is what holds from now on; NULL when there is none. It stays
 * the undo's. */
const char *undo_go(undo *u, int step);

/* Forgets all steps. */
void undo_clear(undo *u);

#endif
