#include "config.h"

#include "model/session.h"
#include "program/glib_error.h"

#include <string.h>

static const char *const hidden_keys[SESSION_NAMES] = {"events", "hosts", "programs"};

static void clear_mark(gpointer data)
{
    g_free(((session_mark *)data)->note);
}

session *session_new(void)
{
    session *s = g_new0(session, 1);
    s->all = true;
    for (int i = 0; i < SESSION_NAMES; i++)
        s->hidden[i] = g_new0(char *, 1);
    s->marks = g_array_new(FALSE, FALSE, sizeof(session_mark));
    g_array_set_clear_func(s->marks, clear_mark);
    return s;
}

void session_free(session *s)
{
    if (s == NULL)
        return;
    for (int i = 0; i < SESSION_NAMES; i++)
        g_strfreev(s->hidden[i]);
    g_free(s->filter);
    g_free(s->drawing);
    g_array_free(s->marks, TRUE);
    g_free(s);
}

session *session_copy(const session *s)
{
    char *text = session_text(s);
    session *copy = session_parse(text);
    g_free(text);
    return copy;
}

/* ---- marks ---- */

guint session_mark_add(session *s, int64_t time_ns, const char *note)
{
    guint at = 0;
    while (at < s->marks->len && g_array_index(s->marks, session_mark, at).time_ns <= time_ns)
        at++;
    session_mark mark = {time_ns, g_strdup(note)};
    g_array_insert_val(s->marks, at, mark);
    return at;
}

void session_mark_note(session *s, guint at, const char *note)
{
    session_mark *mark = &g_array_index(s->marks, session_mark, at);
    g_free(mark->note);
    mark->note = g_strdup(note);
}

void session_mark_remove(session *s, guint at)
{
    g_array_remove_index(s->marks, at);
}

const session_mark *session_mark_next(const session *s, int64_t time_ns, bool backwards)
{
    const session_mark *found = NULL;
    for (guint i = 0; i < s->marks->len; i++) {
        const session_mark *mark = &g_array_index(s->marks, session_mark, i);
        if (backwards && mark->time_ns < time_ns)
            found = mark;
        else if (!backwards && mark->time_ns > time_ns)
            return mark;
    }
    return found;
}

/* ---- text ---- */

static void put_marks(GKeyFile *file, const session *s)
{
    for (guint i = 0; i < s->marks->len; i++) {
        const session_mark *mark = &g_array_index(s->marks, session_mark, i);
        char *section = g_strdup_printf("mark %u", i + 1);
        g_key_file_set_int64(file, section, "time", mark->time_ns);
        g_key_file_set_string(file, section, "note", mark->note);
        g_free(section);
    }
}

static void put_tracks(GKeyFile *file, const char *name, const track_set *tracks)
{
    char text[TRACK_SET_TEXT_SIZE];
    track_set_write(tracks, text);
    if (*text != '\0')
        g_key_file_set_string(file, "tracks", name, text);
}

static void take_tracks(GKeyFile *file, const char *name, track_set *tracks)
{
    char *text = g_key_file_get_string(file, "tracks", name, NULL);
    track_set_read(tracks, text != NULL ? text : "");
    g_free(text);
}

static bool has_same_tracks(const track_set *a, const track_set *b)
{
    return a->count == b->count && memcmp(a->keys, b->keys, a->count * sizeof *a->keys) == 0;
}

char *session_text(const session *s)
{
    GKeyFile *file = g_key_file_new();
    if (!s->all) {
        g_key_file_set_int64(file, "view", "from", s->from_ns);
        g_key_file_set_int64(file, "view", "to", s->to_ns);
    }
    if (s->filter != NULL)
        g_key_file_set_string(file, "only", "expression", s->filter);
    for (int i = 0; i < SESSION_NAMES; i++)
        if (s->hidden[i][0] != NULL)
            g_key_file_set_string_list(file, "hidden", hidden_keys[i], (const char *const *)s->hidden[i],
                                       g_strv_length(s->hidden[i]));
    if (s->clocks)
        g_key_file_set_boolean(file, "clocks", "corrected", true);
    if (s->drawing != NULL)
        g_key_file_set_string(file, "drawing", "file", s->drawing);
    if (s->has_choice) {
        g_key_file_set_int64(file, "chosen", "time", s->choice_ns);
        g_key_file_set_uint64(file, "chosen", "place", s->choice_place);
        g_key_file_set_uint64(file, "chosen", "lifeline", s->choice_lifeline);
    }
    if (s->clock != 0)
        g_key_file_set_integer(file, "view", "clock", (int)s->clock);
    if (s->threads)
        g_key_file_set_boolean(file, "view", "threads", true);
    put_tracks(file, "collapsed", &s->collapsed);
    put_tracks(file, "expanded", &s->expanded);
    put_tracks(file, "pinned", &s->pinned);
    put_marks(file, s);
    char *text = g_key_file_to_data(file, NULL, NULL);
    g_key_file_free(file);
    return text;
}

static void take_marks(GKeyFile *file, session *s)
{
    char **sections = g_key_file_get_groups(file, NULL);
    for (char **section = sections; *section != NULL; section++) {
        char *note = g_str_has_prefix(*section, "mark ") ? g_key_file_get_string(file, *section, "note", NULL) : NULL;
        if (note != NULL)
            session_mark_add(s, g_key_file_get_int64(file, *section, "time", NULL), note);
        g_free(note);
    }
    g_strfreev(sections);
}

session *session_parse(const char *text)
{
    GKeyFile *file = g_key_file_new();
    session *s = NULL;
    if (g_key_file_load_from_data(file, text, strlen(text), G_KEY_FILE_NONE, NULL)) {
        s = session_new();
        s->from_ns = g_key_file_get_int64(file, "view", "from", NULL);
        s->to_ns = g_key_file_get_int64(file, "view", "to", NULL);
        s->all = s->from_ns >= s->to_ns;
        s->filter = g_key_file_get_string(file, "only", "expression", NULL);
        for (int i = 0; i < SESSION_NAMES; i++) {
            char **names = g_key_file_get_string_list(file, "hidden", hidden_keys[i], NULL, NULL);
            if (names != NULL) {
                g_strfreev(s->hidden[i]);
                s->hidden[i] = names;
            }
        }
        s->clocks = g_key_file_get_boolean(file, "clocks", "corrected", NULL);
        s->drawing = g_key_file_get_string(file, "drawing", "file", NULL);
        s->has_choice = g_key_file_has_key(file, "chosen", "place", NULL);
        s->choice_ns = g_key_file_get_int64(file, "chosen", "time", NULL);
        s->choice_place = g_key_file_get_uint64(file, "chosen", "place", NULL);
        s->choice_lifeline = g_key_file_get_uint64(file, "chosen", "lifeline", NULL);
        s->clock = (unsigned)g_key_file_get_integer(file, "view", "clock", NULL);
        s->threads = g_key_file_get_boolean(file, "view", "threads", NULL);
        take_tracks(file, "collapsed", &s->collapsed);
        take_tracks(file, "expanded", &s->expanded);
        take_tracks(file, "pinned", &s->pinned);
        take_marks(file, s);
    }
    g_key_file_free(file);
    return s;
}

const char *session_difference(const session *a, const session *b)
{
    if (g_strcmp0(a->drawing, b->drawing) != 0)
        return "the drawing";
    if (g_strcmp0(a->filter, b->filter) != 0)
        return "the filter";
    if (a->clocks != b->clocks)
        return "the clocks";
    for (int i = 0; i < SESSION_NAMES; i++)
        if (!g_strv_equal((const char *const *)a->hidden[i], (const char *const *)b->hidden[i]))
            return "the ticked boxes";
    if (a->marks->len != b->marks->len)
        return "a bookmark";
    for (guint i = 0; i < a->marks->len; i++)
        if (strcmp(g_array_index(a->marks, session_mark, i).note, g_array_index(b->marks, session_mark, i).note) != 0)
            return "a note";
    if (a->has_choice != b->has_choice || (a->has_choice && a->choice_place != b->choice_place))
        return "the choice";
    if (a->clock != b->clock)
        return "the time format";
    if (!has_same_tracks(&a->collapsed, &b->collapsed) || !has_same_tracks(&a->expanded, &b->expanded) ||
        !has_same_tracks(&a->pinned, &b->pinned))
        return "the tracks";
    return "the view";
}

/* ---- files ---- */

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *session_path(char *const *sources, size_t count)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (size_t i = 0; i < count; i++)
        g_ptr_array_add(names, strstr(sources[i], "://") != NULL || g_str_has_prefix(sources[i], "unix:")
                                   ? g_strdup(sources[i])
                                   : g_canonicalize_filename(sources[i], NULL));
    g_ptr_array_sort(names, by_name);
    GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_checksum_update(sum, (const guchar *)name, (gssize)strlen(name) + 1);
    }
    char *file = g_strdup_printf("%.32s.nlv-session", g_checksum_get_string(sum));
    char *path = g_build_filename(g_get_user_data_dir(), "netlogger", "sessions", file, NULL);
    g_checksum_free(sum);
    g_free(file);
    g_ptr_array_free(names, TRUE);
    return path;
}

session *session_read(const char *path)
{
    char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    session *s = session_parse(text);
    g_free(text);
    return s;
}

bool session_write(const session *s, const char *path)
{
    char *directory = g_path_get_dirname(path), *text = session_text(s);
    GError *error = NULL;
    bool good = g_mkdir_with_parents(directory, 0700) == 0;
    if (!good)
        nl_error_set_errno("create %s", directory);
    else
        good = g_file_set_contents(path, text, -1, &error) || glib_error_take(error);
    g_free(directory);
    g_free(text);
    return good;
}
