#include "config.h"

#include "agents/agents.h"
#include "agents/stream.h"

#include "program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STREAMS_MAX = 256,
    ROWS_MAX = 100000,
    LOADLINES_MAX = 24,
    LOADLINES_PER_EVENT = 2,
    PENDING_MAX = 4 << 20, /* bytes that wait for the log's reader; nobody is asked for more meanwhile */
    GATHER_MS = 700,       /* how long it is waited for further events before all is drawn anew */
};

/* An event that a sensor has logged, and which of its fields are drawn. */
typedef struct event {
    char *name, *sensor;
    char *fields[LOADLINES_PER_EVENT];
    size_t count;
    bool is_of_one; /* of several things, which a field of text tells apart */
} event;

struct agents {
    agents_callbacks callbacks;
    GCancellable *looking; /* NULL: nothing is looked up */
    GPtrArray *streams;
    GPtrArray *events;
    char *folder, *path; /* of the pipe, while it has a name */
    int pipe;            /* -1: none yet */
    GString *pending;    /* what waits to be read from it */
    guint writing;       /* the source that waits for that */
    guint drawing_due;
    char *drawn; /* when that was told last */
    guint quiet;
};

/* ---- the log ---- */

static void forget_name(agents *a)
{
    if (a->path != NULL)
        g_unlink(a->path);
    if (a->folder != NULL)
        g_rmdir(a->folder);
    g_clear_pointer(&a->path, g_free);
    g_clear_pointer(&a->folder, g_free);
}

const char *agents_log(agents *a)
{
    if (a->pipe >= 0)
        return a->path;
    a->folder = g_dir_make_tmp("nlv-XXXXXX", NULL);
    if (a->folder == NULL)
        return NULL;
    a->path = g_build_filename(a->folder, "sensors", NULL);
    /* Open for reading too, so that it never seems ended, nor without a reader. */
    if (mkfifo(a->path, 0600) == 0)
        a->pipe = open(a->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (a->pipe < 0)
        forget_name(a);
    return a->path;
}

void agents_opened(agents *a)
{
    forget_name(a);
}

static void hold_streams(agents *a, bool hold)
{
    for (guint i = 0; i < a->streams->len; i++)
        stream_hold(g_ptr_array_index(a->streams, i), hold);
}

static gboolean flush(int fd, GIOCondition condition, gpointer user);

static void write_pending(agents *a)
{
    while (a->pending->len > 0 && a->pipe >= 0) {
        ssize_t done = write(a->pipe, a->pending->str, a->pending->len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            break;
        g_string_erase(a->pending, 0, done);
    }
    if (a->pending->len > 0 && a->writing == 0 && a->pipe >= 0)
        a->writing = g_unix_fd_add(a->pipe, G_IO_OUT, flush, a);
    hold_streams(a, a->pending->len > PENDING_MAX);
}

static gboolean flush(int fd, GIOCondition condition, gpointer user)
{
    agents *a = user;
    (void)fd, (void)condition;
    a->writing = 0;
    write_pending(a);
    return G_SOURCE_REMOVE;
}

/* ---- what is drawn ---- */

static void free_event(gpointer data)
{
    event *e = data;
    for (size_t i = 0; i < e->count; i++)
        g_free(e->fields[i]);
    g_free(e->name);
    g_free(e->sensor);
    g_free(e);
}

static gboolean draw(gpointer user)
{
    agents *a = user;
    a->drawing_due = 0;
    drawing *d = agents_loadlines(a);
    char *text = drawing_text(d);
    bool changed = g_strcmp0(text, a->drawn) != 0 || d->quiet->len != a->quiet;
    a->quiet = d->quiet->len;
    drawing_free(d);
    g_free(a->drawn);
    a->drawn = text;
    if (changed)
        a->callbacks.drawn(a->callbacks.user);
    return G_SOURCE_REMOVE;
}

static void draw_soon(agents *a)
{
    if (a->drawing_due == 0)
        a->drawing_due = g_timeout_add(GATHER_MS, draw, a);
}

static bool is_number(const nl_field *field)
{
    double value;
    return nl_field_double(field, &value);
}

/* Whether it tells things apart, or how much there is at all, which says nothing over time. */
static bool is_dull(const char *name)
{
    return g_str_has_suffix(name, ".ID") || g_str_has_suffix(name, ".TOTAL");
}

static event *find_event(const agents *a, const char *name)
{
    for (guint i = 0; i < a->events->len; i++) {
        event *e = g_ptr_array_index(a->events, i);
        if (strcmp(e->name, name) == 0)
            return e;
    }
    return NULL;
}

/* An event that is met for the first time: its first numbers are what is drawn of it. */
static void note_event(agents *a, const char *sensor, const nl_record *record)
{
    char *name = g_strndup(record->event.data, record->event.size);
    event *e = find_event(a, name);
    if (e != NULL) {
        g_free(name);
        return;
    }
    e = g_new0(event, 1);
    *e = (event){.name = name, .sensor = g_strdup(sensor)};
    for (size_t i = 0; i < record->field_count && e->count < LOADLINES_PER_EVENT; i++) {
        const nl_field *field = &record->fields[i];
        char *field_name = g_strndup(field->name.data, field->name.size);
        e->is_of_one |= i == 0 && (!is_number(field) || is_dull(field_name));
        if (is_number(field) && !is_dull(field_name))
            e->fields[e->count++] = field_name;
        else
            g_free(field_name);
    }
    g_ptr_array_add(a->events, e);
    draw_soon(a);
}

static bool is_wanted(const agents *a, const char *sensor)
{
    for (guint i = 0; i < a->streams->len; i++)
        if (strcmp(stream_sensor(g_ptr_array_index(a->streams, i)), sensor) == 0)
            return true;
    return false;
}

/* Where a sensor has an event of all, those of each are left out: their lines would be one. */
static bool has_whole(const agents *a, const char *sensor)
{
    for (guint i = 0; i < a->events->len; i++) {
        const event *e = g_ptr_array_index(a->events, i);
        if (!e->is_of_one && e->count > 0 && strcmp(e->sensor, sensor) == 0)
            return true;
    }
    return false;
}

drawing *agents_loadlines(const agents *a)
{
    drawing *d = drawing_new();
    for (guint i = 0; i < a->events->len; i++) {
        const event *e = g_ptr_array_index(a->events, i);
        if (!is_wanted(a, e->sensor) || (e->is_of_one && has_whole(a, e->sensor)))
            continue;
        for (size_t f = 0; f < e->count && d->loadlines->len < LOADLINES_MAX; f++)
            drawing_add_loadline(d, e->fields[f], e->name, e->fields[f], "");
    }
    for (guint i = 0; i < a->events->len; i++)
        g_ptr_array_add(d->quiet, g_strdup(((const event *)g_ptr_array_index(a->events, i))->name));
    return d;
}

/* ---- streams ---- */

static stream *find_stream(const agents *a, const char *url, const char *sensor)
{
    for (guint i = 0; i < a->streams->len; i++) {
        stream *s = g_ptr_array_index(a->streams, i);
        if (stream_is(s, url, sensor))
            return s;
    }
    return NULL;
}

static void on_record(void *user, const stream *from, const nl_record *record)
{
    agents *a = user;
    nl_buffer line = {0};
    if (!stream_is_own_event(record))
        note_event(a, stream_sensor(from), record);
    nl_record_encode(record, NL_FORMAT_ULM, &line);
    g_string_append_len(a->pending, line.data, (gssize)line.size);
    nl_buffer_free(&line);
}

static void on_read(void *user)
{
    write_pending(user);
}

static void on_state(void *user, const stream *of)
{
    agents *a = user;
    a->callbacks.changed(a->callbacks.user, stream_url(of), stream_sensor(of), stream_state(of));
}

bool agents_add(agents *a, const char *url, const char *sensor)
{
    if (find_stream(a, url, sensor) != NULL)
        return true;
    if (a->streams->len >= STREAMS_MAX) {
        a->callbacks.changed(a->callbacks.user, url, sensor, "so many sensors at once are too many");
        return false;
    }
    stream_callbacks callbacks = {on_record, on_read, on_state, a};
    stream *s = stream_new(url, sensor, callbacks);
    if (s == NULL) {
        a->callbacks.changed(a->callbacks.user, url, sensor, nl_error_message());
        return false;
    }
    g_ptr_array_add(a->streams, s);
    on_state(a, s);
    draw_soon(a);
    return true;
}

void agents_remove(agents *a, const char *url, const char *sensor)
{
    stream *s = find_stream(a, url, sensor);
    if (s == NULL)
        return;
    g_ptr_array_remove(a->streams, s);
    a->callbacks.changed(a->callbacks.user, url, sensor, "");
    draw_soon(a);
}

const char *agents_state(const agents *a, const char *url, const char *sensor)
{
    const stream *s = find_stream(a, url, sensor);
    return s != NULL ? stream_state(s) : NULL;
}

void agents_each(const agents *a, void (*function)(void *user, const char *url, const char *sensor, const char *state),
                 void *user)
{
    for (guint i = 0; i < a->streams->len; i++) {
        const stream *s = g_ptr_array_index(a->streams, i);
        function(user, stream_url(s), stream_sensor(s), stream_state(s));
    }
}

/* ---- looking up ---- */

static void free_row(gpointer data)
{
    agents_row *row = data;
    g_free(row->host);
    g_free(row->url);
    g_free(row->sensor);
    g_free(row->events);
    g_free(row);
}

static gint by_host(gconstpointer left, gconstpointer right)
{
    const agents_row *a = *(const agents_row *const *)left, *b = *(const agents_row *const *)right;
    int order = strcmp(a->host, b->host);
    order = order != 0 ? order : strcmp(a->url, b->url);
    return order != 0 ? order : strcmp(a->sensor, b->sensor);
}

/* What nlagent find has printed. */
static GPtrArray *read_rows(GBytes *output)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(free_row);
    gsize size = 0;
    const char *data = output != NULL ? g_bytes_get_data(output, &size) : NULL;
    char *text = g_strndup(data != NULL ? data : "", size), **lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL && rows->len < ROWS_MAX; line++) {
        char **cells = g_strsplit(*line, "\t", 4);
        if (g_strv_length(cells) == 4) {
            agents_row *row = g_new(agents_row, 1);
            *row = (agents_row){cells[0], cells[1], cells[2], cells[3]};
            g_ptr_array_add(rows, row);
            g_free(cells);
        } else {
            g_strfreev(cells);
        }
    }
    g_strfreev(lines);
    g_free(text);
    g_ptr_array_sort(rows, by_host);
    return rows;
}

static void on_found(GObject *process, GAsyncResult *result, gpointer user)
{
    GBytes *output = NULL, *errors = NULL;
    GError *error = NULL;
    bool good = g_subprocess_communicate_finish(G_SUBPROCESS(process), result, &output, &errors, &error);
    if (!good && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        g_subprocess_force_exit(G_SUBPROCESS(process)); /* the agents may be gone, too */
        g_error_free(error);
        return;
    }
    agents *a = user;
    GPtrArray *rows = read_rows(output);
    char *message = good ? stream_last_line(errors) : g_strdup(error->message);
    g_clear_object(&a->looking);
    a->callbacks.found(a->callbacks.user, rows, rows->len > 0 ? "" : message);
    g_free(message);
    g_ptr_array_free(rows, TRUE);
    g_bytes_unref(output);
    g_bytes_unref(errors);
    g_clear_error(&error);
}

static void give_up(agents *a)
{
    if (a->looking == NULL)
        return;
    g_cancellable_cancel(a->looking);
    g_clear_object(&a->looking);
}

void agents_find(agents *a, const char *directory, const char *expression)
{
    char *option = directory != NULL && *directory != '\0' ? g_strdup_printf("--directory=%s", directory) : NULL;
    const char *arguments[5] = {0};
    size_t count = 0;
    if (option != NULL)
        arguments[count++] = option;
    arguments[count++] = "--"; /* what is typed is no option */
    arguments[count++] = "find";
    arguments[count++] = expression;
    give_up(a);
    GSubprocess *process = stream_start_nlagent(arguments);
    g_free(option);
    if (process == NULL) {
        GPtrArray *none = g_ptr_array_new();
        a->callbacks.found(a->callbacks.user, none, nl_error_message());
        g_ptr_array_free(none, TRUE);
        return;
    }
    a->looking = g_cancellable_new();
    g_subprocess_communicate_async(process, NULL, a->looking, on_found, a);
    g_object_unref(process);
}

/* ---- life ---- */

agents *agents_new(agents_callbacks callbacks)
{
    agents *a = g_new0(agents, 1);
    a->callbacks = callbacks;
    a->streams = g_ptr_array_new_with_free_func(stream_free);
    a->events = g_ptr_array_new_with_free_func(free_event);
    a->pending = g_string_new(NULL);
    a->pipe = -1;
    return a;
}

void agents_free(agents *a)
{
    give_up(a);
    forget_name(a);
    if (a->writing != 0)
        g_source_remove(a->writing);
    if (a->drawing_due != 0)
        g_source_remove(a->drawing_due);
    if (a->pipe >= 0)
        close(a->pipe);
    g_ptr_array_free(a->streams, TRUE);
    g_ptr_array_free(a->events, TRUE);
    g_string_free(a->pending, TRUE);
    g_free(a->drawn);
    g_free(a);
}
