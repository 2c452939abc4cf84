#include "config.h"

#include "agents/agents.h"
#include "agents/subscription.h"

#include "program/program.h"

#include <gio/gio.h>
#include <string.h>

enum {
    SUBSCRIPTIONS_MAX = 256,
    ROWS_MAX = 100000,
    LOADLINES_MAX = 24,
    LOADLINES_PER_EVENT = 2,
    GATHER_MS = 700, /* time to wait for further events after a new event, before nlv draws again */
};

/* An event of a sensor, and the fields of this event that nlv draws. */
typedef struct event {
    char *name, *sensor;
    char *fields[LOADLINES_PER_EVENT];
    size_t count;
    bool is_of_one; /* each record describes one of several objects; a text field identifies the object */
} event;

struct agents {
    agents_callbacks callbacks;
    GCancellable *looking; /* NULL: no search is running */
    GPtrArray *subscriptions;
    GPtrArray *events;
    agents_options options;
    feed *feed; /* NULL until first use */
    guint drawing_due;
    char *drawn; /* text of the loadlines at the latest call of the callback `drawn` */
    guint quiet;
};

/* ---- the log ---- */

feed *agents_feed(agents *a)
{
    if (a->feed == NULL)
        a->feed = feed_new();
    return a->feed;
}

/* ---- the drawn events ---- */

static void free_event(gpointer data)
{
    event *e = data;
    for (size_t i = 0; i < e->count; i++)
        g_free(e->fields[i]);
    g_free(e->name);
    g_free(e->sensor);
    g_free(e);
}

static gboolean agents_draw(gpointer user)
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
        a->drawing_due = g_timeout_add(GATHER_MS, agents_draw, a);
}

static bool is_number(const nl_field *field)
{
    double value;
    return nl_field_double(field, &value);
}

/* Returns whether a field is an ID or a constant total. nlv draws no loadline for such fields. */
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

/* If an event is new, stores it and selects its first numeric fields for loadlines. */
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
    for (guint i = 0; i < a->subscriptions->len; i++)
        if (strcmp(subscription_sensor(g_ptr_array_index(a->subscriptions, i)), sensor) == 0)
            return true;
    return false;
}

/* Returns whether a sensor has an event that describes the whole host. If so, nlv does not draw the sensor's events
 * that describe single objects, because nlv would join the values of all objects into one line. */
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

/* ---- subscriptions ---- */

static subscription *find_subscription(const agents *a, const char *url, const char *sensor)
{
    for (guint i = 0; i < a->subscriptions->len; i++) {
        subscription *s = g_ptr_array_index(a->subscriptions, i);
        if (subscription_is(s, url, sensor))
            return s;
    }
    return NULL;
}

static void on_record(void *user, const subscription *from, const nl_record *record)
{
    note_event(user, subscription_sensor(from), record);
}

static void on_state(void *user, const subscription *of)
{
    agents *a = user;
    a->callbacks.changed(a->callbacks.user, subscription_url(of), subscription_sensor(of), subscription_state(of),
                         subscription_has_failed(of));
}

bool agents_add(agents *a, const char *url, const char *sensor)
{
    if (find_subscription(a, url, sensor) != NULL)
        return true;
    if (a->subscriptions->len >= SUBSCRIPTIONS_MAX) {
        a->callbacks.changed(a->callbacks.user, url, sensor, "too many sensors; remove some first", true);
        return false;
    }
    subscription_callbacks callbacks = {on_record, on_state, a};
    subscription *s = subscription_new(&a->options, url, sensor, agents_feed(a), callbacks);
    if (s == NULL) {
        a->callbacks.changed(a->callbacks.user, url, sensor, nl_error_message(), true);
        return false;
    }
    g_ptr_array_add(a->subscriptions, s);
    on_state(a, s);
    draw_soon(a);
    return true;
}

void agents_remove(agents *a, const char *url, const char *sensor)
{
    subscription *s = find_subscription(a, url, sensor);
    if (s == NULL)
        return;
    g_ptr_array_remove(a->subscriptions, s);
    a->callbacks.changed(a->callbacks.user, url, sensor, "", false);
    draw_soon(a);
}

const char *agents_state(const agents *a, const char *url, const char *sensor)
{
    const subscription *s = find_subscription(a, url, sensor);
    return s != NULL ? subscription_state(s) : NULL;
}

void agents_each(const agents *a, void (*function)(void *user, const char *url, const char *sensor, const char *state),
                 void *user)
{
    for (guint i = 0; i < a->subscriptions->len; i++) {
        const subscription *s = g_ptr_array_index(a->subscriptions, i);
        function(user, subscription_url(s), subscription_sensor(s), subscription_state(s));
    }
}

/* ---- searches ---- */

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

/* A search in a directory, in a separate thread. */
typedef struct search {
    agents_options options;
    char *url, *expression;
    GPtrArray *rows;
    char *problem; /* "" if the search succeeded */
} search;

static void free_search(gpointer data)
{
    search *f = data;
    g_ptr_array_free(f->rows, TRUE);
    g_free(f->problem);
    g_free(f->url);
    g_free(f->expression);
    g_free(f);
}

static void agents_add_row(void *user, const char *host, const char *url, const char *sensor, const char *events)
{
    search *f = user;
    if (f->rows->len >= ROWS_MAX)
        return;
    agents_row *row = g_new(agents_row, 1);
    *row = (agents_row){g_strdup(host), g_strdup(url), g_strdup(sensor), g_strdup(events)};
    g_ptr_array_add(f->rows, row);
}

static void run_search(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    search *f = data;
    (void)source, (void)cancellable;
    bool good = agents_find_sensors(&f->options, f->url, f->expression, agents_add_row, f);
    f->problem = g_utf8_make_valid(good ? "no such sensor is registered" : nl_error_message(), -1);
    g_ptr_array_sort(f->rows, by_host);
    g_task_return_boolean(task, TRUE);
}

static void on_found(GObject *source, GAsyncResult *result, gpointer user)
{
    (void)source;
    const search *f = g_task_get_task_data(G_TASK(result));
    if (!g_task_propagate_boolean(G_TASK(result),
                                  NULL)) /* the search was cancelled, and the agents object may be freed */
        return;
    agents *a = user;
    g_clear_object(&a->looking);
    a->callbacks.found(a->callbacks.user, f->rows, f->rows->len > 0 ? "" : f->problem);
}

static void agents_fail(agents *a)
{
    if (a->looking == NULL)
        return;
    g_cancellable_cancel(a->looking);
    g_clear_object(&a->looking);
}

void agents_find(agents *a, const char *directory, const char *expression)
{
    search *f = g_new0(search, 1);
    bool named = directory != NULL && *directory != '\0';
    agents_fail(a);
    *f = (search){.options = a->options,
                  .url = g_strdup(named ? directory : agents_directory_url(&a->options)),
                  .expression = g_strdup(expression),
                  .rows = g_ptr_array_new_with_free_func(free_row)};
    a->looking = g_cancellable_new();
    GTask *task = g_task_new(NULL, a->looking, on_found, a);
    g_task_set_return_on_cancel(task, TRUE);
    g_task_set_task_data(task, f, free_search);
    g_task_run_in_thread(task, run_search);
    g_object_unref(task);
}

/* ---- creation and destruction ---- */

agents *agents_new(agents_callbacks callbacks)
{
    agents *a = g_new0(agents, 1);
    a->callbacks = callbacks;
    a->subscriptions = g_ptr_array_new_with_free_func(subscription_free);
    a->events = g_ptr_array_new_with_free_func(free_event);
    if (!agents_options_from_environment(&a->options))
        program_print_error();
    return a;
}

void agents_free(agents *a)
{
    agents_fail(a);
    if (a->drawing_due != 0)
        g_source_remove(a->drawing_due);
    g_ptr_array_free(a->subscriptions, TRUE);
    g_ptr_array_free(a->events, TRUE);
    if (a->feed != NULL)
        feed_unref(a->feed);
    g_free(a->drawn);
    g_free(a);
}
