#include "config.h"

#include "calls.h"

#include "base/memory.h"
#include "base/text.h"
#include "requests/hash64.h"

#include <stdlib.h>
#include <string.h>

/* Maximum depth of nested functions for which calls_finish finds callers. */
enum { DEPTH_MAX = 64 };

/* ---- tables ---- */

static uint32_t find_or_add_function(calls *c, nl_string name)
{
    if (c->by_name == NULL)
        c->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    char *key = nl_memory_check(strndup(name.data, name.size));
    size_t index = GPOINTER_TO_SIZE(g_hash_table_lookup(c->by_name, key));
    if (index > 0) {
        free(key);
        return (uint32_t)index - 1;
    }
    NL_ARRAY_GROW(c->functions, c->function_count, c->function_capacity);
    c->functions[c->function_count++] = (call_function){.name = key};
    g_hash_table_insert(c->by_name, key, GSIZE_TO_POINTER(c->function_count));
    return (uint32_t)c->function_count - 1;
}

static void add_edge(calls *c, uint32_t caller, uint32_t function)
{
    if (c->by_ends == NULL)
        c->by_ends = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
    guint64 ends = (guint64)caller << 32 | function;
    size_t index = GPOINTER_TO_SIZE(g_hash_table_lookup(c->by_ends, &ends));
    if (index == 0) {
        NL_ARRAY_GROW(c->edges, c->edge_count, c->edge_capacity);
        c->edges[c->edge_count++] = (call_edge){caller, function, 0};
        index = c->edge_count;
        g_hash_table_insert(c->by_ends, g_memdup2(&ends, sizeof ends), GSIZE_TO_POINTER(index));
    }
    c->edges[index - 1].calls++;
    c->functions[caller].calling++;
}

/* Adds a call and returns the index of the called function. If the caller is unknown, `caller` is empty. */
static uint32_t add_call(calls *c, nl_string caller, nl_string function)
{
    uint32_t called = find_or_add_function(c, function);
    c->functions[called].calls++;
    if (caller.size > 0)
        add_edge(c, find_or_add_function(c, caller), called);
    return called;
}

/* ---- the function graph tracer ---- */

static int64_t read_int(const nl_record *record, const char *name, int64_t otherwise)
{
    nl_field field;
    int64_t value;
    return nl_record_find(record, name, &field) && nl_field_int(&field, &value) ? value : otherwise;
}

static nl_string read_text(const nl_record *record, const char *name)
{
    nl_field field;
    return nl_record_find(record, name, &field) && field.type == NL_TYPE_STRING ? field.string : (nl_string){NULL, 0};
}

static bool has(const nl_record *record, const char *name)
{
    nl_field field;
    return nl_record_find(record, name, &field);
}

static void add_entry(calls *c, call_entry entry)
{
    NL_ARRAY_GROW(c->entries, c->entry_count, c->entry_capacity);
    c->entries[c->entry_count++] = entry;
}

static void calls_add_entry(calls *c, const nl_record *record, nl_string function)
{
    int64_t tid = read_int(record, "TID", 0), depth = read_int(record, "DEPTH", -1), cpu = read_int(record, "CPU", 0);
    uint32_t called = add_call(c, (nl_string){NULL, 0}, function);
    if (depth >= 0 && depth < DEPTH_MAX)
        add_entry(c, (call_entry){tid != 0 ? tid : -1 - cpu, record->time_ns, called, (uint32_t)depth});
}

void calls_lose(calls *c, int64_t time_ns, uint64_t count)
{
    c->lost += count;
    add_entry(c, (call_entry){INT64_MIN, time_ns, 0, 0});
}

/* Orders entries by thread and then by time. Losses come before all threads. */
static int order_entries(const void *a, const void *b, void *unused)
{
    (void)unused;
    const call_entry *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

void calls_finish(calls *c)
{
    uint32_t within[DEPTH_MAX] = {0}; /* for each depth, 1 plus the index of the function; 0: unknown */
    g_qsort_with_data(c->entries, (gint)c->entry_count, sizeof *c->entries, order_entries, NULL); /* stable */
    size_t losses = 0, lost = 0;
    while (losses < c->entry_count && c->entries[losses].thread == INT64_MIN)
        losses++;
    for (size_t i = losses; i < c->entry_count; i++) {
        const call_entry *entry = &c->entries[i];
        bool is_first = i == losses || entry->thread != entry[-1].thread, forget = is_first;
        if (is_first)
            lost = 0;
        for (; lost < losses && c->entries[lost].time_ns <= entry->time_ns; lost++)
            forget = true; /* the thread may have left functions during the loss */
        if (forget)
            memset(within, 0, sizeof within);
        if (entry->depth > 0 && within[entry->depth - 1] != 0)
            add_edge(c, within[entry->depth - 1] - 1, entry->function);
        within[entry->depth] = entry->function + 1;
        memset(within + entry->depth + 1, 0, (DEPTH_MAX - 1 - entry->depth) * sizeof within[0]);
    }
    free(c->entries);
    c->entries = NULL;
    c->entry_count = 0;
}

/* Adds the duration of a call: DURATION.NS of a leaf function's record, or the difference of CALLTIME and RETTIME in an
 * exit record. */
static void calls_add_time(calls *c, const nl_record *record, nl_string function)
{
    int64_t begin_ns = read_int(record, "CALLTIME", -1), end_ns = read_int(record, "RETTIME", -1),
            time_ns = read_int(record, "DURATION.NS", -1);
    if (time_ns < 0 && begin_ns >= 0 && end_ns >= begin_ns)
        time_ns = end_ns - begin_ns;
    if (time_ns < 0)
        return;
    uint32_t called = find_or_add_function(c, function); /* may reallocate functions */
    int64_t *total_ns = &c->functions[called].time_ns;
    if (__builtin_add_overflow(*total_ns, time_ns, total_ns))
        *total_ns = INT64_MAX;
    c->timed = true;
}

/* ---- records ---- */

static void calls_add_chain(calls *c, nl_string stack)
{
    nl_string caller = {NULL, 0};
    for (const char *at = stack.data, *end = stack.data + stack.size; at < end;) {
        const char *semicolon = memchr(at, ';', (size_t)(end - at)), *stop = semicolon != NULL ? semicolon : end;
        nl_string function = {at, (size_t)(stop - at)};
        if (function.size > 0) {
            add_call(c, caller, function);
            caller = function;
        }
        at = stop + 1;
    }
    c->samples = true;
}

/* Adds a call in the notation of perf and trace-cmd, "tcp_v4_rcv <-- ip_local_deliver". Returns false if `text` has no
 * arrow. */
static bool calls_add_arrow(calls *c, nl_string text)
{
    const char *arrow = text.size > 0 ? memmem(text.data, text.size, "<-", 2) : NULL;
    if (arrow == NULL)
        return false;
    nl_string function = {text.data, (size_t)(arrow - text.data)}, caller;
    const char *after = arrow + 2 + (arrow + 2 < text.data + text.size && arrow[2] == '-');
    caller = (nl_string){after, (size_t)(text.data + text.size - after)};
    while (function.size > 0 && *function.data == ' ')
        function = (nl_string){function.data + 1, function.size - 1};
    while (function.size > 0 && function.data[function.size - 1] == ' ')
        function.size--;
    while (caller.size > 0 && *caller.data == ' ')
        caller = (nl_string){caller.data + 1, caller.size - 1};
    caller.size = strnlen(caller.data, caller.size);
    const char *blank = caller.size > 0 ? memchr(caller.data, ' ', caller.size) : NULL;
    if (blank != NULL)
        caller.size = (size_t)(blank - caller.data);
    if (function.size == 0)
        return false;
    add_call(c, caller, function);
    return true;
}

/*
 * Adds the call in a record, and the measured duration if the record contains it. Returns false if the record does not
 * begin a call.
 */
static bool calls_add_call(calls *c, const nl_record *record)
{
    nl_string function = read_text(record, "FUNCTION"), stack = read_text(record, "STACK"),
              symbol = read_text(record, "SYMBOL");
    bool is_exit = memmem(record->event.data, record->event.size, "_exit", 5) != NULL;
    if (function.size > 0 && (is_exit || has(record, "DURATION.NS")))
        calls_add_time(c, record, function);
    if (function.size > 0 && is_exit)
        return false;
    if (function.size > 0 && has(record, "DEPTH"))
        calls_add_entry(c, record, function);
    else if (function.size > 0)
        add_call(c, read_text(record, "CALLER"), function);
    else if (stack.size > 0)
        calls_add_chain(c, stack);
    else if (symbol.size > 0)
        add_call(c, (nl_string){NULL, 0}, symbol);
    else
        return calls_add_arrow(c, read_text(record, "TEXT"));
    return true;
}

void calls_take(calls *c, const nl_record *record)
{
    if (nl_string_is(record->event, "NetLogger.Lost")) {
        int64_t count = read_int(record, "COUNT", 0);
        calls_lose(c, record->time_ns, count > 0 ? (uint64_t)count : 0);
    } else if (nl_string_is(record->event, "NetLogger.Record.Begin")) {
        nl_string kernel = read_text(record, "KERNEL");
        if (kernel.size > 0 && kernel.size < sizeof c->kernel) {
            memcpy(c->kernel, kernel.data, kernel.size);
            c->kernel[kernel.size] = '\0';
        }
    } else if (calls_add_call(c, record)) {
        if (c->total++ == 0)
            c->from_ns = c->to_ns = record->time_ns;
        c->from_ns = record->time_ns < c->from_ns ? record->time_ns : c->from_ns;
        c->to_ns = record->time_ns > c->to_ns ? record->time_ns : c->to_ns;
    }
}

/* ---- order ---- */

typedef struct ordering {
    const calls *calls;
    bool chains;
} ordering;

static int hottest_first(const void *a, const void *b, void *user)
{
    const ordering *o = user;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint64_t of_x = calls_heat(&o->calls->functions[x], o->chains),
             of_y = calls_heat(&o->calls->functions[y], o->chains);
    if (of_x != of_y)
        return of_x > of_y ? -1 : 1;
    return strcmp(calls_name(o->calls, x), calls_name(o->calls, y));
}

uint32_t *calls_in_order(const calls *c, bool chains)
{
    uint32_t *order = nl_memory_check(calloc(c->function_count + 1, sizeof *order));
    for (size_t i = 0; i < c->function_count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, c->function_count, sizeof *order, hottest_first, &(ordering){c, chains});
    return order;
}

static int order_edges(const void *a, const void *b)
{
    const call_edge *x = a, *y = b;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    return x->caller < y->caller ? -1 : x->caller > y->caller;
}

void calls_sort_edges(calls *c)
{
    if (c->edge_count > 0)
        qsort(c->edges, c->edge_count, sizeof *c->edges, order_edges);
}

void calls_free(calls *c)
{
    for (size_t i = 0; i < c->function_count; i++)
        free(c->functions[i].name);
    free(c->functions);
    free(c->edges);
    free(c->entries);
    g_clear_pointer(&c->by_name, g_hash_table_destroy);
    g_clear_pointer(&c->by_ends, g_hash_table_destroy);
    *c = (calls){0};
}
