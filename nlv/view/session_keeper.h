/*
 * Keeps the session of the open logs (model/session.h) in a file between runs, and as steps that the user can undo. The
 * module owns the session, its bookmarks and the steps. The window's callbacks store the state of the view in a
 * session, and show the view of another session.
 */
#ifndef NLV_SESSION_KEEPER_H
#define NLV_SESSION_KEEPER_H

#include "model/session.h"

typedef struct session_keeper session_keeper;

typedef struct session_callbacks {
    void (*note)(void *user, session *s); /* stores the state of the view in s, except its bookmarks */
    /* Changes the view from the state `before` to the state `now`. */
    void (*apply)(void *user, const session *before, const session *now);
    void *user;
} session_callbacks;

session_keeper *session_keeper_new(session_callbacks callbacks);
void session_keeper_free(session_keeper *k);

/* Returns the session. The bookmarks are up to date. The other members have the values of the latest call of `note`. */
session *session_keeper_session(const session_keeper *k);

/* Adds an open log to the session, and restores the bookmarks of the open logs. Forgets all steps. Call this function
 * after opening a log. */
void session_keeper_opened(session_keeper *k, const char *url);

/* Makes a change of the session a step, and saves the session, when the change has lasted for about 0.3 s. Call this
 * function often. */
void session_keeper_tick(session_keeper *k);

/* Goes a step back (-1) or forward (1). Returns a description of the change, or NULL if there is no such step. */
const char *session_keeper_undo(session_keeper *k, int step);

/* Applies the session of the previous run. Returns false if there is no such session. */
bool session_keeper_restore(session_keeper *k);

/* Writes the session to its file. Does nothing if no log is open, or if the session is empty and the file does not
 * exist. */
void session_keeper_save(session_keeper *k);

#endif
