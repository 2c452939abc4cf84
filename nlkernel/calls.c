#include "config.h"

#include "calls.h"

#include "base/hash_bytes.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Functions that are deeper in each other than that have no known caller. */
enum { DEPTH_MAX = 64 };

/* ---- tables ---- */

static void *calls_grow(void *list, size_t count, size_t size)
{
    /* When count is a power of two there is no more room. */
    if (count < 64 ? count > 0 : (count & (count - 1)) != 0)
        return list;
    list = nl_memory_check(reallocarray(list, count < 64 ? 64 : 2 * count, size));
    return list;
}

static void put_place(call_table *t, uint64_t hash, uint32_t place)
{
    size_t at = hash & (t->capacity - 1);
    while (t->places[at] != 0)
        at = (at + 1) & (t->capacity - 1);
    t->places[at] = place + 1;
}

/* Makes room for one more than count. True when the table is empty now, and all are to be put again. */
static bool widen(call_table *t, size_t count)
{
    if (t->capacity > 2 * count + 2)
        return false;
    free(t->places);
    t->capacity = t->capacity == 0 ? 256 : 2 * t->capacity;
    t->places = nl_memory_check(calloc(t->capacity, sizeof *t->places));
    return true;
}

static uint64_t hash_ends(uint32_t caller, uint32_t function)
{
    return hash_mix((uint64_t)caller << 32 | function, UINT64_C(0x9e3779b97f4a7c15));
}

const char *calls_name(const calls *c, uint32_t function)
{
    return c->names.data + c->functions[function].name;
}

static uint32_t add_function(calls *c, nl_string name, uint64_t hash)
{
    if (widen(&c->by_name, c->function_count))
        for (size_t i = 0; i < c->function_count; i++)
            put_place(&c->by_name, hash_bytes(0, calls_name(c, (uint32_t)i), c->functions[i].size), (uint32_t)i);
    c->functions = calls_grow(c->functions, c->function_count, sizeof *c->functions);
    c->functions[c->function_count] = (call_function){.name = (uint32_t)c->names.size, .size = (uint32_t)name.size};
    nl_buffer_append(&c->names, name.data, name.size);
    nl_buffer_append(&c->names, "", 1);
    put_place(&c->by_name, hash, (uint32_t)c->function_count);
    return (uint32_t)c->function_count++;
}

static uint32_t function_of(calls *c, nl_string name)
{
    uint64_t hash = hash_bytes(0, name.data, name.size);
    const call_table *t = &c->by_name;
    for (size_t at = hash; t->capacity > 0 && t->places[at & (t->capacity - 1)] != 0; at++) {
        uint32_t place = t->places[at & (t->capacity - 1)] - 1;
        const call_function *f = &c->functions[place];
        if (f->size == name.size && memcmp(c->names.data + f->name, name.data, name.size) == 0)
            return place;
    }
    return add_function(c, name, hash);
}

static void add_edge(calls *c, uint32_t caller, uint32_t function)
{
    uint64_t hash = hash_ends(caller, function);
    call_table *t = &c->by_ends;
    c->functions[caller].calling++;
    for (size_t at = hash; t->capacity > 0 && t->places[at & (t->capacity - 1)] != 0; at++) {
        call_edge *edge = &c->edges[t->places[at & (t->capacity - 1)] - 1];
        if (edge->caller == caller && edge->function == function) {
            edge->calls++;
            return;
        }
    }
    if (widen(t, c->edge_count))
        for (size_t i = 0; i < c->edge_count; i++)
            put_place(t, hash_ends(c->edges[i].caller, c->edges[i].function), (uint32_t)i);
    c->edges = calls_grow(c->edges, c->edge_count, sizeof *c->edges);
    c->edges[c->edge_count] = (call_edge){caller, function, 1};
    put_place(t, hash, (uint32_t)c->edge_count++);
}

uint32_t calls_add(calls *c, nl_string caller, nl_string function)
{
    uint32_t called = function_of(c, function);
    c->functions[called].calls++;
    if (caller.size > 0)
        add_edge(c, function_of(c, caller), called);
    return called;
}

/* ---- the function graph tracer ---- */

static int64_t int_of(const nl_record *record, const char *name, int64_t otherwise)
{
    nl_field field;
    int64_t value;
    return nl_record_find(record, name, &field) && nl_field_int(&field, &value) ? value : otherwise;
}

static nl_string text_of(const nl_record *record, const char *name)
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
    c->entries = calls_grow(c->entries, c->entry_count, sizeof *c->entries);
    c->entries[c->entry_count++] = entry;
}

static void take_entry(calls *c, const nl_record *record, nl_string function)
{
    int64_t tid = int_of(record, "TID", 0), depth = int_of(record, "DEPTH", -1), cpu = int_of(record, "CPU", 0);
    uint32_t called = calls_add(c, (nl_string){NULL, 0}, function);
    if (depth >= 0 && depth < DEPTH_MAX)
        add_entry(c, (call_entry){tid != 0 ? tid : -1 - cpu, record->time_ns, called, (uint32_t)depth});
}

void calls_lose(calls *c, int64_t time_ns, uint64_t count)
{
    c->lost += count;
    add_entry(c, (call_entry){INT64_MIN, time_ns, CALLS_NONE, 0});
}

/* Threads after what was lost, that is before all of them; then by time, and as they came. */
static int by_thread_and_time(const void *a, const void *b)
{
    const call_entry *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static bool are_in_order(const call_entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (by_thread_and_time(&entries[i - 1], &entries[i]) > 0)
            return false;
    return true;
}

/* Merges the two halves, each in order: unlike qsort it never changes the order of what is equal. */
static void sort_entries(call_entry *entries, call_entry *scratch, size_t count)
{
    size_t half = count / 2, left = 0, right = half, put = 0;
    if (are_in_order(entries, count))
        return;
    sort_entries(entries, scratch, half);
    sort_entries(entries + half, scratch, count - half);
    memcpy(scratch, entries, half * sizeof *entries);
    while (left < half && right < count)
        entries[put++] = by_thread_and_time(&scratch[left], &entries[right]) <= 0 ? scratch[left++] : entries[right++];
    memcpy(entries + put, scratch + left, (half - left) * sizeof *entries);
}

void calls_finish(calls *c)
{
    uint32_t within[DEPTH_MAX] = {0}; /* by depth; one more than the place, 0: not known */
    call_entry *scratch = nl_memory_check(calloc(c->entry_count / 2 + 1, sizeof *scratch));
    sort_entries(c->entries, scratch, c->entry_count);
    free(scratch);
    size_t losses = 0, lost = 0;
    while (losses < c->entry_count && c->entries[losses].function == CALLS_NONE)
        losses++;
    for (size_t i = losses; i < c->entry_count; i++) {
        const call_entry *entry = &c->entries[i];
        bool other = i == losses || entry->thread != entry[-1].thread, any = other;
        if (other)
            lost = 0;
        for (; lost < losses && c->entries[lost].time_ns <= entry->time_ns; lost++)
            any = true; /* what it returned from meanwhile is not known */
        if (any)
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

/* How long it took: as a leaf's entry has it, or an exit's two times. */
static void take_time(calls *c, const nl_record *record, nl_string function)
{
    int64_t begin_ns = int_of(record, "CALLTIME", -1), end_ns = int_of(record, "RETTIME", -1),
            time_ns = int_of(record, "DURATION.NS", -1);
    if (time_ns < 0 && begin_ns >= 0 && end_ns >= begin_ns)
        time_ns = end_ns - begin_ns;
    if (time_ns < 0)
        return;
    uint32_t place = function_of(c, function); /* which may move them all */
    if (__builtin_add_overflow(c->functions[place].time_ns, time_ns, &c->functions[place].time_ns))
        c->functions[place].time_ns = INT64_MAX;
    c->timed = true;
}

/* ---- records ---- */

static void take_chain(calls *c, nl_string stack)
{
    nl_string caller = {NULL, 0};
    for (const char *at = stack.data, *end = stack.data + stack.size; at < end;) {
        const char *semicolon = memchr(at, ';', (size_t)(end - at)), *stop = semicolon != NULL ? semicolon : end;
        nl_string function = {at, (size_t)(stop - at)};
        if (function.size > 0) {
            calls_add(c, caller, function);
            caller = function;
        }
        at = stop + 1;
    }
    c->samples = true;
}

/* "tcp_v4_rcv <-- ip_local_deliver", as perf and trace-cmd print a call. */
static bool take_arrow(calls *c, nl_string text)
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
    calls_add(c, caller, function);
    return true;
}

/* Returns whether it was a call. */
static bool take_call(calls *c, const nl_record *record)
{
    nl_string function = text_of(record, "FUNCTION"), stack = text_of(record, "STACK"),
              symbol = text_of(record, "SYMBOL");
    bool is_exit = memmem(record->event.data, record->event.size, "_exit", 5) != NULL;
    if (function.size > 0 && (is_exit || has(record, "DURATION.NS")))
        take_time(c, record, function);
    if (function.size > 0 && is_exit)
        return false;
    if (function.size > 0 && has(record, "DEPTH"))
        take_entry(c, record, function);
    else if (function.size > 0)
        calls_add(c, text_of(record, "CALLER"), function);
    else if (stack.size > 0)
        take_chain(c, stack);
    else if (symbol.size > 0)
        calls_add(c, (nl_string){NULL, 0}, symbol);
    else
        return take_arrow(c, text_of(record, "TEXT"));
    return true;
}

static bool is_event(const nl_record *record, const char *name)
{
    return record->event.size == strlen(name) && memcmp(record->event.data, name, record->event.size) == 0;
}

void calls_take(calls *c, const nl_record *record)
{
    if (is_event(record, "NetLogger.Lost")) {
        int64_t count = int_of(record, "COUNT", 0);
        calls_lose(c, record->time_ns, count > 0 ? (uint64_t)count : 0);
    } else if (is_event(record, "NetLogger.Record.Begin")) {
        nl_string kernel = text_of(record, "KERNEL");
        if (kernel.size > 0 && kernel.size < sizeof c->kernel) {
            memcpy(c->kernel, kernel.data, kernel.size);
            c->kernel[kernel.size] = '\0';
        }
    } else if (take_call(c, record)) {
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

static int by_function(const void *a, const void *b)
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
        qsort(c->edges, c->edge_count, sizeof *c->edges, by_function);
    free(c->by_ends.places);
    c->by_ends = (call_table){0}; /* it knows them by their old places */
    while (widen(&c->by_ends, c->edge_count))
        ;
    for (size_t i = 0; i < c->edge_count; i++)
        put_place(&c->by_ends, hash_ends(c->edges[i].caller, c->edges[i].function), (uint32_t)i);
}

void calls_free(calls *c)
{
    free(c->functions);
    free(c->edges);
    free(c->by_name.places);
    free(c->by_ends.places);
    free(c->entries);
    nl_buffer_free(&c->names);
    *c = (calls){0};
}
