#include "config.h"

#include "agents/stream.h"

#include "agents/gather.h"
#include "requests/printable.h"

#include <string.h>

enum { QUEUE_MAX = 4096 }; /* records that wait for the main loop; the agent waits meanwhile */

/* What the thread that reads and the main loop share. */
typedef struct mailbox {
    gint users;
    GMutex lock;
    GCond changed;
    GQueue records; /* nl_record, of the mailbox */
    bool closed;    /* nobody takes records any more */
    bool announced; /* the main loop will take them */
    stream *owner;  /* only for the main loop's thread; NULL: freed */
    gathering *gathering;
    char *sensor, *sensors[2];
} mailbox;

struct stream {
    char *url, *state;
    mailbox *box;
    stream_callbacks callbacks;
    bool held;
};

static void mailbox_unref(mailbox *box)
{
    if (!g_atomic_int_dec_and_test(&box->users))
        return;
    for (nl_record *record; (record = g_queue_pop_head(&box->records)) != NULL;)
        nl_record_free(record);
    g_mutex_clear(&box->lock);
    g_cond_clear(&box->changed);
    g_free(box->sensor);
    g_free(box);
}

/* ---- what it says of itself ---- */

static bool is_event(const nl_record *record, const char *name)
{
    return record->event.size == strlen(name) && memcmp(record->event.data, name, record->event.size) == 0;
}

static bool begins_with(nl_string text, const char *message)
{
    return text.size >= strlen(message) && memcmp(text.data, message, strlen(message)) == 0;
}

bool stream_is_own_event(const nl_record *record)
{
    return begins_with(record->event, "Nlagent.") || begins_with(record->event, "Nlagentd.");
}

static void set_state(stream *s, const char *message)
{
    if (strcmp(s->state, message) == 0)
        return;
    g_free(s->state);
    s->state = printable(message);
    s->callbacks.state(s->callbacks.user, s);
}

/* Its state by what came. */
static void stream_note(stream *s, const nl_record *record)
{
    nl_field reason;
    char scratch[NL_FIELD_TEXT_SIZE];
    bool is_lost = is_event(record, "Nlagent.Lost"), is_failed = is_event(record, "Nlagentd.SensorFailed");
    if (!is_lost && !is_failed) {
        if (!stream_is_own_event(record))
            set_state(s, "running");
        return;
    }
    const char *what = is_lost ? "lost, tried again: " : "the sensor failed: ";
    nl_string value = {0};
    if (nl_record_find(record, "REASON", &reason))
        value = nl_field_text(&reason, scratch);
    char *message = g_strdup_printf("%s%.*s", what, (int)MIN(value.size, 300), value.data != NULL ? value.data : "");
    set_state(s, message);
    g_free(message);
}

/* ---- records, from the thread to the main loop ---- */

static gboolean stream_take_records(gpointer user)
{
    mailbox *box = user;
    stream *s = box->owner;
    GQueue taken = G_QUEUE_INIT;
    g_mutex_lock(&box->lock);
    box->announced = false;
    if (s != NULL && !s->held) {
        taken = box->records;
        g_queue_init(&box->records);
        g_cond_signal(&box->changed);
    }
    g_mutex_unlock(&box->lock);
    bool some = !g_queue_is_empty(&taken);
    for (nl_record *record; (record = g_queue_pop_head(&taken)) != NULL;) {
        stream_note(s, record);
        s->callbacks.record(s->callbacks.user, s, record);
        nl_record_free(record);
    }
    if (some)
        s->callbacks.read(s->callbacks.user);
    mailbox_unref(box);
    return G_SOURCE_REMOVE;
}

/* Within the lock. */
static void announce(mailbox *box)
{
    if (box->announced || g_queue_is_empty(&box->records))
        return;
    box->announced = true;
    g_atomic_int_inc(&box->users);
    g_idle_add_full(G_PRIORITY_DEFAULT, stream_take_records, box, NULL);
}

/* Of the thread that reads. */
static bool put_record(void *user, const nl_record *record)
{
    mailbox *box = user;
    nl_record *copy = nl_record_new();
    nl_record_copy(copy, record);
    g_mutex_lock(&box->lock);
    while (!box->closed && g_queue_get_length(&box->records) >= QUEUE_MAX)
        g_cond_wait(&box->changed, &box->lock);
    bool wanted = !box->closed;
    g_queue_push_tail(&box->records, copy);
    if (wanted)
        announce(box);
    g_mutex_unlock(&box->lock);
    return wanted;
}

void stream_hold(stream *s, bool hold)
{
    s->held = hold;
    g_mutex_lock(&s->box->lock);
    if (!hold)
        announce(s->box);
    g_mutex_unlock(&s->box->lock);
}

/* ---- life ---- */

/* In a thread of its own: the one that reads may be connecting to an agent that is away. */
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
    box->closed = true;
    g_cond_signal(&box->changed);
    g_mutex_unlock(&box->lock);
    g_thread_unref(g_thread_new("end of stream", end_reading, box));
}

stream *stream_new(const agents_options *options, const char *url, const char *sensor, stream_callbacks callbacks)
{
    mailbox *box = g_new0(mailbox, 1);
    box->users = 1;
    g_mutex_init(&box->lock);
    g_cond_init(&box->changed);
    g_queue_init(&box->records);
    box->sensor = box->sensors[0] = g_strdup(sensor);
    box->gathering = gather_new(
        &(gather_options){.client = options->client, .sensors = box->sensors, .put = put_record, .user = box});
    if (!gather_add(box->gathering, url)) {
        close_mailbox(box);
        return NULL;
    }
    stream *s = g_new0(stream, 1);
    *s = (stream){.url = g_strdup(url), .state = g_strdup("asked for"), .box = box, .callbacks = callbacks};
    box->owner = s;
    return s;
}

void stream_free(gpointer data)
{
    stream *s = data;
    close_mailbox(s->box);
    g_free(s->state);
    g_free(s->url);
    g_free(s);
}

bool stream_is(const stream *s, const char *url, const char *sensor)
{
    return strcmp(s->url, url) == 0 && strcmp(s->box->sensor, sensor) == 0;
}

const char *stream_url(const stream *s)
{
    return s->url;
}

const char *stream_sensor(const stream *s)
{
    return s->box->sensor;
}

const char *stream_state(const stream *s)
{
    return s->state;
}
