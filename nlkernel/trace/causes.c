#include "config.h"

#include "trace/causes.h"

#include <glib.h>

typedef struct trace_thread {
    GPtrArray *open; /* span: references to requests that are not answered */
    uint64_t order;  /* number of times that the thread has received data */
    int64_t seen_ns;
} trace_thread;

struct causes {
    GHashTable *threads; /* trace_thread by thread ID */
};

static void thread_free(gpointer data)
{
    trace_thread *t = data;
    for (guint i = 0; i < t->open->len; i++) {
        span *s = g_ptr_array_index(t->open, i);
        s->thread = NULL;
        span_release(s);
    }
    g_ptr_array_free(t->open, TRUE);
    g_free(t);
}

causes *causes_new(void)
{
    causes *c = g_new0(causes, 1);
    c->threads = g_hash_table_new_full(NULL, NULL, NULL, thread_free);
    return c;
}

void causes_free(causes *c)
{
    if (c == NULL)
        return;
    g_hash_table_destroy(c->threads);
    g_free(c);
}

static trace_thread *find_thread(causes *c, const struct trace_event *event)
{
    trace_thread *t = g_hash_table_lookup(c->threads, GUINT_TO_POINTER(event->tid));
    if (t == NULL) {
        t = g_new0(trace_thread, 1);
        t->open = g_ptr_array_new();
        g_hash_table_insert(c->threads, GUINT_TO_POINTER(event->tid), t);
    }
    t->seen_ns = (int64_t)event->end_ns;
    return t;
}

void causes_answer(causes *c, span *request)
{
    (void)c;
    if (request->thread == NULL)
        return;
    g_ptr_array_remove_fast(request->thread->open, request);
    request->thread = NULL;
    span_release(request);
}

void causes_receive(causes *c, span *request, const struct trace_event *event)
{
    trace_thread *t = find_thread(c, event);
    if (request->thread != t) {
        span_hold(request);
        causes_answer(c, request); /* leaves the thread that worked on it before */
        g_ptr_array_add(t->open, request);
        request->thread = t;
    }
    request->order = ++t->order;
    request->idles = event->idles;
    request->polls = event->polls;
}

void causes_receive_other(causes *c, const struct trace_event *event)
{
    find_thread(c, event)->order++;
}

span *causes_find(causes *c, const struct trace_event *event, span_cause *cause, uint32_t *candidates)
{
    const trace_thread *t = find_thread(c, event);
    span *latest = NULL;
    uint32_t fresh = 0;
    *cause = SPAN_CAUSE_NONE;
    *candidates = t->open->len;
    if (t->open->len == 0)
        return NULL;
    for (guint i = 0; i < t->open->len; i++) {
        span *s = g_ptr_array_index(t->open, i);
        fresh += s->idles == event->idles;
        if (latest == NULL || s->order > latest->order)
            latest = s;
    }
    *cause = SPAN_CAUSE_HANDLER;
    if (t->open->len == 1)
        *cause = SPAN_CAUSE_THREAD;
    else if (latest->idles != event->idles ||
             (fresh > 1 && (latest->order != t->order || latest->polls != event->polls)))
        *cause = SPAN_CAUSE_AMBIGUOUS;
    return *cause == SPAN_CAUSE_AMBIGUOUS ? NULL : latest;
}

static gboolean is_old(gpointer key, gpointer value, gpointer user)
{
    const trace_thread *t = value;
    (void)key;
    return t->open->len == 0 && t->seen_ns < *(const int64_t *)user;
}

void causes_expire(causes *c, int64_t before_ns)
{
    g_hash_table_foreach_remove(c->threads, is_old, &before_ns);
}
