#include "config.h"

#include "agents/subscription.h"

#include "agents/gather.h"
#include "requests/printable.h"

#include <string.h>

enum { EVENTS_MAX = 1024, REASON_MAX = 300 };

/* The data that the reading thread and the main loop share. */
typedef struct mailbox {
    gint users;
    feed *feed;
    char *sensor, *sensors[2];
    gathering *gathering;
    subscription *owner; /* used only by the main loop's thread; subscription_free sets it to NULL */

    /* Only the reading thread uses the following members. */
    GHashTable *met; /* names of the events received so far */
    bool was_lost;   /* the latest record reports that the connection to the agent is lost */

    GMutex lock; /* protects all members below */
    GQueue news; /* nl_record: the first record of each event, and records about the subscription */
    bool is_closed, is_announced;
} mailbox;

struct subscription {
    char *url, *state; /* the state is text for the user */
    bool is_running, has_failed;
    mailbox *box;
    subscription_callbacks callbacks;
};

static void mailbox_unref(mailbox *box)
{
    if (!g_atomic_int_dec_and_test(&box->users))
        return;
    g_queue_clear_full(&box->news, (GDestroyNotify)nl_record_free);
    g_hash_table_destroy(box->met);
    g_mutex_clear(&box->lock);
    feed_unref(box->feed);
    g_free(box->sensor);
    g_free(box);
}

/* ---- state ---- */

static bool is_event(const nl_record *record, const char *name)
{
    return record->event.size == strlen(name) && memcmp(record->event.data, name, record->event.size) == 0;
}

static bool begins_with(nl_string text, const char *prefix)
{
    return text.size >= strlen(prefix) && memcmp(text.data, prefix, strlen(prefix)) == 0;
}

static bool is_own_event(const nl_record *record)
{
    return begins_with(record->event, "Nlagent.") || begins_with(record->event, "Nlagentd.");
}

static void set_state(subscription *s, bool has_failed, const char *message)
{
    g_free(s->state);
    s->state = printable(message);
    s->has_failed = has_failed;
    s->is_running = !has_failed;
    s->callbacks.state(s->callbacks.user, s);
}

static void note_own_event(subscription *s, const nl_record *record)
{
    nl_field reason;
    char scratch[NL_FIELD_TEXT_SIZE];
    bool is_lost = is_event(record, "Nlagent.Lost");
    if (!is_lost && !is_event(record, "Nlagentd.SensorFailed"))
        return;
    nl_string value = {"", 0};
    if (nl_record_find(record, "REASON", &reason))
        value = nl_field_text(&reason, scratch);
    char *message = g_strdup_printf("%s: %.*s", is_lost ? "connection lost, connecting again" : "the sensor failed",
                                    (int)MIN(value.size, REASON_MAX), value.data);
    set_state(s, true, message);
    g_free(message);
}

/* ---- transfer to the main loop ---- */

static gboolean subscription_handle_news(gpointer user)
{
    mailbox *box = user;
    subscription *s = box->owner;
    g_mutex_lock(&box->lock);
    GQueue news = box->news;
    g_queue_init(&box->news);
    box->is_announced = false;
    g_mutex_unlock(&box->lock);
    for (nl_record *record; (record = g_queue_pop_head(&news)) != NULL; nl_record_free(record)) {
        if (s == NULL)
            continue;
        if (is_own_event(record)) {
            note_own_event(s, record);
        } else {
            if (!s->is_running)
                set_state(s, false, "running");
            s->callbacks.record(s->callbacks.user, s, record);
        }
    }
    mailbox_unref(box);
    return G_SOURCE_REMOVE;
}

/* Returns whether the reading thread must pass a record to the main loop. */
static bool is_news(mailbox *box, const nl_record *record)
{
    bool was_lost = box->was_lost;
    box->was_lost = is_own_event(record);
    if (box->was_lost || was_lost)
        return true;
    char *name = g_strndup(record->event.data, record->event.size);
    if (g_hash_table_size(box->met) < EVENTS_MAX && !g_hash_table_contains(box->met, name))
        return g_hash_table_add(box->met, name);
    g_free(name);
    return false;
}

static void announce(mailbox *box, const nl_record *record)
{
    nl_record *copy = nl_record_new();
    nl_record_copy(copy, record);
    g_mutex_lock(&box->lock);
    if (g_queue_get_length(&box->news) >=
        EVENTS_MAX) /* drop the oldest record; the newer records contain the current state */
        nl_record_free(g_queue_pop_head(&box->news));
    g_queue_push_tail(&box->news, copy);
    if (!box->is_announced) {
        g_atomic_int_inc(&box->users);
        g_idle_add_full(G_PRIORITY_DEFAULT, subscription_handle_news, box, NULL);
    }
    box->is_announced = true;
    g_mutex_unlock(&box->lock);
}

static bool put_record(void *user, const nl_record *record)
{
    mailbox *box = user;
    g_mutex_lock(&box->lock);
    bool is_open = !box->is_closed;
    g_mutex_unlock(&box->lock);
    if (is_open && is_news(box, record))
        announce(box, record);
    return is_open && feed_put(box->feed, record);
}

/* ---- creation and destruction ---- */

/* Ends the reading thread. Runs in a separate thread, because the reading thread may be waiting for an unreachable
 * agent. */
static gpointer end_reading(gpointer user)
{
    mailbox *box = user;
    gather_free(box->gathering);
    mailbox_unref(box);
    return NULL;
}

static void close_mailbox(mailbox *box)
{
    box->owner = NULL;
    g_mutex_lock(&box->lock);
    box->is_closed = true;
    g_mutex_unlock(&box->lock);
    g_thread_unref(g_thread_new("end of subscription", end_reading, box));
}

subscription *subscription_new(const agents_options *options, const char *url, const char *sensor, feed *into,
                               subscription_callbacks callbacks)
{
    mailbox *box = g_new0(mailbox, 1);
    subscription *s = g_new0(subscription, 1);
    *s = (subscription){.url = g_strdup(url), .state = g_strdup("connecting"), .box = box, .callbacks = callbacks};
    box->users = 1;
    box->owner = s;
    box->feed = feed_ref(into);
    box->met = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    box->sensor = box->sensors[0] = g_strdup(sensor);
    g_mutex_init(&box->lock);
    g_queue_init(&box->news);
    box->gathering = gather_new(
        &(gather_options){.client = options->client, .sensors = box->sensors, .put = put_record, .user = box});
    if (gather_add(box->gathering, url))
        return s;
    subscription_free(s);
    return NULL;
}

void subscription_free(gpointer data)
{
    subscription *s = data;
    close_mailbox(s->box);
    g_free(s->state);
    g_free(s->url);
    g_free(s);
}

bool subscription_is(const subscription *s, const char *url, const char *sensor)
{
    return strcmp(s->url, url) == 0 && strcmp(s->box->sensor, sensor) == 0;
}

const char *subscription_url(const subscription *s)
{
    return s->url;
}

const char *subscription_sensor(const subscription *s)
{
    return s->box->sensor;
}

const char *subscription_state(const subscription *s)
{
    return s->state;
}

bool subscription_has_failed(const subscription *s)
{
    return s->has_failed;
}
