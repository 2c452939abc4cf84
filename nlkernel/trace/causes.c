#include "config.h"

#include "trace/causes.h"

#include "base/hash_bytes.h"
#include "requests/hash64.h"

#include <glib.h>
#include <string.h>

#define JOB_NS ((int64_t)10 * NL_NS_PER_SECOND)
#define IDLE_NS ((int64_t)600 * NL_NS_PER_SECOND)

enum { UNDECIDED_MAX = 100000, CHANNELS_MAX = 4096, CHANNEL_SHIFT = 3 };

/* Flags: the actions of a thread on a channel, and the kinds of channels. A channel is a futex, pipe, eventfd or Unix
 * socket. */
enum { CHANNEL_WAKES = 1, CHANNEL_IS_WOKEN = 2, CHANNEL_IS_LOCK = 4, CHANNEL_IS_INTERNAL = 8 };

typedef struct thread_group {
    uint32_t open;      /* number of unanswered requests that the process's threads have received */
    GPtrArray *working; /* trace_thread: the threads that have a job */
    GHashTable *uses;   /* actions of threads on channels, by a hash of the thread and the channel */
    GHashTable *kinds;  /* CHANNEL_IS_LOCK or CHANNEL_IS_INTERNAL by channel */
    int64_t seen_ns;
    int64_t answered_ns; /* time of the process's latest answer to a request */
} thread_group;

typedef struct trace_thread {
    uint32_t tid;
    thread_group *process;
    GPtrArray *open;      /* span: references to unanswered requests */
    uint64_t order;       /* number of system calls with which the thread has received data */
    uint64_t received_ns; /* end of the latest of these calls */
    int64_t seen_ns;
    span *call; /* reference to the latest call with a known parent, or NULL */

    GPtrArray *job;    /* span: references to undecided calls; NULL: no job */
    uint32_t loops;    /* trace_event.loops at the first call of the job */
    bool counts_waits; /* trace_event.counts_waits at this call */
    bool tangled;      /* the calls of the job overlap, or other threads received their replies */
    bool signalled;    /* the thread has signalled another thread since it finished its calls */
    bool several;      /* the thread signalled another thread, and then sent another call */
    bool was_woken;    /* a thread with a request has woken this thread */
    span *handed;      /* reference to the request for which another thread woke this thread, or NULL */
} trace_thread;

struct causes {
    GHashTable *threads;   /* maps a thread ID to its trace_thread */
    GHashTable *processes; /* maps a process ID to its thread_group */
    trace_thread *last;    /* the thread that find_thread_by_id returned last, or NULL */
    uint32_t undecided;
};

static void process_free(gpointer data)
{
    thread_group *p = data;
    g_ptr_array_free(p->working, TRUE);
    g_hash_table_destroy(p->uses);
    g_hash_table_destroy(p->kinds);
    g_free(p);
}

static void thread_free(gpointer data)
{
    trace_thread *t = data;
    for (guint i = 0; i < t->open->len; i++) {
        span *s = g_ptr_array_index(t->open, i);
        s->thread = NULL;
        span_release(s);
    }
    g_ptr_array_free(t->open, TRUE);
    for (guint i = 0; t->job != NULL && i < t->job->len; i++)
        span_release(g_ptr_array_index(t->job, i));
    if (t->job != NULL)
        g_ptr_array_free(t->job, TRUE);
    span_release(t->handed);
    span_release(t->call);
    g_free(t);
}

causes *causes_new(void)
{
    causes *c = g_new0(causes, 1);
    c->threads = g_hash_table_new_full(NULL, NULL, NULL, thread_free);
    c->processes = g_hash_table_new_full(NULL, NULL, NULL, process_free);
    return c;
}

void causes_free(causes *c)
{
    if (c == NULL)
        return;
    g_hash_table_destroy(c->threads);
    g_hash_table_destroy(c->processes);
    g_free(c);
}

static thread_group *find_thread_group(causes *c, const struct trace_event *event)
{
    thread_group *p = g_hash_table_lookup(c->processes, GUINT_TO_POINTER(event->pid));
    if (p == NULL) {
        p = g_new0(thread_group, 1);
        p->working = g_ptr_array_new();
        p->uses = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
        p->kinds = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
        g_hash_table_insert(c->processes, GUINT_TO_POINTER(event->pid), p);
    }
    p->seen_ns = (int64_t)event->end_ns;
    return p;
}

static trace_thread *find_thread_by_id(causes *c, const struct trace_event *event, uint32_t tid)
{
    trace_thread *t = c->last;
    if (t == NULL || t->tid != tid)
        t = g_hash_table_lookup(c->threads, GUINT_TO_POINTER(tid));
    if (t == NULL) {
        t = g_new0(trace_thread, 1);
        t->tid = tid;
        t->process = find_thread_group(c, event);
        t->open = g_ptr_array_new();
        g_hash_table_insert(c->threads, GUINT_TO_POINTER(tid), t);
    }
    c->last = t;
    t->process->seen_ns = t->seen_ns = (int64_t)event->end_ns;
    return t;
}

static trace_thread *find_thread(causes *c, const struct trace_event *event)
{
    return find_thread_by_id(c, event, event->tid);
}

/* Removes a request from its thread, and releases the thread's reference. */
static void remove_request(span *request)
{
    thread_group *p = request->thread->process;
    g_ptr_array_remove_fast(request->thread->open, request);
    p->open--;
    p->answered_ns = MAX(p->answered_ns, request->end_ns);
    request->thread = NULL;
    span_release(request);
}

static void give_request(trace_thread *t, span *request)
{
    if (request->thread == t)
        return;
    span_hold(request);
    if (request->thread != NULL)
        remove_request(request);
    g_ptr_array_add(t->open, request);
    request->thread = t;
    t->process->open++;
}

/* Counts a system call with which a thread has received data, once if the call receives data for several requests. */
static void count_call(trace_thread *t, const struct trace_event *event)
{
    t->order += event->end_ns != t->received_ns;
    t->received_ns = event->end_ns;
}

static void note_waits(span *request, const struct trace_event *event)
{
    request->idles = event->idles;
    request->polls = event->polls;
    request->counts_waits = event->counts_waits;
}

void causes_receive(causes *c, span *request, const struct trace_event *event)
{
    trace_thread *t = find_thread(c, event);
    give_request(t, request);
    count_call(t, event);
    request->order = t->order;
    note_waits(request, event);
}

void causes_receive_other(causes *c, const struct trace_event *event)
{
    count_call(find_thread(c, event), event);
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

/*
 * Returns whether the thread handles data of the request `latest`, for which it has received its latest data
 * (causes.h). `fresh` is the number of requests for which the thread has received data since its last wait. `last` is
 * the number of requests for which the latest system call has received data.
 */
static bool handles(const trace_thread *t, const span *latest, uint32_t fresh, uint32_t last,
                    const struct trace_event *event)
{
    if (!latest->counts_waits || !event->counts_waits || latest->idles != event->idles || has_runnable(t, latest))
        return false;
    return fresh == 1 || (last == 1 && latest->order == t->order && latest->polls == event->polls);
}

span *causes_find(causes *c, const struct trace_event *event, span_cause *cause, uint32_t *candidates)
{
    const trace_thread *t = find_thread(c, event);
    span *latest = NULL;
    uint32_t fresh = 0, last = 0;
    *candidates = t->open->len;
    for (guint i = 0; i < t->open->len; i++) {
        span *s = g_ptr_array_index(t->open, i);
        fresh += s->idles == event->idles;
        last += s->order == t->order;
        if (latest == NULL || s->order > latest->order)
            latest = s;
    }
    if (latest == NULL)
        *cause = SPAN_CAUSE_NONE;
    else if (t->open->len == 1)
        *cause = SPAN_CAUSE_THREAD;
    else
        *cause = handles(t, latest, fresh, last, event) ? SPAN_CAUSE_HANDLER : SPAN_CAUSE_AMBIGUOUS;
    return *cause == SPAN_CAUSE_AMBIGUOUS ? NULL : latest;
}

span *causes_find_opener(causes *c, const struct trace_event *event, span *opener, uint32_t calls, span_cause *cause,
                         uint32_t *candidates)
{
    const trace_thread *t = find_thread(c, event);
    span *found = causes_find(c, event, cause, candidates);
    if (*cause == SPAN_CAUSE_THREAD || opener->thread != t || opener->calls != calls)
        return found;
    /* the opener waits for this connection, so it may send the call although it is suspended */
    *cause = has_runnable(t, opener) ? SPAN_CAUSE_AMBIGUOUS : SPAN_CAUSE_CONNECTION;
    return *cause == SPAN_CAUSE_CONNECTION ? opener : NULL;
}

span *causes_find_context(causes *c, const struct trace_event *event, const protocol_request *call)
{
    const trace_thread *t = find_thread(c, event);
    span *found = NULL;
    for (guint i = 0; *call->trace_id != '\0' && i < t->open->len; i++) {
        span *s = g_ptr_array_index(t->open, i);
        bool same = strcmp(s->request.trace_id, call->trace_id) == 0;
        if (*s->request.trace_id == '\0' || (same && found != NULL))
            return NULL;
        found = same ? s : found;
    }
    return found;
}

void causes_call(causes *c, span *call, const struct trace_event *event)
{
    trace_thread *t = find_thread(c, event);
    span_release(t->call);
    t->call = span_hold(call);
}

span *causes_find_waiting(causes *c, const struct trace_event *event)
{
    const trace_thread *t = g_hash_table_lookup(c->threads, GUINT_TO_POINTER(event->tid));
    if (t == NULL || t->open->len != 1)
        return NULL;
    span *request = g_ptr_array_index(t->open, 0);
    bool calls = t->call != NULL && t->call->awaited && t->call->parent == request;
    return calls ? t->call : request;
}

/* ---- jobs of threads that have received no request ---- */

/* Ends the job of a thread. `request` is the request that caused the job; NULL: no cause or an ambiguous cause. */
static void end_job(causes *c, trace_thread *t, span *request, span_cause cause)
{
    for (guint i = 0; t->job != NULL && i < t->job->len; i++) {
        span *call = g_ptr_array_index(t->job, i);
        call->undecided = false;
        if (request != NULL) {
            span_set_parent(call, request, cause);
            request->calls++;
        } else {
            call->cause = cause;
            call->candidates = MAX(t->process->open, 1);
        }
        span_release(call);
        c->undecided--;
    }
    if (t->job != NULL) {
        g_ptr_array_free(t->job, TRUE);
        g_ptr_array_remove_fast(t->process->working, t);
    }
    t->job = NULL;
    t->tangled = t->signalled = t->several = t->was_woken = false;
    span_release(t->handed);
    t->handed = NULL;
}

static void give_up_job(causes *c, trace_thread *t)
{
    end_job(c, t, NULL, t->was_woken ? SPAN_CAUSE_AMBIGUOUS : SPAN_CAUSE_NONE);
}

static bool is_finished_job(const trace_thread *t)
{
    const span *last = t->job != NULL ? g_ptr_array_index(t->job, t->job->len - 1) : NULL;
    return last != NULL && last->replied && !t->tangled;
}

void causes_answer(causes *c, span *request)
{
    if (request->thread == NULL)
        return;
    thread_group *p = request->thread->process;
    remove_request(request);
    /* when no request is open, end the jobs that have finished their calls, because a later request cannot be the
     * cause */
    for (guint i = p->open == 0 ? p->working->len : 0; i-- > 0;) {
        trace_thread *t = g_ptr_array_index(p->working, i);
        if (is_finished_job(t))
            give_up_job(c, t);
    }
}

static bool may_cause_job(const span *request, const trace_thread *t)
{
    const span *first = g_ptr_array_index(t->job, 0);
    return is_finished_job(t) && first->begin_ns >= request->begin_ns;
}

bool causes_defer(causes *c, span *call, const struct trace_event *event)
{
    trace_thread *t = find_thread(c, event);
    if (t->process->open == 0 || c->undecided >= UNDECIDED_MAX)
        return false;
    if (t->job == NULL) {
        t->job = g_ptr_array_new();
        t->loops = event->loops;
        t->counts_waits = event->counts_waits;
        g_ptr_array_add(t->process->working, t);
    } else {
        const span *last = g_ptr_array_index(t->job, t->job->len - 1);
        t->tangled |= !last->replied;
        t->several |= t->signalled;
    }
    t->signalled = false;
    g_ptr_array_add(t->job, span_hold(call));
    call->undecided = true;
    c->undecided++;
    return true;
}

void causes_receive_deferred(causes *c, const span *call, const struct trace_event *event)
{
    const trace_thread *t = find_thread(c, event);
    trace_thread *caller = g_hash_table_lookup(c->threads, GUINT_TO_POINTER(call->tid));
    if (caller != NULL && caller != t)
        caller->tangled = true;
}

/*
 * Returns whether a thread has handed over the request, and the request has been the process's only request since the
 * job began.
 */
static bool is_alone(const span *request, const trace_thread *t)
{
    const span *first = g_ptr_array_index(t->job, 0);
    return request->handed_over && t->process->open == 1 && t->process->answered_ns <= first->begin_ns;
}

/*
 * Finds the job that belongs to a request, when the thread that received the request sends the reply. If only one
 * thread with a job has signalled, and the conditions in causes.h are met, its job belongs to the request. If several
 * threads with jobs have signalled, ends their jobs without a cause, because later events cannot show the causes
 * either.
 */
static void match_job(causes *c, const trace_thread *receiver, span *request)
{
    GPtrArray *working = receiver->process->working;
    trace_thread *found = NULL;
    uint32_t count = 0;
    for (guint i = 0; i < working->len; i++) {
        trace_thread *t = g_ptr_array_index(working, i);
        if (t->signalled) {
            found = t;
            count++;
        }
    }
    if (count == 1 && !found->several && may_cause_job(request, found) && is_alone(request, found) &&
        (found->handed == request || found->handed == NULL))
        end_job(c, found, request, SPAN_CAUSE_WAKEUP);
    for (guint i = working->len; count > 1 && i-- > 0;) {
        /* end_job moves the last thread, which the loop has already processed, to this index */
        trace_thread *t = g_ptr_array_index(working, i);
        if (t->signalled)
            end_job(c, t, NULL, SPAN_CAUSE_AMBIGUOUS);
    }
}

void causes_reply(causes *c, span *request, const struct trace_event *event)
{
    trace_thread *t = find_thread(c, event);
    if (request->thread == NULL)
        return;
    if (request->thread == t) {
        match_job(c, t, request);
        return;
    }
    if (t->job != NULL) {
        bool valid = may_cause_job(request, t) && !t->several && t->counts_waits && event->counts_waits &&
                     t->loops == event->loops && (!request->is_multiplexed || t->process->open == 1);
        end_job(c, t, valid ? request : NULL, valid ? SPAN_CAUSE_REPLY : SPAN_CAUSE_AMBIGUOUS);
    }
    give_request(t, request);
    request->order = ++t->order;
    t->received_ns = 0;
    note_waits(request, event);
}

/* ---- wake-ups ---- */

static void set_bits(GHashTable *table, uint64_t key, unsigned bits)
{
    unsigned old = GPOINTER_TO_UINT(g_hash_table_lookup(table, &key));
    if (old == (old | bits))
        return;
    if (g_hash_table_size(table) >= CHANNELS_MAX)
        g_hash_table_remove_all(table);
    uint64_t *copy = g_new(uint64_t, 1);
    *copy = key;
    g_hash_table_insert(table, copy, GUINT_TO_POINTER(old | bits));
}

/* Stores a thread's action on a channel. Returns all actions of the thread on the channel so far. */
static unsigned note_use(thread_group *p, uint64_t channel, uint32_t tid, unsigned use)
{
    uint64_t pair[2] = {channel, tid}, key = hash_bytes(0, (const char *)pair, sizeof pair);
    set_bits(p->uses, key, use);
    return GPOINTER_TO_UINT(g_hash_table_lookup(p->uses, &key));
}

/* Returns the channel of an event. The two adjacent futexes of a C library's condition variable count as one
 * channel. */
static uint64_t channel_of(const struct trace_event *event)
{
    return (event->socket & 1) != 0 ? event->socket >> CHANNEL_SHIFT << CHANNEL_SHIFT | 1 : event->socket;
}

/* Stores the actions of both threads of a wake-up on its channel. Returns whether the channel is a lock. */
static bool is_lock(thread_group *p, const struct trace_event *event)
{
    enum { BOTH = CHANNEL_WAKES | CHANNEL_IS_WOKEN };
    uint64_t channel = channel_of(event);
    bool is_futex = (channel & 1) != 0;
    if (is_futex && (note_use(p, channel, event->tid, CHANNEL_WAKES) == BOTH ||
                     note_use(p, channel, event->other, CHANNEL_IS_WOKEN) == BOTH))
        set_bits(p->kinds, channel, CHANNEL_IS_LOCK);
    if (!is_futex)
        set_bits(p->kinds, channel, CHANNEL_IS_INTERNAL);
    return (GPOINTER_TO_UINT(g_hash_table_lookup(p->kinds, &channel)) & CHANNEL_IS_LOCK) != 0;
}

/* Handles an event in which a thread wakes `wakee`. If `wakee` has no request, stores that it may begin to work on a
 * request of the waking thread. */
static void hand_over(causes *c, const struct trace_event *event, trace_thread *wakee)
{
    span_cause cause;
    uint32_t candidates;
    span *request = causes_find(c, event, &cause, &candidates);
    if (wakee->open->len > 0 || candidates == 0)
        return;
    give_up_job(c, wakee);
    wakee->was_woken = true;
    wakee->handed = request != NULL ? span_hold(request) : NULL;
    if (request != NULL)
        request->handed_over = true;
}

void causes_wake(causes *c, const struct trace_event *event)
{
    trace_thread *t = find_thread(c, event);
    uint64_t channel = channel_of(event);
    if (event->kind == TRACE_SIGNAL) {
        bool internal = g_hash_table_contains(t->process->kinds, &channel);
        t->signalled |= internal && is_finished_job(t);
        return;
    }
    trace_thread *wakee = find_thread_by_id(c, event, event->other);
    if (is_lock(t->process, event))
        return;
    if (is_finished_job(t) && wakee->open->len > 0)
        t->signalled = true;
    else
        hand_over(c, event, wakee);
}

/* ---- time ---- */

static bool is_idle_job(const trace_thread *t, int64_t now_ns)
{
    const span *last = t->job != NULL ? g_ptr_array_index(t->job, t->job->len - 1) : NULL;
    return last != NULL && (last->replied || last->finished) && t->seen_ns < now_ns - JOB_NS;
}

static gboolean expire_thread(gpointer key, gpointer value, gpointer user)
{
    trace_thread *t = value;
    int64_t now_ns = *(const int64_t *)user;
    (void)key;
    return t->open->len == 0 && t->job == NULL && t->seen_ns < now_ns - IDLE_NS;
}

static gboolean expire_process(gpointer key, gpointer value, gpointer user)
{
    const thread_group *p = value;
    (void)key;
    /* after twice the time, because the module forgets the threads of the process after IDLE_NS */
    return p->open == 0 && p->working->len == 0 && p->seen_ns < *(const int64_t *)user - 2 * IDLE_NS;
}

static void end_jobs(causes *c, int64_t now_ns)
{
    GHashTableIter i;
    gpointer value;
    g_hash_table_iter_init(&i, c->threads);
    while (c->undecided > 0 && g_hash_table_iter_next(&i, NULL, &value))
        if (now_ns == INT64_MAX || is_idle_job(value, now_ns))
            give_up_job(c, value);
}

void causes_expire(causes *c, int64_t now_ns)
{
    end_jobs(c, now_ns);
    c->last = NULL;
    g_hash_table_foreach_remove(c->threads, expire_thread, &now_ns);
    g_hash_table_foreach_remove(c->processes, expire_process, &now_ns);
}

void causes_finish(causes *c)
{
    end_jobs(c, INT64_MAX);
}
