#include "config.h"

#include "synthesis/synthesis_internal.h"

#include "base/memory.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* The maximum number of waiting events. If more events are waiting, the module processes half of them. */
enum { WAITING_MAX = 1 << 23 };

/* ---- sources ---- */

static void need_field(source *from, unsigned field)
{
    if (field == NO_FIELD || from->slots[field] != 0)
        return;
    from->needed[from->needed_count] = field;
    from->slots[field] = ++from->needed_count;
}

static void need_fields(source *from, const clause *c)
{
    for (unsigned i = 0; i < c->key_count; i++)
        need_field(from, c->keys[i]);
    need_field(from, c->from.field);
    need_field(from, c->to.field);
    need_field(from, c->id);
    need_field(from, c->rule->value_field);
    for (size_t i = 0; i < c->rule->making_count; i++)
        need_field(from, c->rule->makings[i].field);
}

bool clause_concerns(const clause *c, const char *name)
{
    for (size_t i = 0; i < c->pattern_count; i++)
        if (fnmatch(c->patterns[i], name, 0) == 0)
            return true;
    return false;
}

static int order_clauses(const void *a, const void *b)
{
    const clause *const *left = a, *const *right = b;
    if ((*left)->rule != (*right)->rule)
        return (*left)->rule < (*right)->rule ? -1 : 1;
    if ((*left)->role != (*right)->role)
        return (*left)->role < (*right)->role ? -1 : 1;
    return *left < *right ? -1 : *left > *right;
}

static void source_free(source *from)
{
    if (from == NULL)
        return;
    free(from->needed);
    free(from->slots);
    free(from);
}

/* Returns the source of the events with this name, or NULL if no clause uses them. */
static source *source_new(const nl_synthesis *s, const text *name)
{
    source *from = nl_memory_check(calloc(1, sizeof *from));
    from->name = name;
    for (size_t i = 0; i < s->rule_count; i++)
        for (size_t j = 0; j < s->rules[i].clause_count; j++)
            if (clause_concerns(&s->rules[i].clauses[j], name->data))
                from->clauses[from->clause_count++] = &s->rules[i].clauses[j];
    if (from->clause_count == 0) {
        free(from);
        return NULL;
    }
    qsort(from->clauses, from->clause_count, sizeof *from->clauses, order_clauses);
    from->needed = nl_memory_check(calloc(s->name_count + 1, sizeof *from->needed));
    from->slots = nl_memory_check(calloc(s->name_count + 1, sizeof *from->slots));
    for (unsigned i = 0; i < from->clause_count; i++)
        need_fields(from, from->clauses[i]);
    for (unsigned i = 0; s->wants_programs && i < LEARN_MAX && s->learn_tid[i] != NO_FIELD; i++) {
        need_field(from, s->learn_tid[i]);
        need_field(from, s->learn_name[i]);
    }
    if (s->wants_programs)
        need_field(from, s->tid_field);
    return from;
}

static source *find_source(nl_synthesis *s, nl_string name)
{
    text *t = texts_intern(s->texts, name);
    if (!t->has_source)
        t->source = source_new(s, t);
    t->has_source = true;
    return t->source;
}

/* ---- events ---- */

event *event_hold(event *e)
{
    e->references++;
    return e;
}

void event_release(event *e)
{
    if (e != NULL && --e->references == 0)
        free(e);
}

value event_value(const event *e, unsigned field)
{
    if (e == NULL || field == NO_FIELD || e->source->slots[field] == 0)
        return (value){0};
    return e->values[e->source->slots[field] - 1];
}

bool event_key(const event *e, const clause *c, key *k)
{
    k->count = c->key_count;
    for (unsigned i = 0; i < c->key_count; i++) {
        k->values[i] = event_value(e, c->keys[i]);
        if (k->values[i].kind == VALUE_NONE)
            return false;
    }
    return true;
}

/* Converts a record to an event, which the caller owns. If `from` is NULL, the event represents lost events. */
static event *event_new(nl_synthesis *s, const source *from, uint64_t mask, const nl_record *record)
{
    unsigned count = from != NULL ? from->needed_count : 0;
    event *e = nl_memory_check(malloc(sizeof *e + count * sizeof *e->values));
    *e = (event){.time_ns = record->time_ns, .order = s->order++, .mask = mask, .source = from, .references = 1};
    if (from == NULL)
        return e;
    e->host = value_of_text(s->texts, record->host);
    e->prog = value_of_text(s->texts, record->prog);
    for (unsigned i = 0; i < count; i++) {
        nl_field field;
        e->values[i] = (value){0};
        if (nl_record_find(record, s->names[from->needed[i]], &field))
            e->values[i] = value_of_field(s->texts, &field);
    }
    return e;
}

/* ---- processing ---- */

/* Forgets open spans, states and requests, because their events may have been lost. */
static void forget_open(nl_synthesis *s)
{
    for (size_t i = 0; i < s->rule_count; i++)
        if (!rule_is_sum(&s->rules[i])) {
            s->stats.dropped += g_hash_table_size(s->rules[i].entries);
            g_hash_table_remove_all(s->rules[i].entries);
        }
}

/* Derives the sums of the intervals that end at or before now_ns. */
static void advance_sums(nl_synthesis *s, int64_t now_ns)
{
    if (now_ns <= s->now_ns)
        return;
    s->now_ns = now_ns;
    for (size_t i = 0; i < s->rule_count; i++)
        if (s->rules[i].every_ns > 0)
            sum_advance(s, &s->rules[i], now_ns);
}

static void process_event(nl_synthesis *s, event *e)
{
    if (e->source == NULL) {
        forget_open(s);
        return;
    }
    if (s->wants_programs)
        learn_programs(s, e);
    for (unsigned i = 0; i < e->source->clause_count; i++)
        if ((e->mask >> i & 1) != 0)
            e->source->clauses[i]->rule->take(s, e->source->clauses[i], e);
}

static int order_events(const void *a, const void *b)
{
    const event *left = *(event *const *)a, *right = *(event *const *)b;
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    return left->order < right->order ? -1 : left->order > right->order;
}

/* Processes, in order, at most `limit` of the waiting events before a time. */
static void process_waiting(nl_synthesis *s, int64_t before_ns, size_t limit)
{
    size_t done = 0;
    if (s->sorted < s->waiting_count)
        qsort(s->waiting, s->waiting_count, sizeof(event *), order_events);
    for (; done < s->waiting_count && done < limit && s->waiting[done]->time_ns < before_ns; done++) {
        event *e = s->waiting[done];
        if (e->time_ns < s->now_ns)
            s->stats.late++;
        advance_sums(s, e->time_ns);
        process_event(s, e);
        event_release(e);
    }
    s->waiting_count -= done;
    s->sorted = s->waiting_count;
    if (done > 0)
        memmove(s->waiting, s->waiting + done, s->waiting_count * sizeof *s->waiting);
}

void queue_take(nl_synthesis *s, const nl_record *record, const rule *maker)
{
    static const char lost[] = "NetLogger.Lost";
    uint64_t mask = 0;
    const source *from = NULL;
    if (record->event.size != strlen(lost) || memcmp(record->event.data, lost, strlen(lost)) != 0) {
        from = find_source(s, record->event);
        for (unsigned i = 0; from != NULL && i < from->clause_count; i++)
            if ((maker == NULL || from->clauses[i]->rule > maker) && nl_filter_matches(from->clauses[i]->where, record))
                mask |= UINT64_C(1) << i;
        if (mask == 0)
            return;
    }
    event *e = event_new(s, from, mask, record);
    if (maker != NULL) {
        process_event(s, e);
        event_release(e);
        return;
    }
    s->stats.taken++;
    NL_ARRAY_GROW(s->waiting, s->waiting_count, s->waiting_capacity);
    s->waiting[s->waiting_count++] = e;
    if (s->waiting_count >= WAITING_MAX)
        process_waiting(s, INT64_MAX, WAITING_MAX / 2);
}

/* ---- the interface ---- */

void nl_synthesis_put(nl_synthesis *s, const nl_record *record)
{
    queue_take(s, record, NULL);
}

void nl_synthesis_advance(nl_synthesis *s, int64_t before_ns)
{
    process_waiting(s, before_ns, SIZE_MAX);
    advance_sums(s, before_ns);
}

void nl_synthesis_finish(nl_synthesis *s)
{
    process_waiting(s, INT64_MAX, SIZE_MAX);
    for (size_t i = 0; i < s->rule_count; i++)
        if (rule_is_sum(&s->rules[i]))
            sum_finish(s, &s->rules[i]);
}

nl_synthesis *nl_synthesis_new(const nl_sections *sections)
{
    nl_synthesis *s = nl_memory_check(calloc(1, sizeof *s));
    s->now_ns = INT64_MIN;
    s->texts = texts_new();
    s->programs = map_new(free);
    if (rules_read(s, sections))
        return s;
    nl_synthesis_free(s);
    return NULL;
}

static void free_made(void *record)
{
    nl_record_free(record);
}

void nl_synthesis_free(nl_synthesis *s)
{
    if (s == NULL)
        return;
    rules_free(s);
    for (size_t i = 0; i < s->waiting_count; i++)
        event_release(s->waiting[i]);
    free(s->waiting);
    g_queue_clear_full(&s->made, free_made);
    nl_record_free(s->given);
    g_hash_table_destroy(s->programs);
    GHashTableIter at;
    text *t;
    g_hash_table_iter_init(&at, s->texts);
    while (g_hash_table_iter_next(&at, NULL, (void **)&t))
        source_free(t->source);
    g_hash_table_destroy(s->texts);
    free(s);
}

void nl_synthesis_get_stats(const nl_synthesis *s, nl_synthesis_stats *stats)
{
    *stats = s->stats;
    stats->waiting = s->waiting_count;
}
