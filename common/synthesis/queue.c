#include "config.h"

#include "synthesis/synthesis_internal.h"

#include "base/error.h"
#include "base/memory.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---- sources ---- */

static void want(nl_synthesis *s, source *from, unsigned field)
{
    if (field == NO_FIELD)
        return;
    if (field >= from->slot_count) {
        from->slots = nl_memory_check(reallocarray(from->slots, s->name_count, sizeof *from->slots));
        memset(from->slots + from->slot_count, 0, (s->name_count - from->slot_count) * sizeof *from->slots);
        from->slot_count = s->name_count;
    }
    if (from->slots[field] != 0)
        return;
    from->wanted = nl_memory_check(reallocarray(from->wanted, from->wanted_count + 1, sizeof *from->wanted));
    from->wanted_names =
        nl_memory_check(reallocarray(from->wanted_names, from->wanted_count + 1, sizeof *from->wanted_names));
    from->wanted[from->wanted_count] = field;
    from->wanted_names[from->wanted_count] = s->names[field];
    from->slots[field] = ++from->wanted_count;
}

static void want_of_clause(nl_synthesis *s, source *from, const clause *c)
{
    for (unsigned i = 0; i < c->key_count; i++)
        want(s, from, c->keys[i]);
    want(s, from, c->from.field);
    want(s, from, c->to.field);
    want(s, from, c->id);
    want(s, from, c->rule->value_field);
    for (size_t i = 0; i < c->rule->making_count; i++)
        want(s, from, c->rule->makings[i].field);
}

static bool is_meant(const clause *c, const char *name)
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

/* What is wanted of an event; NULL when it is nothing. */
static source *make_source(nl_synthesis *s, const text *name)
{
    source *made = nl_memory_check(calloc(1, sizeof *made));
    made->name = name;
    made->clauses = nl_memory_check(calloc(CLAUSES_MAX, sizeof(clause *)));
    for (size_t i = 0; i < s->rule_count; i++)
        for (size_t j = 0; j < s->rules[i].clause_count && made->clause_count < CLAUSES_MAX; j++)
            if (is_meant(&s->rules[i].clauses[j], name->data))
                made->clauses[made->clause_count++] = &s->rules[i].clauses[j];
    if (made->clause_count == 0) {
        free(made->clauses);
        free(made);
        return NULL;
    }
    qsort(made->clauses, made->clause_count, sizeof *made->clauses, order_clauses);
    for (unsigned i = 0; i < made->clause_count; i++)
        want_of_clause(s, made, made->clauses[i]);
    for (unsigned i = 0; s->wants_programs && i < 4; i++)
        if (s->learn_tid[i] != NO_FIELD) {
            want(s, made, s->learn_tid[i]);
            want(s, made, s->learn_name[i]);
        }
    if (s->wants_programs)
        want(s, made, s->tid_field);
    return made;
}

static source *source_of(nl_synthesis *s, nl_string name)
{
    text *t = texts_intern(&s->texts, name.data, name.size);
    if (!t->looked) {
        t->source = make_source(s, t);
        t->looked = true;
    }
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
    if (e == NULL || field >= e->source->slot_count || e->source->slots[field] == 0)
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

/* Keys are about one host: what comes from several is told apart by it where it is no key already. */
static event *make_event(nl_synthesis *s, const source *from, uint64_t mask, const nl_record *record)
{
    event *e = nl_memory_check(malloc(sizeof *e + from->wanted_count * sizeof *e->values));
    *e = (event){.time_ns = record->time_ns, .order = s->order++, .mask = mask, .source = from, .references = 1};
    e->host = value_of_text(&s->texts, record->host);
    e->prog = value_of_text(&s->texts, record->prog);
    for (unsigned i = 0; i < from->wanted_count; i++) {
        nl_field field;
        e->values[i] = (value){0};
        if (nl_record_find(record, from->wanted_names[i], &field))
            e->values[i] = value_of_field(&s->texts, &field);
    }
    return e;
}

static event *make_lost(nl_synthesis *s, const nl_record *record)
{
    event *e = nl_memory_check(calloc(1, sizeof *e));
    *e = (event){.time_ns = record->time_ns, .order = s->order++, .references = 1};
    return e;
}

/* ---- what becomes of them ---- */

void forget_all(nl_synthesis *s)
{
    for (size_t i = 0; i < s->rule_count; i++)
        switch (s->rules[i].kind) {
        case RULE_SPAN:
            span_forget(s, &s->rules[i]);
            break;
        case RULE_STATES:
            states_forget(s, &s->rules[i]);
            break;
        case RULE_FOLLOW:
            follow_forget(s, &s->rules[i]);
            break;
        case RULE_MAKE:
        case RULE_SUM:
        case RULE_RATE:
        case RULE_HISTOGRAM:
            break;
        }
}

static void hand_to(nl_synthesis *s, const clause *c, event *e)
{
    switch (c->rule->kind) {
    case RULE_MAKE:
        make_take(s, c->rule, e);
        break;
    case RULE_SPAN:
        span_take(s, c->rule, c, e);
        break;
    case RULE_SUM:
    case RULE_RATE:
    case RULE_HISTOGRAM:
        sum_take(s, c->rule, c, e);
        break;
    case RULE_STATES:
        states_take(s, c->rule, c, e);
        break;
    case RULE_FOLLOW:
        follow_take(s, c->rule, c, e);
        break;
    }
}

static void advance_sums(nl_synthesis *s, int64_t now_ns)
{
    if (now_ns <= s->now_ns)
        return;
    s->now_ns = now_ns;
    for (size_t i = 0; i < s->rule_count; i++)
        if (s->rules[i].every_ns > 0)
            sum_advance(s, &s->rules[i], now_ns);
}

static void process(nl_synthesis *s, event *e)
{
    if (e->source == NULL) {
        forget_all(s);
        return;
    }
    if (s->wants_programs)
        learn_programs(s, e);
    for (unsigned i = 0; i < e->source->clause_count; i++)
        if ((e->mask >> i & 1) != 0)
            hand_to(s, e->source->clauses[i], e);
}

static int order_events(const void *a, const void *b)
{
    const event *left = *(event *const *)a, *right = *(event *const *)b;
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    return left->order < right->order ? -1 : left->order > right->order;
}

static void sort_waiting(nl_synthesis *s)
{
    if (s->sorted < s->waiting_count)
        qsort(s->waiting, s->waiting_count, sizeof(event *), order_events);
    s->sorted = s->waiting_count;
}

/* Those before a time, and at most so many. */
static void process_waiting(nl_synthesis *s, int64_t before_ns, size_t most)
{
    size_t done = 0;
    sort_waiting(s);
    for (; done < s->waiting_count && done < most && s->waiting[done]->time_ns < before_ns; done++) {
        event *e = s->waiting[done];
        if (e->time_ns < s->now_ns)
            s->stats.late++;
        advance_sums(s, e->time_ns);
        process(s, e);
        event_release(e);
    }
    s->waiting_count -= done;
    s->sorted = s->waiting_count;
    if (done > 0)
        memmove(s->waiting, s->waiting + done, s->waiting_count * sizeof *s->waiting);
}

static void wait_for_others(nl_synthesis *s, event *e)
{
    enum { WAITING_MAX = 1 << 23 };
    if (s->waiting_count == s->waiting_capacity) {
        s->waiting_capacity = s->waiting_capacity == 0 ? 1024 : 2 * s->waiting_capacity;
        s->waiting = nl_memory_check(reallocarray(s->waiting, s->waiting_capacity, sizeof(event *)));
    }
    s->waiting[s->waiting_count++] = e;
    if (s->waiting_count >= WAITING_MAX)
        process_waiting(s, INT64_MAX, WAITING_MAX / 2);
}

void queue_take(nl_synthesis *s, const nl_record *record, const rule *maker)
{
    static const char lost[] = "NetLogger.Lost";
    uint64_t mask = 0;
    source *from = NULL;
    event *e;
    if (record->event.size == sizeof lost - 1 && memcmp(record->event.data, lost, sizeof lost - 1) == 0) {
        e = make_lost(s, record);
    } else {
        from = source_of(s, record->event);
        for (unsigned i = 0; from != NULL && i < from->clause_count; i++)
            if ((maker == NULL || from->clauses[i]->rule > maker) && nl_filter_matches(from->clauses[i]->where, record))
                mask |= UINT64_C(1) << i;
        if (mask == 0)
            return;
        e = make_event(s, from, mask, record);
    }
    if (maker == NULL) {
        s->stats.taken++;
        wait_for_others(s, e);
        return;
    }
    process(s, e);
    event_release(e);
}

/* ---- the interface ---- */

bool nl_synthesis_put(nl_synthesis *s, const nl_record *record)
{
    NL_REQUIRE(s != NULL && record != NULL, "synthesis or record is NULL", false);
    uint64_t taken = s->stats.taken;
    queue_take(s, record, NULL);
    return s->stats.taken != taken;
}

void nl_synthesis_advance(nl_synthesis *s, int64_t before_ns)
{
    NL_REQUIRE(s != NULL, "synthesis is NULL", );
    process_waiting(s, before_ns, SIZE_MAX);
    advance_sums(s, before_ns);
}

void nl_synthesis_finish(nl_synthesis *s)
{
    NL_REQUIRE(s != NULL, "synthesis is NULL", );
    process_waiting(s, INT64_MAX, SIZE_MAX);
    for (size_t i = 0; i < s->rule_count; i++)
        if (s->rules[i].kind == RULE_SUM || s->rules[i].kind == RULE_RATE || s->rules[i].kind == RULE_HISTOGRAM)
            sum_finish(s, &s->rules[i]);
}

static nl_synthesis *make_synthesis(nl_sections *sections, bool good)
{
    nl_synthesis *s = nl_memory_check(calloc(1, sizeof *s));
    s->now_ns = INT64_MIN;
    if (!good || !rules_read(s, sections)) {
        nl_synthesis_free(s);
        s = NULL;
    }
    nl_sections_free(sections);
    return s;
}

nl_synthesis *nl_synthesis_read(const char *path, const char *const *parameters)
{
    NL_REQUIRE(path != NULL, "path is NULL", NULL);
    nl_sections sections;
    bool good = nl_sections_read(&sections, path, parameters);
    return make_synthesis(&sections, good);
}

nl_synthesis *nl_synthesis_parse(const char *text, const char *name, const char *const *parameters)
{
    NL_REQUIRE(text != NULL && name != NULL, "text or name is NULL", NULL);
    nl_sections sections;
    bool good = nl_sections_parse(&sections, text, name, parameters);
    return make_synthesis(&sections, good);
}

static void free_sources(texts *t)
{
    for (size_t i = 0; i < t->bucket_count; i++)
        for (text *at = t->buckets[i]; at != NULL; at = at->next)
            if (at->source != NULL) {
                free(at->source->clauses);
                free(at->source->wanted);
                free(at->source->wanted_names);
                free(at->source->slots);
                free(at->source);
            }
}

static bool free_program(entry *e, void *user)
{
    (void)user;
    free(e);
    return true;
}

void nl_synthesis_free(nl_synthesis *s)
{
    if (s == NULL)
        return;
    forget_all(s);
    for (size_t i = 0; i < s->waiting_count; i++)
        event_release(s->waiting[i]);
    for (size_t i = 0; i < s->rule_count; i++) {
        sum_free(&s->rules[i]);
        free(s->rules[i].entries.buckets);
    }
    for (size_t i = 0; i < s->made_count; i++)
        nl_record_free(s->made[(s->made_first + i) % s->made_capacity]);
    for (size_t i = 0; i < s->spare_count; i++)
        nl_record_free(s->spare[i]);
    nl_record_free(s->given);
    free(s->waiting);
    free(s->made);
    free(s->spare);
    map_free(&s->programs, free_program, NULL);
    free_sources(&s->texts);
    texts_free(&s->texts);
    rules_free(s);
    free(s);
}

void nl_synthesis_get_stats(const nl_synthesis *s, nl_synthesis_stats *stats)
{
    NL_REQUIRE(s != NULL && stats != NULL, "synthesis or stats is NULL", );
    *stats = s->stats;
    stats->waiting = s->waiting_count;
}
