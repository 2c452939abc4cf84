#include "config.h"

#include "requests/drawing.h"

#include "base/replacement.h"
#include "base/write_some.h"
#include "program/glib_error.h"
#include "requests/request_reader.h"

#include <string.h>
#include <unistd.h>

static void free_lifeline(gpointer data)
{
    drawing_lifeline *l = data;
    g_free(l->name);
    g_strfreev(l->events);
    g_strfreev(l->ids);
    g_free(l->color);
    g_free(l->after);
    g_free(l->surely);
    g_free(l);
}

static void free_loadline(gpointer data)
{
    drawing_loadline *l = data;
    g_free(l->name);
    g_free(l->event);
    g_free(l->field);
    g_free(l->unit);
    g_free(l);
}

static void free_point(gpointer data)
{
    drawing_point *p = data;
    g_free(p->name);
    g_free(p->event);
    g_free(p);
}

static char *no_names[] = {NULL};
const drawing_lifeline drawing_threads = {.events = no_names, .ids = no_names};

drawing *drawing_new(void)
{
    drawing *d = g_new0(drawing, 1);
    d->lifelines = g_ptr_array_new_with_free_func(free_lifeline);
    d->loadlines = g_ptr_array_new_with_free_func(free_loadline);
    d->points = g_ptr_array_new_with_free_func(free_point);
    d->quiet = g_ptr_array_new_with_free_func(g_free);
    d->omitted = g_ptr_array_new_with_free_func(g_free);
    return d;
}

GPtrArray *drawing_find_requests(const drawing *d, bool by_events)
{
    GPtrArray *found = g_ptr_array_new();
    for (guint i = 0; i < d->lifelines->len; i++) {
        drawing_lifeline *l = g_ptr_array_index(d->lifelines, i);
        bool repeated = false;
        for (guint j = 0; j < found->len && !by_events && !repeated; j++)
            repeated = g_strv_equal((const char *const *)((drawing_lifeline *)g_ptr_array_index(found, j))->ids,
                                    (const char *const *)l->ids);
        if (!repeated)
            g_ptr_array_add(found, l);
    }
    return found;
}

static bool splits_unnamed(const char *event)
{
    return strncmp(event, REQUEST_UNNAMED_OF, sizeof REQUEST_UNNAMED_OF - 1) == 0;
}

bool drawing_splits_unnamed(const drawing *d)
{
    for (guint i = 0; i < d->lifelines->len; i++)
        for (char **event = ((drawing_lifeline *)g_ptr_array_index(d->lifelines, i))->events; *event != NULL; event++)
            if (splits_unnamed(*event))
                return true;
    for (guint i = 0; i < d->points->len; i++)
        if (splits_unnamed(((drawing_point *)g_ptr_array_index(d->points, i))->event))
            return true;
    return false;
}

void drawing_free(drawing *d)
{
    if (d == NULL)
        return;
    g_free(d->title);
    g_ptr_array_free(d->lifelines, TRUE);
    g_ptr_array_free(d->loadlines, TRUE);
    g_ptr_array_free(d->points, TRUE);
    g_ptr_array_free(d->quiet, TRUE);
    g_ptr_array_free(d->omitted, TRUE);
    g_free(d);
}

drawing_lifeline *drawing_add_lifeline(drawing *d, const char *name, const char *const *events, const char *const *ids,
                                       const char *color)
{
    drawing_lifeline *l = g_new0(drawing_lifeline, 1);
    l->name = g_strdup(name);
    l->events = g_strdupv((char **)events);
    l->ids = g_strdupv((char **)ids);
    l->color = g_strdup(color != NULL ? color : "HOST");
    g_ptr_array_add(d->lifelines, l);
    return l;
}

void drawing_set_order(drawing_lifeline *l, const uint64_t *after, const uint64_t *surely)
{
    size_t size = g_strv_length(l->events) * sizeof *after;
    g_free(l->after);
    g_free(l->surely);
    l->after = g_memdup2(after, after != NULL ? size : 0);
    l->surely = g_memdup2(surely, surely != NULL ? size : 0);
}

drawing_loadline *drawing_add_loadline(drawing *d, const char *name, const char *event, const char *field,
                                       const char *unit)
{
    drawing_loadline *l = g_new0(drawing_loadline, 1);
    l->name = g_strdup(name);
    l->event = g_strdup(event);
    l->field = g_strdup(field);
    l->unit = g_strdup(unit != NULL ? unit : "");
    g_ptr_array_add(d->loadlines, l);
    return l;
}

void drawing_add_point(drawing *d, const char *name, const char *event)
{
    drawing_point *p = g_new0(drawing_point, 1);
    p->name = g_strdup(name);
    p->event = g_strdup(event);
    g_ptr_array_add(d->points, p);
}

/*
 * Returns the value of a required key; the caller frees it. Returns NULL and sets the error if the key is missing or
 * empty.
 */
static char *read_text(GKeyFile *file, const char *section, const char *key)
{
    char *value = g_key_file_get_string(file, section, key, NULL);
    if (value == NULL || *value == '\0') {
        g_free(value);
        return nl_error_null(NL_ERROR_INVALID, "[%s] has no %s=", section, key);
    }
    return value;
}

/*
 * Returns the list of a key without empty names; the caller frees it with g_strfreev. Returns NULL and sets the error
 * if the list has fewer than `minimum` names.
 */
static char **read_list(GKeyFile *file, const char *section, const char *key, gsize minimum)
{
    gsize count = 0, kept = 0;
    char **list = g_key_file_get_string_list(file, section, key, &count, NULL);
    for (gsize i = 0; i < count; i++) {
        g_strstrip(list[i]);
        if (*list[i] != '\0')
            list[kept++] = list[i];
        else
            g_free(list[i]);
    }
    if (list != NULL)
        list[kept] = NULL;
    if (kept >= minimum)
        return list;
    g_strfreev(list);
    return nl_error_null(NL_ERROR_INVALID, "[%s] requires %s= with at least %u names, separated by semicolons", section,
                         key, (unsigned)minimum);
}

/*
 * Reads a set of event numbers, as bits, for each of `count` events. Ignores invalid numbers. Returns NULL if the key
 * does not have exactly `count` sets, or `count` is too large.
 */
static uint64_t *read_sets(GKeyFile *file, const char *section, const char *key, guint count)
{
    gsize found = 0;
    char **texts = g_key_file_get_string_list(file, section, key, &found, NULL);
    uint64_t *sets = texts != NULL && found == count && count <= DRAWING_ORDERED_MAX ? g_new0(uint64_t, count) : NULL;
    for (guint i = 0; i < count && sets != NULL; i++) {
        char **numbers = g_strsplit(texts[i], ",", -1);
        for (char **number = numbers; *number != NULL; number++) {
            guint64 event;
            if (g_ascii_string_to_unsigned(*number, 10, 0, count - 1, &event, NULL) && event != i)
                sets[i] |= UINT64_C(1) << event;
        }
        g_strfreev(numbers);
    }
    g_strfreev(texts);
    return sets;
}

static void read_order(drawing_lifeline *l, GKeyFile *file, const char *section)
{
    guint count = g_strv_length(l->events);
    l->after = read_sets(file, section, "after", count);
    l->surely = l->after != NULL ? read_sets(file, section, "surely", count) : NULL;
    if (l->after != NULL && l->surely == NULL)
        l->surely = g_new0(uint64_t, count);
}

static bool read_lifeline(drawing *d, GKeyFile *file, const char *section, const char *name)
{
    char **events = read_list(file, section, "events", 2);
    char **ids = events == NULL ? NULL : read_list(file, section, "id", 1);
    char *color = g_key_file_get_string(file, section, "color", NULL);
    if (ids != NULL) {
        drawing_lifeline *l =
            drawing_add_lifeline(d, name, (const char *const *)events, (const char *const *)ids, color);
        l->again = g_key_file_get_boolean(file, section, "again", NULL);
        read_order(l, file, section);
    }
    bool ok = ids != NULL;
    g_strfreev(events);
    g_strfreev(ids);
    g_free(color);
    return ok;
}

static bool read_loadline(drawing *d, GKeyFile *file, const char *section, const char *name)
{
    char *event = read_text(file, section, "event");
    char *field = event == NULL ? NULL : read_text(file, section, "field");
    char *unit = g_key_file_get_string(file, section, "unit", NULL);
    if (field != NULL)
        drawing_add_loadline(d, name, event, field, unit)->rate = g_key_file_get_boolean(file, section, "rate", NULL);
    bool ok = field != NULL;
    g_free(event);
    g_free(field);
    g_free(unit);
    return ok;
}

static bool read_section(drawing *d, GKeyFile *file, const char *section)
{
    if (strcmp(section, "view") == 0) {
        d->title = g_key_file_get_string(file, section, "title", NULL);
        return true;
    }
    if (g_str_has_prefix(section, "lifeline "))
        return read_lifeline(d, file, section, section + strlen("lifeline "));
    if (g_str_has_prefix(section, "loadline "))
        return read_loadline(d, file, section, section + strlen("loadline "));
    if (g_str_has_prefix(section, "point ")) {
        char *event = read_text(file, section, "event");
        if (event != NULL)
            drawing_add_point(d, section + strlen("point "), event);
        bool ok = event != NULL;
        g_free(event);
        return ok;
    }
    return nl_error_false(NL_ERROR_INVALID,
                          "unknown section [%s]; use [view], [lifeline NAME], [loadline NAME] or [point NAME]",
                          section);
}

static drawing *read_sections(GKeyFile *file)
{
    drawing *d = drawing_new();
    char **sections = g_key_file_get_groups(file, NULL);
    bool ok = true;
    for (char **section = sections; *section != NULL && ok; section++)
        ok = read_section(d, file, *section);
    g_strfreev(sections);
    if (ok)
        return d;
    drawing_free(d);
    return NULL;
}

bool drawing_find_id(const nl_record *record, const char *id, nl_field *field)
{
    if (strchr(id, '|') == NULL)
        return nl_record_find(record, id, field);
    char name[256];
    for (const char *at = id; *at != '\0';) {
        size_t size = strcspn(at, "|");
        if (size < sizeof name) {
            memcpy(name, at, size);
            name[size] = '\0';
            if (size > 0 && nl_record_find(record, name, field))
                return true;
        }
        at += size + (at[size] == '|');
    }
    return false;
}

/* ---- ready-made drawings ---- */

/*
 * Returns the directories of ready-made drawings. The user's own directory is first. Free the result with g_strfreev.
 */
static char **ready_made_directories(void)
{
    GPtrArray *directories = g_ptr_array_new();
    g_ptr_array_add(directories, g_build_filename(g_get_user_data_dir(), "netlogger", "drawings", NULL));
    for (const char *const *parent = g_get_system_data_dirs(); *parent != NULL; parent++)
        g_ptr_array_add(directories, g_build_filename(*parent, "netlogger", "drawings", NULL));
    g_ptr_array_add(directories, g_strdup(NL_DRAWINGS));
    g_ptr_array_add(directories, NULL);
    return (char **)g_ptr_array_free(directories, FALSE);
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_names(GPtrArray *names, const char *path)
{
    GDir *directory = g_dir_open(path, 0, NULL);
    const char *file;
    while (directory != NULL && (file = g_dir_read_name(directory)) != NULL) {
        char *name = g_str_has_suffix(file, ".nlv") ? g_strndup(file, strlen(file) - 4) : NULL;
        if (name != NULL && !g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
            g_ptr_array_add(names, name);
        else
            g_free(name);
    }
    if (directory != NULL)
        g_dir_close(directory);
}

char **drawing_names(void)
{
    char **directories = ready_made_directories();
    GPtrArray *names = g_ptr_array_new();
    for (char **directory = directories; *directory != NULL; directory++)
        add_names(names, *directory);
    g_strfreev(directories);
    g_ptr_array_sort(names, by_name);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

/* Returns the path of a file or of a ready-made drawing. The caller frees the path with g_free. */
static char *find_file(const char *path)
{
    char *found = NULL;
    if (strchr(path, '/') != NULL || g_file_test(path, G_FILE_TEST_EXISTS))
        return g_strdup(path);
    char **directories = ready_made_directories(), *file = g_strdup_printf("%s.nlv", path);
    for (char **directory = directories; *directory != NULL && found == NULL; directory++) {
        found = g_build_filename(*directory, file, NULL);
        if (!g_file_test(found, G_FILE_TEST_EXISTS))
            g_clear_pointer(&found, g_free);
    }
    g_free(file);
    g_strfreev(directories);
    return found != NULL ? found : g_strdup(path);
}

drawing *drawing_parse(const char *text)
{
    GKeyFile *file = g_key_file_new();
    GError *error = NULL;
    bool ok = g_key_file_load_from_data(file, text, strlen(text), G_KEY_FILE_NONE, &error) || glib_error_take(error);
    drawing *d = ok ? read_sections(file) : NULL;
    g_key_file_free(file);
    return d;
}

/* Sets the error for a name that is neither a file nor a ready-made drawing. Returns false. */
static bool fail_unknown_name(void)
{
    char **names = drawing_names(), *list = g_strjoinv(", ", names);
    if (names[0] != NULL)
        nl_error_set(NL_ERROR_NOT_FOUND, "no such file; the ready-made drawings are %s", list);
    else
        nl_error_set(NL_ERROR_NOT_FOUND, "no such file, and no ready-made drawings");
    g_free(list);
    g_strfreev(names);
    return false;
}

drawing *drawing_read(const char *path)
{
    char *found = find_file(path), *text = NULL;
    GError *error = NULL;
    bool is_name = strchr(found, '/') == NULL && !g_file_test(found, G_FILE_TEST_EXISTS);
    bool ok = is_name ? fail_unknown_name() : g_file_get_contents(found, &text, NULL, &error) || glib_error_take(error);
    drawing *d = ok ? drawing_parse(text) : NULL;
    if (d == NULL)
        nl_error_prepend("%s", path);
    g_free(found);
    g_free(text);
    return d;
}

static char *section_name(const char *kind, const char *name)
{
    char *section = g_strdup_printf("%s %s", kind, name);
    g_strdelimit(section, "[]\n\r", '_');
    return section;
}

static void write_sets(GKeyFile *file, const char *section, const char *key, const uint64_t *sets, guint count)
{
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < count; i++) {
        GString *text = g_string_new(NULL);
        for (guint event = 0; event < count; event++)
            if (sets[i] >> event & 1)
                g_string_append_printf(text, "%s%u", text->len > 0 ? "," : "", event);
        g_ptr_array_add(texts, g_string_free(text, FALSE));
    }
    g_key_file_set_string_list(file, section, key, (const char *const *)texts->pdata, texts->len);
    g_ptr_array_free(texts, TRUE);
}

char *drawing_text(const drawing *d)
{
    GKeyFile *file = g_key_file_new();
    if (d->title != NULL)
        g_key_file_set_string(file, "view", "title", d->title);
    for (guint i = 0; i < d->lifelines->len; i++) {
        const drawing_lifeline *l = g_ptr_array_index(d->lifelines, i);
        char *section = section_name("lifeline", l->name);
        g_key_file_set_string_list(file, section, "events", (const char *const *)l->events, g_strv_length(l->events));
        g_key_file_set_string_list(file, section, "id", (const char *const *)l->ids, g_strv_length(l->ids));
        g_key_file_set_string(file, section, "color", l->color);
        if (l->again)
            g_key_file_set_boolean(file, section, "again", TRUE);
        if (l->after != NULL) {
            write_sets(file, section, "after", l->after, g_strv_length(l->events));
            write_sets(file, section, "surely", l->surely, g_strv_length(l->events));
        }
        g_free(section);
    }
    for (guint i = 0; i < d->loadlines->len; i++) {
        const drawing_loadline *l = g_ptr_array_index(d->loadlines, i);
        char *section = section_name("loadline", l->name);
        g_key_file_set_string(file, section, "event", l->event);
        g_key_file_set_string(file, section, "field", l->field);
        g_key_file_set_string(file, section, "unit", l->unit);
        if (l->rate)
            g_key_file_set_boolean(file, section, "rate", TRUE);
        g_free(section);
    }
    for (guint i = 0; i < d->points->len; i++) {
        const drawing_point *p = g_ptr_array_index(d->points, i);
        char *section = section_name("point", p->name);
        g_key_file_set_string(file, section, "event", p->event);
        g_free(section);
    }
    char *text = g_key_file_to_data(file, NULL, NULL);
    g_key_file_free(file);
    return text;
}

drawing *drawing_copy(const drawing *d)
{
    drawing *copy = drawing_new();
    copy->title = g_strdup(d->title);
    for (guint i = 0; i < d->lifelines->len; i++) {
        const drawing_lifeline *l = g_ptr_array_index(d->lifelines, i);
        drawing_lifeline *own =
            drawing_add_lifeline(copy, l->name, (const char *const *)l->events, (const char *const *)l->ids, l->color);
        own->again = l->again;
        own->traced = l->traced;
        drawing_set_order(own, l->after, l->surely);
    }
    for (guint i = 0; i < d->loadlines->len; i++) {
        const drawing_loadline *l = g_ptr_array_index(d->loadlines, i);
        drawing_add_loadline(copy, l->name, l->event, l->field, l->unit)->rate = l->rate;
    }
    for (guint i = 0; i < d->points->len; i++) {
        const drawing_point *p = g_ptr_array_index(d->points, i);
        drawing_add_point(copy, p->name, p->event);
    }
    for (guint i = 0; i < d->quiet->len; i++)
        g_ptr_array_add(copy->quiet, g_strdup(g_ptr_array_index(d->quiet, i)));
    for (guint i = 0; i < d->omitted->len; i++)
        g_ptr_array_add(copy->omitted, g_strdup(g_ptr_array_index(d->omitted, i)));
    return copy;
}

bool drawing_check(const drawing *d)
{
    char *text = drawing_text(d);
    drawing *read = drawing_parse(text);
    bool ok = read != NULL && read->lifelines->len == d->lifelines->len && read->loadlines->len == d->loadlines->len &&
              read->points->len == d->points->len;
    if (read != NULL && !ok)
        nl_error_set(NL_ERROR_INVALID, "two lifelines, loadlines or points have the same name");
    drawing_free(read);
    g_free(text);
    return ok;
}

static bool write_to_file(const char *path, const char *text)
{
    nl_replacement file;
    if (!nl_replacement_open(&file, path))
        return nl_error_set_errno("%s", path), false;
    bool ok = nl_write_all(file.fd, text, strlen(text)) && nl_replacement_keep(&file);
    if (!ok)
        nl_error_set_errno("%s", path);
    close(file.fd);
    nl_replacement_free(&file);
    return ok;
}

bool drawing_write(const drawing *d, const char *path)
{
    char *text = drawing_text(d);
    bool ok;
    if (strcmp(path, "-") != 0)
        ok = write_to_file(path, text);
    else
        ok = nl_write_all(STDOUT_FILENO, text, strlen(text)) || nl_error_set_errno("standard output") == NL_OK;
    g_free(text);
    return ok;
}
