#include "config.h"

#include "model/threads.h"

#include "base/hash_bytes.h"
#include "base/text.h"
#include "model/tracks.h"
#include "requests/event_names.h"
#include "requests/key_map.h"
#include "requests/printable.h"
#include "requests/request_reader.h"

#include <ctype.h>
#include <string.h>

enum {
    OPEN_MAX = 64, /* maximum number of events of a thread that wait for the end of their span */
    THREADS_MAX = 1 << 16,
    BARS_MIN = 1024, /* number of bars to keep even if they use more memory */
    /* A bar, point or event needs memory in the collector, in the list that the model shows, in the next list, and in a
     * sorted copy. Each of these arrays may be half empty. */
    ARRAYS = 4 * 2,
    THREAD_BARS = 4, /* number of bars that need as much memory as a thread without bars */
};

static const char *const state_texts[THREAD_STATES] = {
    "running", "runnable", "waiting for disk", "waiting for a futex", "waiting for a lock", "waiting for the network",
    "waiting"};

/* An event without a duration, which may begin or end a span. */
typedef struct own_point {
    int64_t time_ns;
    uint64_t place, span_id, request;
    uint32_t name;
    uint8_t role; /* request_role */
    bool failed;
} own_point;

typedef struct own_thread {
    char *host, *program, *thread;
    GArray *spans;  /* thread_bar */
    GArray *points; /* own_point */
} own_thread;

typedef enum kernel_kind {
    KERNEL_IN,  /* the thread runs on a processor, whose number is `value`; without a thread, the processor is idle */
    KERNEL_OUT, /* the thread no longer runs; `value` is the kernel's mask of its states */
    KERNEL_WAKEUP, /* the thread is runnable */
    KERNEL_CALL,   /* a system call begins; `value` is the reason for sleeping in it, as a thread_state */
    KERNEL_RETURN, /* a system call ends */
    KERNEL_LOCK,   /* the thread begins to wait for a lock of the kernel */
    KERNEL_LOCKED, /* it no longer waits for the lock */
    KERNEL_LOST,   /* events of the host have been lost */
} kernel_kind;

/* An event of the kernel. The module sorts the events of all threads by time before it computes the states, because
 * nlkernel writes the events of each processor separately. */
typedef struct kernel_event {
    int64_t time_ns;
    uint64_t place;
    uint32_t thread; /* index in `kernel`, or NO_THREAD */
    uint16_t host;   /* number of the host in `hosts` */
    uint16_t kind;   /* kernel_kind */
    int64_t value;
} kernel_event;

#define NO_THREAD UINT32_MAX

/* A thread in the kernel's records. */
typedef struct kernel_thread {
    char *tid, *program;    /* its identifier and its latest name */
    uint16_t host;          /* number in `hosts` */
    GArray *states, *waits; /* thread_bar: from records that contain whole states */
} kernel_thread;

struct thread_collector {
    request_reader *reader;
    GPtrArray *ids;            /* char **: the ID fields of each lifeline */
    GPtrArray *owns;           /* own_thread */
    GPtrArray *kernel;         /* kernel_thread */
    GArray *events;            /* kernel_event */
    key_map own_of, kernel_of; /* map a thread to its index plus 1 */
    names *names, *hosts;
    uint64_t seed;
    size_t count, count_max; /* number of bars, points and events */
    int64_t cut_ns;          /* INT64_MAX: the limit was not reached */
    bool names_threads;
};

/* ---- collecting ---- */

static void free_own(gpointer data)
{
    own_thread *t = data;
    g_free(t->host);
    g_free(t->program);
    g_free(t->thread);
    g_array_free(t->spans, TRUE);
    g_array_free(t->points, TRUE);
    g_free(t);
}

static void free_kernel(gpointer data)
{
    kernel_thread *t = data;
    g_free(t->tid);
    g_free(t->program);
    g_array_free(t->states, TRUE);
    g_array_free(t->waits, TRUE);
    g_free(t);
}

thread_collector *thread_collector_new(const drawing *d, nl_fraction fraction, size_t memory_max, bool has_nanoseconds)
{
    thread_collector *c = g_new0(thread_collector, 1);
    c->reader = request_reader_new(NULL, fraction);
    if (has_nanoseconds)
        request_reader_expect_nanoseconds(c->reader);
    c->ids = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    for (guint i = 0; i < d->lifelines->len; i++)
        g_ptr_array_add(c->ids, g_strdupv(((const drawing_lifeline *)g_ptr_array_index(d->lifelines, i))->ids));
    c->owns = g_ptr_array_new_with_free_func(free_own);
    c->kernel = g_ptr_array_new_with_free_func(free_kernel);
    c->events = g_array_new(FALSE, FALSE, sizeof(kernel_event));
    c->names = names_new();
    c->hosts = names_new();
    c->seed = hash_seed();
    c->count_max = MAX(memory_max / (ARRAYS * sizeof(thread_bar)), BARS_MIN);
    c->cut_ns = INT64_MAX;
    return c;
}

void thread_collector_free(thread_collector *c)
{
    if (c == NULL)
        return;
    request_reader_free(c->reader);
    g_ptr_array_free(c->ids, TRUE);
    g_ptr_array_free(c->owns, TRUE);
    g_ptr_array_free(c->kernel, TRUE);
    g_array_free(c->events, TRUE);
    key_map_free(&c->own_of);
    key_map_free(&c->kernel_of);
    names_free(c->names);
    names_free(c->hosts);
    g_free(c);
}

/* Counts a bar, point or event. Returns false if there is no memory for it. */
static bool has_space(thread_collector *c, int64_t time_ns)
{
    if (c->count < c->count_max) {
        c->count++;
        return true;
    }
    c->cut_ns = MIN(c->cut_ns, time_ns);
    return false;
}

static void add_bar(thread_collector *c, GArray *bars, const thread_bar *bar)
{
    if (has_space(c, bar->begin_ns))
        g_array_append_vals(bars, bar, 1);
}

static char *copy_text(nl_string text)
{
    return text.size > 0 ? g_strndup(text.data, text.size) : g_strdup("");
}

/* ---- the kernel's records ---- */

/* Returns the index of the kernel's thread with an identifier, or NO_THREAD if there are too many threads. */
static uint32_t find_kernel(thread_collector *c, const nl_record *record, int64_t tid, nl_string program)
{
    const uint64_t key = hash_bytes(c->seed ^ (uint64_t)tid, record->host.data, record->host.size) | 1;
    uint64_t *known = key_map_find(&c->kernel_of, key);
    if (known == NULL && c->kernel->len >= THREADS_MAX)
        return NO_THREAD;
    if (known == NULL) {
        kernel_thread *t = g_new0(kernel_thread, 1);
        t->host = names_put(c->hosts, record->host);
        t->tid = g_strdup_printf("%" G_GINT64_FORMAT, tid);
        t->program = copy_text(program);
        t->states = g_array_new(FALSE, FALSE, sizeof(thread_bar));
        t->waits = g_array_new(FALSE, FALSE, sizeof(thread_bar));
        g_ptr_array_add(c->kernel, t);
        c->count += THREAD_BARS;
        known = key_map_add(&c->kernel_of, key);
        *known = c->kernel->len;
    }
    kernel_thread *t = g_ptr_array_index(c->kernel, *known - 1);
    if (program.size > 0 && !nl_string_is(program, t->program)) {
        g_free(t->program);
        t->program = copy_text(program);
    }
    return (uint32_t)(*known - 1);
}

static void add_event(thread_collector *c, const nl_record *record, uint64_t place, kernel_kind kind, uint32_t thread,
                      int64_t value)
{
    const kernel_event event = {record->time_ns, place, thread, names_put(c->hosts, record->host),
                                (uint16_t)kind,  value};
    if (has_space(c, record->time_ns))
        g_array_append_val(c->events, event);
}

static bool find_int(const nl_record *record, const char *name, int64_t *value)
{
    nl_field field;
    return nl_record_find(record, name, &field) && nl_field_int(&field, value);
}

static nl_string find_text(const nl_record *record, const char *name, char scratch[NL_FIELD_TEXT_SIZE])
{
    nl_field field;
    return nl_record_find(record, name, &field) ? nl_field_text(&field, scratch) : (nl_string){0};
}

static void take_switch(thread_collector *c, const nl_record *record, uint64_t place)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    int64_t previous, next, mask = 0, cpu = 0;
    if (!find_int(record, "PREV.PID", &previous) || !find_int(record, "NEXT.PID", &next) ||
        !find_int(record, "PREV.STATE", &mask))
        return;
    find_int(record, "CPU", &cpu);
    if (previous != 0)
        add_event(c, record, place, KERNEL_OUT,
                  find_kernel(c, record, previous, find_text(record, "PREV.COMM", scratch)), mask);
    add_event(c, record, place, KERNEL_IN,
              next != 0 ? find_kernel(c, record, next, find_text(record, "NEXT.COMM", scratch)) : NO_THREAD, cpu);
}

static void take_wakeup(thread_collector *c, const nl_record *record, uint64_t place)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    int64_t tid;
    if (find_int(record, "EV.PID", &tid) && tid != 0)
        add_event(c, record, place, KERNEL_WAKEUP, find_kernel(c, record, tid, find_text(record, "COMM", scratch)), 0);
}

/* Returns what a thread waits for if it sleeps in a system call, as a thread_state. Returns THREAD_WAITING if this
 * depends on the file. */
static int reason_of_call(nl_string call)
{
    static const struct {
        const char *prefix;
        thread_state reason;
    } reasons[] = {
        {"futex", THREAD_FUTEX},   {"flock", THREAD_LOCK},     {"fcntl", THREAD_LOCK},      {"recv", THREAD_NETWORK},
        {"send", THREAD_NETWORK},  {"accept", THREAD_NETWORK}, {"connect", THREAD_NETWORK}, {"poll", THREAD_NETWORK},
        {"ppoll", THREAD_NETWORK}, {"select", THREAD_NETWORK}, {"pselect", THREAD_NETWORK}, {"epoll", THREAD_NETWORK},
        {"fsync", THREAD_DISK},    {"fdatasync", THREAD_DISK},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(reasons); i++)
        if (call.size >= strlen(reasons[i].prefix) &&
            memcmp(call.data, reasons[i].prefix, strlen(reasons[i].prefix)) == 0)
            return reasons[i].reason;
    return THREAD_WAITING;
}

/* Returns the state of a thread that was switched out. `mask` is the kernel's mask of its states, in which 256 means
 * that another thread has preempted the thread. `reason` is the thread_state of a thread that sleeps in the current
 * system call, or -1. */
static int state_of_mask(int64_t mask, int reason)
{
    enum { UNINTERRUPTIBLE = 2, ENDED = 16 | 32, IDLE = 128, PREEMPTED = 256 };
    if (mask == 0 || mask >= PREEMPTED)
        return THREAD_RUNNABLE;
    if (mask & ENDED)
        return -1;
    if ((mask & UNINTERRUPTIBLE) && !(mask & IDLE))
        return reason == THREAD_FUTEX || reason == THREAD_LOCK ? reason : THREAD_DISK;
    return reason >= 0 ? reason : THREAD_WAITING;
}

/* Takes a record that nlkernel has derived from the scheduler's events. Returns false if it is another record. */
static bool take_derived(thread_collector *c, const nl_record *record, uint64_t place)
{
    static const struct {
        const char *event;
        thread_state state;
        bool is_wait;
    } kinds[] = {{"Quantum", THREAD_RUNNING, false}, {"RunQueue", THREAD_RUNNABLE, false},
                 {"Sleep", THREAD_WAITING, false},   {"DiskRequest", THREAD_DISK, true},
                 {"FutexWait", THREAD_FUTEX, true},  {"LockWait", THREAD_LOCK, true}};
    nl_field from;
    int64_t tid, duration_ns, mask;
    size_t kind = 0;
    while (kind < G_N_ELEMENTS(kinds) && !nl_string_is(record->event, kinds[kind].event))
        kind++;
    if (kind == G_N_ELEMENTS(kinds) || !find_int(record, "TID", &tid) || !find_int(record, "DUR.NS", &duration_ns) ||
        !nl_record_find(record, "FROM", &from))
        return false;
    const uint32_t thread = find_kernel(c, record, tid, record->prog);
    kernel_thread *t = thread != NO_THREAD ? g_ptr_array_index(c->kernel, thread) : NULL;
    thread_bar bar = {.begin_ns = record->time_ns - CLAMP(duration_ns, 0, INT64_MAX / 4),
                      .end_ns = record->time_ns,
                      .place = place,
                      .name = kinds[kind].state};
    if (bar.name == THREAD_WAITING && find_int(record, "STATE", &mask) && state_of_mask(mask, -1) >= 0)
        bar.name = (uint16_t)state_of_mask(mask, -1);
    if (t != NULL)
        add_bar(c, kinds[kind].is_wait ? t->waits : t->states, &bar);
    return true;
}

static bool has_suffix(nl_string text, const char *suffix)
{
    const size_t size = strlen(suffix);
    return text.size > size && memcmp(text.data + text.size - size, suffix, size) == 0;
}

/* Takes a wait of nlkernel trace, such as http.GET.futex. Returns false if it is another record. */
static bool take_traced(thread_collector *c, const nl_record *record, uint64_t place)
{
    static const struct {
        const char *suffix;
        thread_state state;
    } kinds[] = {
        {".processor", THREAD_RUNNABLE}, {".disk", THREAD_DISK}, {".futex", THREAD_FUTEX}, {".lock", THREAD_LOCK}};
    int64_t tid, duration_ns;
    nl_field parent, status;
    size_t kind = 0;
    while (kind < G_N_ELEMENTS(kinds) && !has_suffix(record->event, kinds[kind].suffix))
        kind++;
    if (kind == G_N_ELEMENTS(kinds) || !find_int(record, "TID", &tid) || !find_int(record, "DUR.NS", &duration_ns) ||
        !nl_record_find(record, "PARENT.ID", &parent) || !nl_record_find(record, "STATUS", &status))
        return false;
    const uint32_t thread = find_kernel(c, record, tid, record->prog);
    kernel_thread *t = thread != NO_THREAD ? g_ptr_array_index(c->kernel, thread) : NULL;
    const thread_bar bar = {.begin_ns = record->time_ns - CLAMP(duration_ns, 0, INT64_MAX / 4),
                            .end_ns = record->time_ns,
                            .place = place,
                            .name = kinds[kind].state};
    if (t != NULL)
        add_bar(c, t->waits, &bar);
    return true;
}

static bool has_prefix(nl_string text, const char *prefix)
{
    return text.size >= strlen(prefix) && memcmp(text.data, prefix, strlen(prefix)) == 0;
}

/* Takes a record of the kernel. Returns false if it is another record. */
static bool take_kernel(thread_collector *c, const nl_record *record, uint64_t place)
{
    static const char entered[] = "syscalls.sys_enter_", left[] = "syscalls.sys_exit_";
    const nl_string event = record->event;
    int64_t tid;
    if (nl_string_is(event, "sched.sched_switch")) {
        take_switch(c, record, place);
        return true;
    }
    if (nl_string_is(event, "sched.sched_wakeup") || nl_string_is(event, "sched.sched_wakeup_new")) {
        take_wakeup(c, record, place);
        return true;
    }
    if (nl_string_is(event, "NetLogger.Lost")) {
        add_event(c, record, place, KERNEL_LOST, NO_THREAD, 0);
        return true;
    }
    const bool is_enter = has_prefix(event, entered), is_lock = has_prefix(event, "lock.contention_");
    if (!is_enter && !is_lock && !has_prefix(event, left))
        return take_derived(c, record, place) || take_traced(c, record, place);
    if (!find_int(record, "TID", &tid) || tid == 0)
        return true;
    const nl_string call = {event.data + sizeof entered - 1, event.size + 1 - sizeof entered};
    add_event(c, record, place,
              is_enter                      ? KERNEL_CALL
              : !is_lock                    ? KERNEL_RETURN
              : has_suffix(event, "_begin") ? KERNEL_LOCK
                                            : KERNEL_LOCKED,
              find_kernel(c, record, tid, record->prog), is_enter ? reason_of_call(call) : 0);
    return true;
}

/* ---- the programs' records ---- */

static own_thread *find_own(thread_collector *c, const nl_record *record, const request_event *e)
{
    const uint64_t key =
        hash_mix(((uint64_t)e->place << 32 | e->thread) ^ c->seed, UINT64_C(0x9e3779b97f4a7c15) ^ e->process) | 1;
    uint64_t *known = key_map_find(&c->own_of, key);
    if (known == NULL && c->owns->len >= THREADS_MAX)
        return NULL;
    if (known == NULL) {
        char scratch[NL_FIELD_TEXT_SIZE];
        own_thread *t = g_new0(own_thread, 1);
        t->host = copy_text(record->host);
        t->program = copy_text(record->prog);
        t->thread = copy_text(request_reader_find_thread(c->reader, scratch));
        t->spans = g_array_new(FALSE, FALSE, sizeof(thread_bar));
        t->points = g_array_new(FALSE, FALSE, sizeof(own_point));
        g_ptr_array_add(c->owns, t);
        c->count += THREAD_BARS;
        known = key_map_add(&c->own_of, key);
        *known = c->owns->len;
    }
    return g_ptr_array_index(c->owns, *known - 1);
}

/* Returns a hash of the IDs of a record's request, or 0 if the record lacks them. */
static uint64_t request_of(const thread_collector *c, const nl_record *record)
{
    for (guint i = 0; i < c->ids->len; i++) {
        uint64_t hash = 1;
        for (char **id = g_ptr_array_index(c->ids, i); *id != NULL && hash != 0; id++) {
            char scratch[NL_FIELD_TEXT_SIZE];
            nl_field field;
            const nl_string text =
                drawing_find_id(record, *id, &field) ? nl_field_text(&field, scratch) : (nl_string){0};
            hash = text.size > 0 ? hash_bytes(hash, text.data, text.size) | 1 : 0;
        }
        if (hash > 1)
            return hash;
    }
    return 0;
}

static uint16_t name_of(const thread_collector *c, uint32_t name)
{
    const char *text = event_names_text(request_reader_names(c->reader), name);
    return names_put(c->names, (nl_string){text, strlen(text)});
}

void thread_collector_add(thread_collector *c, const nl_record *record, uint64_t place)
{
    request_event e;
    if (take_kernel(c, record, place) || request_reader_take(c->reader, record, &e) == 0 ||
        (e.thread == 0 && e.process == 0))
        return;
    c->names_threads = true;
    own_thread *t = find_own(c, record, &e);
    if (t == NULL)
        return;
    if (e.role == REQUEST_WHOLE) {
        const thread_bar bar = {.begin_ns = e.time_ns - e.duration_ns,
                                .end_ns = e.time_ns,
                                .place = place,
                                .name = name_of(c, e.name),
                                .is_begin = record->time_ns < e.time_ns,
                                .failed = e.failed};
        add_bar(c, t->spans, &bar);
        return;
    }
    const own_point point = {e.time_ns, place, e.span_id, request_of(c, record), e.name, e.role, e.failed};
    if (has_space(c, e.time_ns))
        g_array_append_val(t->points, point);
}

/* ---- spans from pairs of events ---- */

static gint compare_points(gconstpointer a, gconstpointer b)
{
    const int64_t x = ((const own_point *)a)->time_ns, y = ((const own_point *)b)->time_ns;
    return (x > y) - (x < y);
}

/* Returns the side of a point, and sets *span to the number of its span's name. */
static event_side side_of(const thread_collector *c, const own_point *p, uint32_t *span)
{
    *span = p->name;
    if (p->role != REQUEST_POINT)
        return p->role == REQUEST_BEGIN ? EVENT_SIDE_BEGIN : EVENT_SIDE_END;
    return event_names_side(request_reader_names(c->reader), p->name, span);
}

/* Returns the index of the latest open point whose span a point ends, or -1. */
static int find_begin(const thread_collector *c, const GArray *open, const own_point *end, uint32_t span)
{
    int i = (int)open->len - 1;
    for (; i >= 0; i--) {
        const own_point *begin = &g_array_index(open, own_point, i);
        uint32_t begun;
        side_of(c, begin, &begun);
        if (begun == span && begin->request == end->request &&
            (begin->span_id == 0 || end->span_id == 0 || begin->span_id == end->span_id))
            break;
    }
    return i;
}

/* Appends the spans of a thread that pairs of events form. */
static void pair_points(const thread_collector *c, const own_thread *t, GArray *spans)
{
    GArray *points = g_array_sized_new(FALSE, FALSE, sizeof(own_point), t->points->len),
           *open = g_array_new(FALSE, FALSE, sizeof(own_point));
    if (t->points->len > 0)
        g_array_append_vals(points, t->points->data, t->points->len);
    g_array_sort(points, compare_points);
    for (guint i = 0; i < points->len; i++) {
        const own_point *p = &g_array_index(points, own_point, i);
        uint32_t span;
        const event_side side = side_of(c, p, &span);
        const int begin = side == EVENT_SIDE_END ? find_begin(c, open, p, span) : -1;
        if (side == EVENT_SIDE_BEGIN) {
            if (open->len == OPEN_MAX)
                g_array_remove_index(open, 0);
            g_array_append_vals(open, p, 1);
        }
        if (begin < 0)
            continue;
        const thread_bar bar = {.begin_ns = g_array_index(open, own_point, begin).time_ns,
                                .end_ns = p->time_ns,
                                .place = p->place,
                                .name = name_of(c, span),
                                .failed = p->failed};
        g_array_append_val(spans, bar);
        g_array_remove_index(open, (guint)begin);
    }
    g_array_free(points, TRUE);
    g_array_free(open, TRUE);
}

/* ---- states from the kernel's events ---- */

/* The current state of a thread of the kernel. */
typedef struct kernel_now {
    int state; /* thread_state; -1: unknown */
    int reason;
    int64_t since_ns, locked_ns; /* begin of the state; begin of a wait for a lock, or INT64_MIN */
    guint losses;                /* number of losses of the host when the thread's latest event was taken */
    GArray *states, *waits;      /* thread_bar */
} kernel_now;

/* The data for taking the kernel's events in order of time. */
typedef struct kernel_walk {
    const thread_collector *c;
    kernel_now *threads;
    key_map processors; /* maps a processor to the index plus 1 of the thread that runs on it */
    GArray *losses;     /* guint: number of losses, by number of the host */
} kernel_walk;

static gint compare_events(gconstpointer a, gconstpointer b)
{
    const int64_t x = ((const kernel_event *)a)->time_ns, y = ((const kernel_event *)b)->time_ns;
    return (x > y) - (x < y);
}

/* Ends the current state of a thread, and begins another state (-1: unknown). */
static void set_state(kernel_now *t, const kernel_event *event, int state)
{
    const thread_bar bar = {
        .begin_ns = t->since_ns, .end_ns = event->time_ns, .place = event->place, .name = (uint16_t)MAX(t->state, 0)};
    if (t->state >= 0 && bar.end_ns > bar.begin_ns)
        g_array_append_val(t->states, bar);
    t->state = state;
    t->since_ns = event->time_ns;
}

static void end_lock(kernel_now *t, const kernel_event *event)
{
    const thread_bar bar = {
        .begin_ns = t->locked_ns, .end_ns = event->time_ns, .place = event->place, .name = THREAD_LOCK};
    if (t->locked_ns != INT64_MIN && bar.end_ns > bar.begin_ns)
        g_array_append_val(t->waits, bar);
    t->locked_ns = event->kind == KERNEL_LOCK ? event->time_ns : INT64_MIN;
}

/*
 * Notes that a thread runs on a processor. If another thread still seems to run there, the event that has ended this is
 * missing, so the state of the other thread is unknown.
 */
static void switch_in(kernel_now *threads, key_map *processors, const kernel_event *event)
{
    uint64_t *on = key_map_add(processors, ((uint64_t)event->host << 32 | (uint32_t)event->value) + 1);
    kernel_now *before = *on != 0 ? &threads[*on - 1] : NULL;
    if (before != NULL && before->state == THREAD_RUNNING && *on != (uint64_t)event->thread + 1)
        before->state = -1;
    *on = event->thread != NO_THREAD ? (uint64_t)event->thread + 1 : 0;
    if (event->thread != NO_THREAD)
        set_state(&threads[event->thread], event, THREAD_RUNNING);
}

/* Forgets the state of a thread if events of its host have been lost since the thread's latest event. */
static void note_losses(const kernel_walk *w, kernel_now *t, uint16_t host)
{
    const guint losses = host < w->losses->len ? g_array_index(w->losses, guint, host) : 0;
    if (t->losses == losses)
        return;
    t->losses = losses;
    t->state = t->reason = -1;
    t->locked_ns = INT64_MIN;
}

static void take_event(kernel_walk *w, const kernel_event *event)
{
    const bool has_thread = event->thread != NO_THREAD;
    if (event->kind == KERNEL_LOST) {
        if (event->host >= w->losses->len)
            g_array_set_size(w->losses, event->host + 1u);
        g_array_index(w->losses, guint, event->host)++;
    }
    if (has_thread)
        note_losses(w, &w->threads[event->thread],
                    ((const kernel_thread *)g_ptr_array_index(w->c->kernel, event->thread))->host);
    if (event->kind == KERNEL_IN)
        switch_in(w->threads, &w->processors, event);
    if (!has_thread)
        return;
    kernel_now *t = &w->threads[event->thread];
    if (event->kind == KERNEL_OUT)
        set_state(t, event, state_of_mask(event->value, t->reason));
    if (event->kind == KERNEL_WAKEUP && t->state != THREAD_RUNNING && t->state != THREAD_RUNNABLE)
        set_state(t, event, THREAD_RUNNABLE);
    if (event->kind == KERNEL_CALL || event->kind == KERNEL_RETURN)
        t->reason = event->kind == KERNEL_CALL ? (int)event->value : -1;
    if (event->kind == KERNEL_LOCK || event->kind == KERNEL_LOCKED)
        end_lock(t, event);
}

/* Returns the states of each of the kernel's threads. The caller frees the array and the arrays in it. */
static kernel_now *find_states(const thread_collector *c)
{
    kernel_now *threads = g_new0(kernel_now, c->kernel->len + 1);
    kernel_walk w = {.c = c, .threads = threads, .losses = g_array_new(FALSE, TRUE, sizeof(guint))};
    for (guint i = 0; i < c->kernel->len; i++) {
        const kernel_thread *k = g_ptr_array_index(c->kernel, i);
        threads[i] = (kernel_now){-1, -1, 0, INT64_MIN, 0, g_array_copy(k->states), g_array_copy(k->waits)};
    }
    GArray *events = g_array_copy(c->events);
    g_array_sort(events, compare_events);
    for (guint i = 0; i < events->len; i++)
        take_event(&w, &g_array_index(events, kernel_event, i));
    g_array_free(events, TRUE);
    g_array_free(w.losses, TRUE);
    key_map_free(&w.processors);
    return threads;
}

/* ---- the list ---- */

static gint compare_begins(gconstpointer a, gconstpointer b)
{
    const thread_bar *x = a, *y = b;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

/*
 * Sorts bars, and splits those that overlap: at each time, only the bar that begins last remains. Binary searches by
 * the end of a bar thus find all bars.
 */
static void split_overlaps(GArray *bars)
{
    GArray *open = g_array_new(FALSE, FALSE, sizeof(thread_bar)),
           *parts = g_array_new(FALSE, FALSE, sizeof(thread_bar));
    int64_t at_ns = INT64_MIN; /* the parts are complete until this time */
    g_array_sort(bars, compare_begins);
    for (guint i = 0; i <= bars->len; i++) {
        const int64_t until_ns = i < bars->len ? g_array_index(bars, thread_bar, i).begin_ns : INT64_MAX;
        while (open->len > 0 && at_ns < until_ns) {
            thread_bar part = g_array_index(open, thread_bar, open->len - 1);
            part.begin_ns = MAX(part.begin_ns, at_ns);
            if (part.end_ns <= until_ns)
                g_array_set_size(open, open->len - 1);
            part.end_ns = MIN(part.end_ns, until_ns);
            if (part.begin_ns < part.end_ns) {
                g_array_append_val(parts, part);
                at_ns = part.end_ns;
            }
        }
        at_ns = MAX(at_ns, until_ns);
        if (i < bars->len)
            g_array_append_vals(open, &g_array_index(bars, thread_bar, i), 1);
    }
    g_array_set_size(bars, 0);
    g_array_append_vals(bars, parts->data, parts->len);
    g_array_free(open, TRUE);
    g_array_free(parts, TRUE);
}

/* Places the spans in lanes: each span in the first lane that is free at its begin. A child is thus below its parent.
 */
static void place_in_lanes(thread_row *r, GArray *sorted)
{
    int64_t free_ns[THREAD_LANES_MAX];
    g_array_sort(sorted, compare_begins);
    for (guint i = 0; i < sorted->len; i++) {
        const thread_bar *bar = &g_array_index(sorted, thread_bar, i);
        unsigned lane = 0;
        while (lane < r->lane_count && free_ns[lane] > bar->begin_ns)
            lane++;
        lane = MIN(lane, THREAD_LANES_MAX - 1);
        if (lane == r->lane_count)
            r->lanes[r->lane_count++] = g_array_new(FALSE, FALSE, sizeof(thread_bar));
        g_array_append_vals(r->lanes[lane], bar, 1);
        free_ns[lane] = bar->end_ns;
    }
}

static thread_row *row_new(const char *host, const char *program, const char *thread)
{
    thread_row *r = g_new0(thread_row, 1);
    r->logged_host = g_strdup(host);
    r->host = printable(host);
    r->program = printable(program);
    r->thread = printable(thread);
    char *name = g_strdup_printf("%s %s %s", host, program, thread);
    r->key = track_key("thread", name);
    r->host_key = track_key("host", host);
    g_free(name);
    return r;
}

static void free_row(gpointer data)
{
    thread_row *r = data;
    g_free(r->host);
    g_free(r->logged_host);
    g_free(r->program);
    g_free(r->thread);
    for (unsigned i = 0; i < r->lane_count; i++)
        g_array_free(r->lanes[i], TRUE);
    if (r->states != NULL)
        g_array_free(r->states, TRUE);
    if (r->waits != NULL)
        g_array_free(r->waits, TRUE);
    g_free(r);
}

/* Compares texts, and numbers in the texts by their values. */
static int compare_texts(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            char *a_end, *b_end;
            const guint64 x = g_ascii_strtoull(a, &a_end, 10), y = g_ascii_strtoull(b, &b_end, 10);
            if (x != y)
                return x < y ? -1 : 1;
            a = a_end - 1;
            b = b_end - 1;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        }
    }
    return (*a != '\0') - (*b != '\0');
}

static gint compare_rows(gconstpointer a, gconstpointer b)
{
    const thread_row *x = *(const thread_row *const *)a, *y = *(const thread_row *const *)b;
    int order = compare_texts(x->host, y->host);
    order = order != 0 ? order : (x->lane_count == 0) - (y->lane_count == 0);
    if (order == 0 && x->lane_count == 0 && x->running_ns != y->running_ns)
        return x->running_ns < y->running_ns ? 1 : -1;
    order = order != 0 ? order : compare_texts(x->program, y->program);
    return order != 0 ? order : compare_texts(x->thread, y->thread);
}

static bool has_states(const kernel_now *k)
{
    return k->states->len > 0 || k->waits->len > 0;
}

static void copy_states(thread_row *r, const kernel_now *k)
{
    r->states = g_array_copy(k->states);
    r->waits = g_array_copy(k->waits);
    for (guint i = 0; i < r->states->len; i++) {
        const thread_bar *bar = &g_array_index(r->states, thread_bar, i);
        r->running_ns += bar->name == THREAD_RUNNING ? bar->end_ns - bar->begin_ns : 0;
    }
}

/* Adds the threads that have spans. Adds the states of such threads to `used`. */
static void add_owns(const thread_collector *c, thread_list *l, GHashTable *by_tid, GHashTable *used)
{
    for (guint i = 0; i < c->owns->len; i++) {
        const own_thread *t = g_ptr_array_index(c->owns, i);
        GArray *spans = g_array_copy(t->spans);
        pair_points(c, t, spans);
        if (spans->len > 0) {
            thread_row *r = row_new(t->host, t->program, t->thread);
            place_in_lanes(r, spans);
            char *key = g_strdup_printf("%s %s", t->thread, t->host);
            kernel_now *k = g_hash_table_lookup(by_tid, key);
            g_free(key);
            if (k != NULL) {
                copy_states(r, k);
                g_hash_table_add(used, k);
            }
            g_ptr_array_add(l->rows, r);
        }
        g_array_free(spans, TRUE);
    }
}

thread_list *thread_collector_list(const thread_collector *c, bool is_complete)
{
    thread_list *l = g_new0(thread_list, 1);
    GHashTable *by_tid = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL), /* "TID HOST": kernel_now */
        *used = g_hash_table_new(NULL, NULL);
    kernel_now *threads = find_states(c);
    l->rows = g_ptr_array_new_with_free_func(free_row);
    l->is_complete = is_complete;
    l->is_cut = c->cut_ns != INT64_MAX;
    l->cut_ns = c->cut_ns;
    l->names_threads = c->names_threads || c->kernel->len > 0;
    for (guint i = 0; i < c->kernel->len; i++) {
        const kernel_thread *k = g_ptr_array_index(c->kernel, i);
        split_overlaps(threads[i].states);
        split_overlaps(threads[i].waits);
        if (has_states(&threads[i]))
            g_hash_table_insert(by_tid, g_strdup_printf("%s %s", k->tid, names_text(c->hosts, k->host)), &threads[i]);
    }
    add_owns(c, l, by_tid, used);
    for (guint i = 0; i < c->kernel->len; i++) {
        const kernel_thread *k = g_ptr_array_index(c->kernel, i);
        if (has_states(&threads[i]) && !g_hash_table_contains(used, &threads[i])) {
            thread_row *r = row_new(names_text(c->hosts, k->host), k->program, k->tid);
            copy_states(r, &threads[i]);
            g_ptr_array_add(l->rows, r);
        }
        g_array_free(threads[i].states, TRUE);
        g_array_free(threads[i].waits, TRUE);
    }
    l->names = names_new();
    for (size_t i = 0; i < names_count(c->names); i++) { /* the numbers stay the same */
        const char *text = names_text(c->names, (uint16_t)i);
        names_put(l->names, (nl_string){text, strlen(text)});
    }
    g_free(threads);
    g_hash_table_destroy(by_tid);
    g_hash_table_destroy(used);
    g_ptr_array_sort(l->rows, compare_rows);
    return l;
}

void thread_list_free(thread_list *l)
{
    if (l == NULL)
        return;
    g_ptr_array_free(l->rows, TRUE);
    names_free(l->names);
    g_free(l);
}

size_t thread_lane_find(const GArray *lane, int64_t time_ns, size_t from)
{
    size_t to = from;
    for (size_t step = 1; to < lane->len && g_array_index(lane, thread_bar, to).end_ns <= time_ns; step *= 2) {
        from = to + 1;
        to += step;
    }
    to = MIN(to, lane->len);
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (g_array_index(lane, thread_bar, middle).end_ns > time_ns)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

const char *thread_state_text(thread_state state)
{
    return state < THREAD_STATES ? state_texts[state] : "";
}
