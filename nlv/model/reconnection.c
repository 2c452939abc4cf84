#include "config.h"

#include "model/reconnection.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

struct reconnection {
    gint uses; /* 2: the owner and the thread use the object */
    char *url;
    GMutex lock; /* protects the following members */
    GCond changed;
    nl_source *stream;
    bool is_stopped;
};

static void reconnection_drop(reconnection *r)
{
    if (!g_atomic_int_dec_and_test(&r->uses))
        return;
    nl_source_close(r->stream);
    g_mutex_clear(&r->lock);
    g_cond_clear(&r->changed);
    g_free(r->url);
    g_free(r);
}

/* Removes the option since=, with which the collector would send records again that nlv already has. */
static void remove_since(nl_url *url)
{
    for (size_t i = url->option_count; i-- > 0;) {
        nl_url_option *option = &url->options[i];
        if (strcmp(option->name, "since") != 0)
            continue;
        free(option->name);
        free(option->value);
        *option = url->options[--url->option_count];
    }
}

static void *reconnection_run(void *user)
{
    reconnection *r = user;
    nl_url *url = nl_url_parse_for(r->url, NL_URL_READ);
    gint64 delay_s = RECONNECTION_MIN_S;
    if (url != NULL)
        remove_since(url);
    g_mutex_lock(&r->lock);
    while (url != NULL && !r->is_stopped && r->stream == NULL) {
        g_mutex_unlock(&r->lock);
        nl_source *stream = nl_source_open(url, true, true);
        g_mutex_lock(&r->lock);
        r->stream = stream;
        const gint64 until_us = g_get_monotonic_time() + delay_s * G_TIME_SPAN_SECOND;
        while (stream == NULL && !r->is_stopped && g_cond_wait_until(&r->changed, &r->lock, until_us))
            ;
        delay_s = MIN(2 * delay_s, RECONNECTION_MAX_S);
    }
    g_mutex_unlock(&r->lock);
    nl_url_free(url);
    reconnection_drop(r);
    return NULL;
}

reconnection *reconnection_start(const char *url)
{
    reconnection *r = g_new0(reconnection, 1);
    r->uses = 2;
    r->url = g_strdup(url);
    g_mutex_init(&r->lock);
    g_cond_init(&r->changed);
    g_thread_unref(g_thread_new("reconnection", reconnection_run, r));
    return r;
}

nl_source *reconnection_take(reconnection *r)
{
    g_mutex_lock(&r->lock);
    nl_source *stream = g_steal_pointer(&r->stream);
    r->is_stopped = r->is_stopped || stream != NULL;
    g_mutex_unlock(&r->lock);
    return stream;
}

void reconnection_free(reconnection *r)
{
    if (r == NULL)
        return;
    g_mutex_lock(&r->lock);
    r->is_stopped = true;
    g_cond_signal(&r->changed);
    g_mutex_unlock(&r->lock);
    reconnection_drop(r);
}
