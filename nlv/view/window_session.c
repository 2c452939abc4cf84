/* How the window's logs are looked at: kept from one time to the next, undone, bookmarked. */
#include "config.h"

#include "view/window_private.h"

#include <string.h>

enum { LOOK_US = 300000 };

/* ---- what holds now ---- */

static void note_choice(session *s, window *w)
{
    const scene_view *view = canvas_view(w->canvas);
    if (w->choice_waits)
        return; /* it is as the session says */
    s->has_choice = false;
    model_lock(w->model);
    const store *from = model_store(w->model);
    if (view->selected >= 0 && view->selected_lifeline < from->spec->lifeline_count) {
        unsigned layer = from->spec->lifelines[view->selected_lifeline].layer;
        uint32_t record = store_last_step(from, (uint32_t)view->selected, layer);
        s->has_choice = record < from->count && record >= from->first;
        if (s->has_choice) {
            s->choice_ns = store_time(from, record);
            s->choice_place = store_place(from, record);
            s->choice_lifeline = view->selected_lifeline;
        }
    }
    model_unlock(w->model);
}

/* Writes down how the window is now; its marks are there already. */
static void window_session_note(window *w)
{
    session *s = w->session;
    const scene_view *view = canvas_view(w->canvas);
    s->all = !w->touched && !w->live;
    if (!w->live && w->speed == 0) { /* what moves by itself is no change of the user's */
        s->from_ns = view->from_ns;
        s->to_ns = view->to_ns;
    }
    s->clocks = model_corrects_clocks(w->model);
    g_free(s->filter);
    s->filter = g_strdup(w->typed);
    for (int i = 0; i < SESSION_NAMES; i++) {
        g_strfreev(s->hidden[i]);
        s->hidden[i] = chooser_hidden(w->chooser, i);
    }
    g_free(s->drawing);
    s->drawing = g_strdup(w->drawing_text);
    note_choice(s, w);
}

/* ---- going back to another one ---- */

static void apply_drawing(window *w, const char *text)
{
    drawing *d = text != NULL ? drawing_parse(text) : NULL;
    if (text != NULL && d == NULL) {
        window_say(w, nl_error_message());
        return;
    }
    g_free(w->drawing_text);
    w->drawing_text = g_strdup(text);
    model_set_drawing(w->model, d);
}

static bool same_hidden(const session *a, const session *b)
{
    for (int i = 0; i < SESSION_NAMES; i++)
        if (!g_strv_equal((const char *const *)a->hidden[i], (const char *const *)b->hidden[i]))
            return false;
    return true;
}

static void apply_filters(window *w, const session *s)
{
    for (int i = 0; i < SESSION_NAMES; i++)
        chooser_hide(w->chooser, i, s->hidden[i]);
    g_free(w->typed);
    w->typed = g_strdup(s->filter);
    search_bar_set_filter(w->search, w->typed);
    if (!window_apply_filter(w, w->typed))
        window_say(w, nl_error_message());
}

static void apply_view(window *w, const session *s)
{
    scene_view *view = canvas_view(w->canvas);
    w->touched = !s->all;
    if (s->all) {
        canvas_fit(w->canvas);
    } else if (s->from_ns < s->to_ns) {
        view->from_ns = s->from_ns;
        view->to_ns = s->to_ns;
    }
}

/* Makes the window be as s says, which becomes its session. */
static void apply(window *w, session *s)
{
    window_session_note(w);
    session *before = w->session;
    if (g_strcmp0(before->drawing, s->drawing) != 0)
        apply_drawing(w, s->drawing);
    if (g_strcmp0(before->filter, s->filter) != 0 || !same_hidden(before, s))
        apply_filters(w, s);
    if (before->clocks != s->clocks)
        model_correct_clocks(w->model, s->clocks);
    apply_view(w, s);
    w->session = s;
    canvas_view(w->canvas)->marks = s->marks;
    canvas_view(w->canvas)->selected = -1;
    w->choice_waits = s->has_choice;
    if (!s->has_choice)
        window_show_chosen(w);
    session_free(before);
    window_show_news(w);
}

void window_choose_waiting(window *w)
{
    const session *s = w->session;
    if (!w->choice_waits)
        return;
    scene_view *view = canvas_view(w->canvas);
    model_lock(w->model);
    const store *from = model_store(w->model);
    uint32_t record = store_find_time(from, s->choice_ns);
    while (record < from->count && store_time(from, record) == s->choice_ns &&
           store_place(from, record) != s->choice_place)
        record++;
    bool found = record < from->count && store_place(from, record) == s->choice_place &&
                 s->choice_lifeline < from->spec->lifeline_count;
    if (found) {
        uint32_t object = store_object(from, record, from->spec->lifelines[s->choice_lifeline].layer);
        view->selected = object != STORE_NONE ? (int64_t)object : -1;
        view->selected_lifeline = s->choice_lifeline;
    }
    model_unlock(w->model);
    if (!found)
        return;
    w->choice_waits = false;
    window_show_chosen(w);
}

/* ---- undoing ---- */

void window_session_look(window *w)
{
    gint64 now_us = g_get_monotonic_time();
    if (now_us - w->looked_us < LOOK_US || w->live || w->speed > 0 || w->source_count == 0 || !w->first_shown)
        return;
    w->looked_us = now_us;
    window_session_note(w);
    char *text = session_text(w->session);
    bool is_first = w->undo.texts->len == 0;
    if (undo_look(&w->undo, text, false) && !is_first)
        window_session_keep(w); /* whatever ends the program, what was noted stays */
    g_free(text);
}

void window_undo(window *w, int step)
{
    window_session_note(w);
    char *now = session_text(w->session);
    undo_look(&w->undo, now, step < 0);
    g_free(now);
    const char *text = undo_go(&w->undo, step);
    session *s = text != NULL ? session_parse(text) : NULL;
    if (s == NULL) {
        gtk_label_set_text(GTK_LABEL(w->status),
                           step < 0 ? "Nothing more can be undone" : "Nothing more to be done again");
        return;
    }
    char *said = g_strdup_printf("%s: %s", step < 0 ? "Undone" : "Done again", session_difference(w->session, s));
    apply(w, s);
    gtk_label_set_text(GTK_LABEL(w->status), said);
    g_free(said);
}

/* ---- bookmarks ---- */

void window_bookmark(window *w)
{
    const scene_view *view = canvas_view(w->canvas);
    int64_t time_ns;
    if (!canvas_pointed(w->canvas, &time_ns))
        time_ns = view->has_mark ? view->mark_ns : view->from_ns + (view->to_ns - view->from_ns) / 2;
    guint at = session_mark_add(w->session, time_ns, "");
    bookmarks_show(w->bookmarks, w->session, (int)at);
    canvas_redraw(w->canvas);
}

void window_show_bookmarks(window *w)
{
    bookmarks_show(w->bookmarks, w->session, -1);
}

void window_next_bookmark(window *w, bool backwards)
{
    scene_view *view = canvas_view(w->canvas);
    bool is_at_mark = view->has_mark && view->mark_ns >= view->from_ns && view->mark_ns <= view->to_ns;
    int64_t half = (view->to_ns - view->from_ns) / 2;
    const session_mark *mark =
        session_mark_next(w->session, is_at_mark ? view->mark_ns : view->from_ns + half, backwards);
    if (mark == NULL) {
        gtk_label_set_text(GTK_LABEL(w->status), "No bookmark there");
        return;
    }
    view->has_mark = true;
    view->mark_ns = mark->time_ns;
    char *said = g_strdup_printf("Bookmark: %s", mark->note);
    canvas_show(w->canvas, mark->time_ns - half, mark->time_ns + half);
    gtk_label_set_text(GTK_LABEL(w->status), said);
    g_free(said);
}

/* ---- from one time to the next ---- */

void window_session_begin(window *w)
{
    w->sources = g_ptr_array_new_with_free_func(g_free);
    w->session = session_new();
    undo_init(&w->undo);
}

void window_session_opened(window *w, const char *url)
{
    g_ptr_array_add(w->sources, g_strdup(url));
    g_free(w->session_path);
    w->session_path = session_path((char *const *)w->sources->pdata, w->sources->len);
    session_free(w->last);
    w->last = session_read(w->session_path);
    for (guint i = 0; w->last != NULL && w->session->marks->len == 0 && i < w->last->marks->len; i++) {
        const session_mark *mark = &g_array_index(w->last->marks, session_mark, i);
        session_mark_add(w->session, mark->time_ns, mark->note);
    }
    undo_clear(&w->undo);
}

void window_as_last_time(window *w)
{
    if (w->last == NULL) {
        window_say(w, "These logs were not looked at before, or nothing of it was kept.");
        return;
    }
    session *s = session_copy(w->last);
    g_array_set_size(s->marks, 0);
    for (guint i = 0; i < w->session->marks->len; i++) {
        const session_mark *mark = &g_array_index(w->session->marks, session_mark, i);
        session_mark_add(s, mark->time_ns, mark->note);
    }
    apply(w, s);
}

/* Whether there is anything worth to be kept. */
static bool is_of_use(const session *s)
{
    bool hidden = false;
    for (int i = 0; i < SESSION_NAMES; i++)
        hidden = hidden || s->hidden[i][0] != NULL;
    return hidden || !s->all || s->filter != NULL || s->clocks || s->drawing != NULL || s->marks->len > 0 ||
           s->has_choice;
}

void window_session_keep(window *w)
{
    window_session_note(w);
    if (w->session_path == NULL || (!is_of_use(w->session) && w->last == NULL))
        return;
    if (!session_write(w->session, w->session_path))
        program_error("%s", nl_error_message());
}

void window_session_end(window *w)
{
    session_free(w->session);
    session_free(w->last);
    g_free(w->session_path);
    g_free(w->drawing_text);
    undo_free(&w->undo);
    g_ptr_array_free(w->sources, TRUE);
}
