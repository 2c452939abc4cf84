/* The "span" rule, which joins two events with the same key into a record with the time between them. */
#include "config.h"

#include "synthesis/synthesis_internal.h"

#include <stdlib.h>

typedef struct open_span {
    entry entry;
    event *begin;
} open_span;

void span_free(void *e)
{
    open_span *span = e;
    event_release(span->begin);
    free(span);
}

static void end_span(nl_synthesis *s, const rule *r, const event *begin, const event *end)
{
    int64_t duration_ns = end->time_ns - begin->time_ns;
    if (duration_ns < 0 || (r->longest_ns > 0 && duration_ns > r->longest_ns)) {
        s->stats.dropped++;
        return;
    }
    nl_record *record = make_record(r, r->pair ? "End" : NULL, end->time_ns, end);
    make_fields(s, record, r, begin, end);
    if (!r->pair)
        add_time(record, "FROM", begin->time_ns);
    nl_record_add_int(record, "DUR.NS", duration_ns);
    make_put(s, r, record);
}

static void begin_span(nl_synthesis *s, const rule *r, const key *k, event *e)
{
    open_span *span = map_find_or_add(r->entries, k, sizeof *span);
    if (span == NULL) {
        s->stats.dropped++;
        return;
    }
    bool is_open = span->begin != NULL;
    bool is_too_old = is_open && r->longest_ns > 0 && e->time_ns - span->begin->time_ns > r->longest_ns;
    if (is_open && r->keep && !is_too_old)
        return;
    event_release(span->begin);
    span->begin = event_hold(e);
    if (!r->pair)
        return;
    nl_record *record = make_record(r, "Begin", e->time_ns, e);
    make_fields(s, record, r, e, NULL);
    make_put(s, r, record);
}

void span_take(nl_synthesis *s, const clause *c, event *e)
{
    key k;
    if (!event_key(e, c, &k))
        return;
    if (c->role == ROLE_BEGIN) {
        begin_span(s, c->rule, &k, e);
        return;
    }
    open_span *span = map_take(c->rule->entries, &k);
    if (span == NULL)
        return;
    if (c->role == ROLE_END)
        end_span(s, c->rule, span->begin, e);
    span_free(span);
}
