/*
 * Follows a request from carrier to carrier. A carrier is a thread, a packet, a CPU, or an object of another kind that
 * the rules file defines.
 *
 * A request begins on a carrier, and passes to another carrier when an event connects the two (a thread woke a thread,
 * a packet left a queue). An end event ends the request. Each step is a record with the number of the request.
 */
#include "config.h"

#include "synthesis/synthesis_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct carried {
    entry entry;
    event *begin; /* the event that began the request */
    value id;
} carried;

static bool carrier_key(const event *e, const carrier *c, key *k)
{
    *k = (key){.values = {c->kind, event_value(e, c->field)}, .count = 2};
    return k->values[1].kind != VALUE_NONE;
}

void follow_free(void *e)
{
    carried *c = e;
    event_release(c->begin);
    free(c);
}

static void log_step(nl_synthesis *s, const clause *c, const event *begin, value id, const event *e)
{
    const char *name = e->source->name->data, *dot = strrchr(name, '.');
    const char *step = c->as != NULL ? c->as : dot != NULL && dot[1] != '\0' ? dot + 1 : name;
    nl_record *record = make_record(c->rule, step, e->time_ns, e);
    value_add(record, "REQUEST", id);
    make_fields(s, record, c->rule, begin, e);
    nl_record_add_int(record, "SINCE.NS", e->time_ns - begin->time_ns);
    make_put(s, c->rule, record);
}

static void set_carrier(nl_synthesis *s, const rule *r, const key *k, event *begin, value id)
{
    carried *to = map_find_or_add(r->entries, k, sizeof *to);
    if (to == NULL) {
        s->stats.dropped++;
        return;
    }
    event *before = to->begin;
    to->begin = event_hold(begin);
    to->id = id;
    event_release(before);
}

static void begin_request(nl_synthesis *s, const clause *c, event *e)
{
    key k;
    value id = c->id != NO_FIELD ? event_value(e, c->id) : (value){0};
    if (!carrier_key(e, &c->to, &k))
        return;
    if (id.kind == VALUE_NONE)
        id = (value){.kind = VALUE_INT, .number = (int64_t)++c->rule->number};
    set_carrier(s, c->rule, &k, e, id);
    log_step(s, c, e, id, e);
}

static gboolean carries_request(gpointer k, gpointer e, gpointer id)
{
    (void)k;
    return value_is_equal(((const carried *)e)->id, *(const value *)id);
}

static void pass_request(nl_synthesis *s, const clause *c, const carried *from, event *e)
{
    key k;
    if (!carrier_key(e, &c->to, &k))
        return;
    const carried *to = g_hash_table_lookup(c->rule->entries, &k);
    if (to != NULL && to->begin == from->begin)
        return; /* the other carrier already has the request */
    event *begin = event_hold(from->begin);
    value id = from->id;
    log_step(s, c, begin, id, e);
    set_carrier(s, c->rule, &k, begin, id);
    event_release(begin);
}

void follow_take(nl_synthesis *s, const clause *c, event *e)
{
    key k;
    const rule *r = c->rule;
    if (c->role == ROLE_BEGIN) {
        begin_request(s, c, e);
        return;
    }
    if (!carrier_key(e, &c->from, &k))
        return;
    const carried *from = g_hash_table_lookup(r->entries, &k);
    if (from == NULL)
        return;
    bool is_too_old = r->longest_ns > 0 && e->time_ns - from->begin->time_ns > r->longest_ns;
    if (is_too_old || c->role == ROLE_LEAVE) {
        g_hash_table_remove(r->entries, &k);
        return;
    }
    if (c->role == ROLE_PASS) {
        pass_request(s, c, from, e);
        if (c->move)
            g_hash_table_remove(r->entries, &k);
        return;
    }
    value id = from->id;
    log_step(s, c, from->begin, id, e);
    if (c->role == ROLE_END)
        g_hash_table_foreach_remove(r->entries, carries_request, &id);
}
