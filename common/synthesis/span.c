/* Two events joined: how long it was from the one to the other. */
#include "config.h"

#include "synthesis/synthesis_internal.h"

#include <stdlib.h>

typedef struct open_span {
    entry entry;
    event *begin;
} open_span;

static void free_span(open_span *span)
{
    event_release(span->begin);
    free(span);
}

static void end_span(nl_synthesis *s, rule *r, const event *begin, const event *end)
{
    int64_t took_ns = end->time_ns - begin->time_ns;
    if (took_ns < 0 || (r->longest_ns > 0 && took_ns > r->longest_ns)) {
        s->stats.dropped++;
        return;
    }
    nl_record *record = make_record(s, r, r->pair ? "End" : NULL, end->time_ns, end);
    make_fields(s, record, r, begin, end);
    if (!r->pair)
        add_time(record, "FROM", begin->time_ns);
    nl_record_add_int(record, "DUR.NS", took_ns);
    make_put(s, r, record);
}

static void begin_span(nl_synthesis *s, rule *r, const key *k, event *e)
{
    bool added;
    open_span *span = (open_span *)map_put(&r->entries, k, sizeof *span, &added);
    if (span == NULL) {
        s->stats.dropped++;
        return;
    }
    bool too_old = !added && r->longest_ns > 0 && e->time_ns - span->begin->time_ns > r->longest_ns;
    if (!added && r->keep && !too_old)
        return;
    event_release(span->begin);
    span->begin = event_hold(e);
    if (!r->pair)
        return;
    nl_record *record = make_record(s, r, "Begin", e->time_ns, e);
    make_fields(s, record, r, e, NULL);
    make_put(s, r, record);
}

void span_take(nl_synthesis *s, rule *r, const clause *c, event *e)
{
    key k;
    if (!event_key(e, c, &k))
        return;
    if (c->role == ROLE_BEGIN) {
        begin_span(s, r, &k, e);
        return;
    }
    open_span *span = (open_span *)map_take(&r->entries, &k);
    if (span == NULL)
        return;
    if (c->role == ROLE_END)
        end_span(s, r, span->begin, e);
    free_span(span);
}

static bool synthesis_span_forget(entry *e, void *user)
{
    (*(uint64_t *)user)++;
    free_span((open_span *)e);
    return true;
}

void span_forget(nl_synthesis *s, rule *r)
{
    map_visit(&r->entries, synthesis_span_forget, &s->stats.dropped);
}
