/*
 * A session is the state of a user's view of a set of logs, with the bookmarks. The module converts sessions to text
 * and back. Equal sessions have equal texts. The window compares texts to detect changes that the user can undo.
 *
 * Files are in $XDG_DATA_HOME/netlogger/sessions, one for each set of logs. Does not use GTK.
 */
#ifndef NLV_SESSION_H
#define NLV_SESSION_H

#include "model/tracks.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum { SESSION_NAMES = 3 }; /* the groups of names: events, hosts and programs */

/* A bookmark. */
typedef struct session_mark {
    int64_t time_ns;
    char *note; /* "" if there is no note */
} session_mark;

typedef struct session {
    bool all;                     /* show the whole log, including future records; otherwise, show this range: */
    int64_t from_ns, to_ns;       /* visible range in nanoseconds since 1970 */
    char *filter;                 /* NULL: no filter */
    char **hidden[SESSION_NAMES]; /* the names whose boxes are not ticked, sorted, NULL-terminated */
    bool clocks;                  /* nlv corrects clocks */
    char *drawing;                /* the drawing as text; NULL: an inferred drawing */
    bool has_choice;              /* the user has chosen a request, by one of its records: */
    int64_t choice_ns;            /* time of the record */
    uint64_t choice_place;        /* place of the record (batch.h) */
    size_t choice_lifeline;       /* index of the lifeline that contains the record */
    unsigned clock;               /* how times are written (axis_clock) */
    bool threads;                 /* a row for each thread is shown */
    track_set collapsed, expanded, pinned;
    GArray *marks; /* session_mark, by time */
} session;

session *session_new(void);
void session_free(session *s);
session *session_copy(const session *s);

/*
 * session_text returns the session as text, which the caller frees with g_free. session_parse returns the session that
 * a text describes, or NULL if the text is invalid.
 */
char *session_text(const session *s);
session *session_parse(const char *text);

/* Returns a description of the part in which two sessions differ, such as "the view" or "the filter". */
const char *session_difference(const session *a, const session *b);

/* Adds a bookmark after other bookmarks with the same time, and returns its index. Copies `note`. */
guint session_mark_add(session *s, int64_t time_ns, const char *note);
void session_mark_note(session *s, guint at, const char *note);
void session_mark_remove(session *s, guint at);

/* Returns the next bookmark after or before a time, or NULL if there is no such bookmark. */
const session_mark *session_mark_next(const session *s, int64_t time_ns, bool backwards);

/* Returns the path of the session file for some logs (paths or URLs, in any order). The caller frees it with g_free. */
char *session_path(char *const *sources, size_t count);

/* session_read returns NULL if the file at `path` does not contain a valid session. session_write returns false and
 * sets the error on failure. */
session *session_read(const char *path);
bool session_write(const session *s, const char *path);

#endif
