#include "config.h"

#include "view/session_keeper.h"

#include "program/program.h"

#include <string.h>

enum { TICK_US = 300000, STEPS_MAX = 300 };

struct session_keeper {
    session_callbacks callbacks;
    session *session;
    session *last;      /* the session of the last run, or NULL */
    char *path;         /* path of the session file; NULL: no log is open */
    GPtrArray *sources; /* char *: paths and URLs of the logs */
    GPtrArray *steps;   /* char *: sessions as text */
    guint step;         /* index of the current step, if there are steps */
    char *seen;         /* the session at the latest tick, as text */
    gint64 ticked_us;
};

session_keeper *session_keeper_new(session_callbacks callbacks)
{
    session_keeper *k = g_new0(session_keeper, 1);
    k->callbacks = callbacks;
    k->session = session_new();
    k->sources = g_ptr_array_new_with_free_func(g_free);
    k->steps = g_ptr_array_new_with_free_func(g_free);
    return k;
}

void session_keeper_free(session_keeper *k)
{
    session_free(k->session);
    session_free(k->last);
    g_ptr_array_free(k->sources, TRUE);
    g_ptr_array_free(k->steps, TRUE);
    g_free(k->path);
    g_free(k->seen);
    g_free(k);
}

session *session_keeper_session(const session_keeper *k)
{
    return k->session;
}

static void session_keeper_note(session_keeper *k)
{
    k->callbacks.note(k->callbacks.user, k->session);
}

/* ---- steps ---- */

static void push_step(session_keeper *k, const char *text)
{
    if (k->steps->len > 0)
        g_ptr_array_set_size(k->steps, (gint)k->step + 1);
    if (k->steps->len == STEPS_MAX)
        g_ptr_array_remove_index(k->steps, 0);
    g_ptr_array_add(k->steps, g_strdup(text));
    k->step = k->steps->len - 1;
}

/* Makes the current session a step if it differs from the current step and has not changed since the latest tick. If
 * `at_once` is true, ignores the second condition. Returns whether there is a new step. */
static bool session_keeper_add_step(session_keeper *k, bool at_once)
{
    session_keeper_note(k);
    char *text = session_text(k->session);
    bool is_new = k->steps->len == 0 || strcmp(g_ptr_array_index(k->steps, k->step), text) != 0;
    bool is_step = is_new && (k->steps->len == 0 || at_once || g_strcmp0(k->seen, text) == 0);
    if (is_step)
        push_step(k, text);
    g_free(k->seen);
    k->seen = text;
    return is_step;
}

void session_keeper_tick(session_keeper *k)
{
    gint64 now_us = g_get_monotonic_time();
    if (now_us - k->ticked_us < TICK_US || k->sources->len == 0)
        return;
    k->ticked_us = now_us;
    bool is_first = k->steps->len == 0;
    if (session_keeper_add_step(k, false) && !is_first)
        session_keeper_save(k); /* save notes now, so that they survive a crash */
}

/* Applies a session and takes ownership of it. */
static void apply_session(session_keeper *k, session *s)
{
    session_keeper_note(k);
    session *before = k->session;
    k->session = s;
    k->callbacks.apply(k->callbacks.user, before, s);
    session_free(before);
}

const char *session_keeper_undo(session_keeper *k, int step)
{
    session_keeper_add_step(k, step < 0);
    if (k->steps->len == 0 || (step < 0 ? k->step == 0 : k->step + 1 >= k->steps->len))
        return NULL;
    k->step += (guint)step;
    const char *text = g_ptr_array_index(k->steps, k->step);
    session *s = session_parse(text);
    if (s == NULL)
        return NULL;
    g_free(k->seen);
    k->seen = g_strdup(text);
    const char *difference = session_difference(k->session, s);
    apply_session(k, s);
    return difference;
}

/* ---- the file ---- */

static void copy_marks(session *to, const session *from)
{
    for (guint i = 0; i < from->marks->len; i++) {
        const session_mark *mark = &g_array_index(from->marks, session_mark, i);
        session_mark_add(to, mark->time_ns, mark->note);
    }
}

void session_keeper_opened(session_keeper *k, const char *url)
{
    g_ptr_array_add(k->sources, g_strdup(url));
    g_free(k->path);
    k->path = session_path((char *const *)k->sources->pdata, k->sources->len);
    session_free(k->last);
    k->last = session_read(k->path);
    if (k->last != NULL && k->session->marks->len == 0)
        copy_marks(k->session, k->last);
    g_ptr_array_set_size(k->steps, 0);
    g_clear_pointer(&k->seen, g_free);
    k->step = 0;
}

bool session_keeper_restore(session_keeper *k)
{
    if (k->last == NULL)
        return false;
    session *s = session_copy(k->last);
    g_array_set_size(s->marks, 0);
    copy_marks(s, k->session);
    apply_session(k, s);
    return true;
}

/* Returns whether a session differs from an empty session. */
static bool is_worth_saving(const session *s)
{
    session *empty = session_new();
    char *own = session_text(s), *other = session_text(empty);
    const bool differs = strcmp(own, other) != 0;
    g_free(own);
    g_free(other);
    session_free(empty);
    return differs;
}

void session_keeper_save(session_keeper *k)
{
    session_keeper_note(k);
    if (k->path == NULL || (!is_worth_saving(k->session) && k->last == NULL))
        return;
    if (!session_write(k->session, k->path))
        program_print_error();
}
