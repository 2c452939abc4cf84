/*
 * A session: how somebody looks at some logs, and what they noted down about them. It is kept as a small text, from
 * which all of it can be brought back; whatever changes in the window changes that text, and undoing is going back to
 * an earlier one.
 *
 * The texts are kept in $XDG_DATA_HOME/netlogger/sessions, one for each set of logs. No GTK.
 */
#ifndef NLV_SESSION_H
#define NLV_SESSION_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum { SESSION_NAMES = 3 }; /* events, hosts, programs */

/* A place in time with what was noted about it. */
typedef struct session_mark {
    int64_t time_ns;
    char *note; /* "" when there is none */
} session_mark;

typedef struct session {
    bool all;                     /* the whole log is shown, also what is yet to come; otherwise: */
    int64_t from_ns, to_ns;       /* what is visible */
    char *filter;                 /* NULL: none */
    char **hidden[SESSION_NAMES]; /* what is not ticked, by name; NULL at the end */
    bool clocks;                  /* they are set right */
    char *drawing;                /* the file of what is drawn; NULL: what was found out */
    bool has_choice;              /* a lifeline is chosen: that of the record at */
    int64_t choice_ns;            /* this time, */
    uint64_t choice_place;        /* this place */
    size_t choice_lifeline;       /* as a step of this one */
    GArray *marks;                /* session_mark, by time */
} session;

session *session_new(void);
void session_free(session *s);
session *session_copy(const session *s);

/* As text, to be freed with g_free; equal sessions give equal texts. And back: NULL when it is none. */
char *session_text(const session *s);
session *session_parse(const char *text);

/* What is different: "the view", "the filter" ... */
const char *session_difference(const session *a, const session *b);

/* Adds a mark, the note copied, and returns its place. Others at the same time stay before it. */
guint session_mark_add(session *s, int64_t time_ns, const char *note);
void session_mark_note(session *s, guint at, const char *note);
void session_mark_remove(session *s, guint at);

/* The next mark after a time, or before it; NULL when there is none. */
const session_mark *session_mark_next(const session *s, int64_t time_ns, bool backwards);

/* The file of the session of some logs (paths or URLs, in any order), to be freed with g_free. */
char *session_path(char *const *sources, size_t count);

/* Reads the file; NULL when there is none, or it is damaged. Writes it, its folder too; returns false on
 * failure. */
session *session_read(const char *path);
bool session_write(const session *s, const char *path);

#endif
