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

/* Returns whether a request other than `except` may make the thread send a call. */
static bool has_runnable(const trace_thread *t, const span *except)
{
    for (guint i = 0; i < t->open->len; i++) {
        const span *s = g_ptr_array_index(t->open, i);
        if (s != except && !s->replied && s->waiting == 0 && s->connecting == 0)
            return true;
    }
    return false;
}

/* Returns whether the thread handles data of its latest request, see causes.h. */
static bool handles(const trace_thread *t, const span *latest, uint32_t fresh, const struct trace_event *event)
{
    if (latest->idles != event->idles || has_runnable(t, latest))
        return false;
    return fresh == 1 || (latest->order == t->order && latest->polls == event->polls);
}

span *causes_find(causes *c, const struct trace_event *event, span_cause *cause, uint32_t *candidates)
{
    const trace_thread *t = find_thread(c, event);
    span *latest = NULL;
    uint32_t fresh = 0;
    *candidates = t->open->len;
    for (guint i = 0; i < t->open->len; i++) {
        span *s = g_ptr_array_index(t->open, i);
        fresh += s->idles == event->idles;
        if (latest == NULL || s->order > latest->order)
            latest = s;
    }
    if (latest == NULL)
        *cause = SPAN_CAUSE_NONE;
    else if (t->open->len == 1)
        *cause = SPAN_CAUSE_THREAD;
    else
        *cause = handles(t, latest, fresh, event) ? SPAN_CAUSE_HANDLER : SPAN_CAUSE_AMBIGUOUS;
    return *cause == SPAN_CAUSE_AMBIGUOUS ? NULL : latest;
}

span *causes_find_opener(causes *c, const struct trace_event *event, span *opener, uint32_t calls, span_cause *cause,
                         uint32_t *candidates)
{
    const trace_thread *t = find_thread(c, event);
    span *found = causes_find(c, event, cause, candidates);
    if (*cause == SPAN_CAUSE_THREAD || opener->thread != t || opener->calls != calls || has_runnable(t, opener))
        return found;
    *cause = SPAN_CAUSE_CONNECTION;
    return opener;
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
