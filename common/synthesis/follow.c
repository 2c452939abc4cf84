/*
 * A request, followed from carrier to carrier: a thread, a packet, a processor, whatever the file calls so.
 *
 * It begins on one, passes on where an event says that one carrier had to do with another (a thread woke a thread, a
 * packet came out of a queue), and ends. Each step is a record that has the request's number.
 */
#include "config.h"

#include "synthesis/synthesis_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct carried {
    entry entry;
    event *begin; /* of the request */
    value id;
} carried;

static bool carrier_key(const event *e, const carrier *c, key *k)
{
    *k = (key){.values = {c->kind, event_value(e, c->field)}, .count = 2};
    return k->values[1].kind != VALUE_NONE;
}

static void free_carried(carried *c)
{
    event_release(c->begin);
    free(c);
}

/* What a step is called: the last part of its event's name, if nothing else is said. */
static const char *step_name(const clause *c, const event *e)
{
    const char *name = e->source->name->data, *dot = strrchr(name, '.');
    return c->as != NULL ? c->as : dot != NULL && dot[1] != '\0' ? dot + 1 : name;
}

static void say_step(nl_synthesis *s, const rule *r, const carried *c, const char *suffix, const event *e)
{
    nl_record *record = make_record(s, r, suffix, e->time_ns, e);
    value_add(record, "REQUEST", c->id);
    make_fields(s, record, r, c->begin, e);
    nl_record_add_int(record, "SINCE.NS", e->time_ns - c->begin->time_ns);
    make_put(s, r, record);
}

static void put_on(nl_synthesis *s, rule *r, const key *k, event *begin, value id)
{
    bool added;
    carried *on = (carried *)map_put(&r->entries, k, sizeof *on, &added);
    if (on == NULL) {
        s->stats.dropped++;
        return;
    }
    event *before = on->begin;
    on->begin = event_hold(begin);
    on->id = id;
    event_release(before);
}

static void take_begin(nl_synthesis *s, rule *r, const clause *c, event *e)
{
    key k;
    value id = c->id != NO_FIELD ? event_value(e, c->id) : (value){0};
    if (!carrier_key(e, &c->to, &k))
        return;
    if (id.kind == VALUE_NONE)
        id = (value){.kind = VALUE_INT, .number = (int64_t)++r->number};
    put_on(s, r, &k, e, id);
    say_step(s, r, &(carried){.begin = e, .id = id}, step_name(c, e), e);
}

typedef struct ending {
    value id;
} ending;

static bool ends(entry *e, void *user)
{
    carried *c = (carried *)e;
    const ending *end = user;
    if (c->id.kind != end->id.kind || c->id.number != end->id.number)
        return false;
    free_carried(c);
    return true;
}

static void take_pass(nl_synthesis *s, rule *r, const clause *c, carried *from, event *e)
{
    key k;
    if (!carrier_key(e, &c->to, &k))
        return;
    const carried *already = (const carried *)map_find(&r->entries, &k);
    if (already != NULL && already->begin == from->begin)
        return; /* it is there: nothing was passed on */
    event *begin = event_hold(from->begin);
    value id = from->id;
    say_step(s, r, from, step_name(c, e), e);
    put_on(s, r, &k, begin, id);
    event_release(begin);
}

void follow_take(nl_synthesis *s, rule *r, const clause *c, event *e)
{
    key k;
    if (c->role == ROLE_BEGIN) {
        take_begin(s, r, c, e);
        return;
    }
    if (!carrier_key(e, &c->from, &k))
        return;
    carried *from = (carried *)map_find(&r->entries, &k);
    if (from == NULL)
        return;
    if (r->longest_ns > 0 && e->time_ns - from->begin->time_ns > r->longest_ns) {
        free_carried((carried *)map_take(&r->entries, &k));
        return;
    }
    if (c->role == ROLE_STEP) {
        say_step(s, r, from, step_name(c, e), e);
        return;
    }
    if (c->role == ROLE_LEAVE) {
        free_carried((carried *)map_take(&r->entries, &k));
        return;
    }
    if (c->role == ROLE_END) {
        say_step(s, r, from, step_name(c, e), e);
        map_visit(&r->entries, ends, &(ending){from->id});
        return;
    }
    take_pass(s, r, c, from, e);
    if (c->move && (from = (carried *)map_take(&r->entries, &k)) != NULL)
        free_carried(from);
}

static bool synthesis_follow_forget(entry *e, void *user)
{
    (*(uint64_t *)user)++;
    free_carried((carried *)e);
    return true;
}

void follow_forget(nl_synthesis *s, rule *r)
{
    map_visit(&r->entries, synthesis_follow_forget, &s->stats.dropped);
}
