/*
 * A session: how a user looks at some logs, with the bookmarks. A session can be written as text and parsed again;
 * equal sessions have equal texts, so that a changed text is a step that can be undone.
 *
 * Files are in $XDG_DATA_HOME/netlogger/sessions, one for each set of logs. No GTK.
 */
#ifndef NLV_SESSION_H
#define NLV_SESSION_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum { SESSION_NAMES = 3 }; /* events, hosts, programs */

/* A bookmark. */
typedef struct session_mark {
    int64_t time_ns;
    char *note; /* "" if none exists */
} session_mark;

typedef struct session {
    bool all;                     /* the whole log is shown, with records to come; otherwise: */
    int64_t from_ns, to_ns;       /* the visible time range */
    char *filter;                 /* NULL: none */
    char **hidden[SESSION_NAMES]; /* the names whose boxes are not ticked, sorted; NULL at the end */
    bool clocks;                  /* clocks are corrected */
    char *drawing;                /* the drawing as text; NULL: it is inferred */
    bool has_choice;              /* the lifeline of the record with this time and place is chosen: */
    int64_t choice_ns;            /* this time, */
    uint64_t choice_place;        /* this place, */
    size_t choice_lifeline;       /* as a step of this lifeline */
    GArray *marks;                /* session_mark, by time */
} session;

session *session_new(void);
void session_free(session *s);
session *session_copy(const session *s);

/* Return the session as text, to be freed with g_free; and the session of a text, or NULL if the text is invalid. */
char *session_text(const session *s);
session *session_parse(const char *text);

/* Returns the difference between two sessions: "the view", "the filter" ... */
const char *session_difference(const session *a, const session *b);

/* Adds a bookmark after others of its time, and returns its place. The note is copied. */
guint session_mark_add(session *s, int64_t time_ns, const char *note);
void session_mark_note(session *s, guint at, const char *note);
void session_mark_remove(session *s, guint at);

/* Returns the next bookmark after or before a time; NULL if none exists. */
const session_mark *session_mark_next(const session *s, int64_t time_ns, bool backwards);

/* Returns the path of the session of some logs (paths or URLs, in any order), to be freed with g_free. */
char *session_path(char *const *sources, size_t count);

/* Reads a session, NULL if there is no valid one; writes it, and returns false on failure. */
session *session_read(const char *path);
bool session_write(const session *s, const char *path);

#endif
