#include "config.h"

#include "model/feed.h"

#include <glib.h>

enum { RECORDS_MAX = 4096 };

struct feed {
    gint users;
    GMutex lock; /* protects all members below */
    GCond changed;
    GQueue records; /* nl_record */
    bool is_closed;
};

feed *feed_new(void)
{
    feed *f = g_new0(feed, 1);
    f->users = 1;
    g_mutex_init(&f->lock);
    g_cond_init(&f->changed);
    g_queue_init(&f->records);
    return f;
}

feed *feed_ref(feed *f)
{
    g_atomic_int_inc(&f->users);
    return f;
}

void feed_unref(feed *f)
{
    if (!g_atomic_int_dec_and_test(&f->users))
        return;
    g_queue_clear_full(&f->records, (GDestroyNotify)nl_record_free);
    g_mutex_clear(&f->lock);
    g_cond_clear(&f->changed);
    g_free(f);
}

bool feed_put(feed *f, const nl_record *record)
{
    g_mutex_lock(&f->lock);
    while (!f->is_closed && g_queue_get_length(&f->records) >= RECORDS_MAX)
        g_cond_wait(&f->changed, &f->lock);
    bool is_open = !f->is_closed;
    if (is_open) {
        nl_record *copy = nl_record_new();
        nl_record_copy(copy, record);
        g_queue_push_tail(&f->records, copy);
    }
    g_mutex_unlock(&f->lock);
    return is_open;
}

nl_record *feed_take(feed *f)
{
    g_mutex_lock(&f->lock);
    nl_record *record = g_queue_pop_head(&f->records);
    g_cond_signal(&f->changed);
    g_mutex_unlock(&f->lock);
    return record;
}

bool feed_is_empty(feed *f)
{
    g_mutex_lock(&f->lock);
    bool is_empty = g_queue_is_empty(&f->records);
    g_mutex_unlock(&f->lock);
    return is_empty;
}

void feed_close(feed *f)
{
    g_mutex_lock(&f->lock);
    f->is_closed = true;
    g_cond_broadcast(&f->changed);
    g_mutex_unlock(&f->lock);
}
