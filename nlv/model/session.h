/*
 * A session: the state of a user's view of some logs, and the bookmarks. A session can be converted to text and parsed
 * again. Equal sessions have equal texts, so a changed text is a step that can be undone.
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
    char *note; /* "" if there is no note */
} session_mark;

typedef struct session {
    bool all;                     /* show the whole log, including future records; otherwise: */
    int64_t from_ns, to_ns;       /* the visible time range */
    char *filter;                 /* NULL: no filter */
    char **hidden[SESSION_NAMES]; /* the names whose boxes are not ticked, sorted, NULL-terminated */
    bool clocks;                  /* clocks are corrected */
    char *drawing;                /* the drawing as text; NULL: it is inferred */
    bool has_choice;              /* the lifeline of this record is chosen: */
    int64_t choice_ns;            /* time of the record */
    uint64_t choice_place;        /* place of the record */
    size_t choice_lifeline;       /* lifeline to which the record belongs as a step */
    GArray *marks;                /* session_mark, by time */
} session;

session *session_new(void);
void session_free(session *s);
session *session_copy(const session *s);

/*
 * Return the session as text, which the caller frees with g_free, and the session of a text, or NULL if the text is
 * invalid.
 */
char *session_text(const session *s);
session *session_parse(const char *text);

/* Returns the difference between two sessions: "the view", "the filter" ... */
const char *session_difference(const session *a, const session *b);

/* Adds a bookmark after other bookmarks with the same time, and returns its index. Copies the note. */
guint session_mark_add(session *s, int64_t time_ns, const char *note);
void session_mark_note(session *s, guint at, const char *note);
void session_mark_remove(session *s, guint at);

/* Returns the next bookmark after or before a time, or NULL if no bookmark is in that direction. */
const session_mark *session_mark_next(const session *s, int64_t time_ns, bool backwards);

/* Returns the path of the session file for some logs (paths or URLs, in any order). The caller frees it with g_free. */
char *session_path(char *const *sources, size_t count);

/* Read a session, or return NULL if there is no valid session; write a session, and return false on failure. */
session *session_read(const char *path);
bool session_write(const session *s, const char *path);

#endif
