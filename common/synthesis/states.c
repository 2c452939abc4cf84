/*
 * The "states" rule, which derives the states of an object, such as a thread, and the time in each state.
 *
 * A state lasts until the next state. Marks give the reason for a wait. Events set and clear marks, for example when
 * the thread enters and leaves a system call, or waits for a lock. A wait that begins while marks are set gets the
 * state of the mark that is first in the file. If a wait begins without a mark, an event after the wait may give the
 * reason. This event changes the state of the wait to the state that the rule gives for the event.
 *
 * Marks may also override the state, as an interrupt does. While such a mark is set, the state is the mark's state.
 * Afterwards, the state is again the state before the mark.
 *
 * The time between two events of [segment] is a segment. The segment's record has the time in each state.
 */
#include "config.h"

#include "synthesis/synthesis_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = NO_FIELD };

/* Number of ended states to keep, because a later event may change a wait. */
enum { PAST_MAX = 8 };

typedef struct past {
    bool unmarked; /* the state was a wait without a mark */
    unsigned label;
    int64_t from_ns, to_ns;
} past;

typedef struct subject {
    entry entry;
    bool is_initialized;
    unsigned label; /* index of the state, or UNKNOWN */
    unsigned base;  /* the state that applies if no mark overrides it */
    bool unmarked;  /* the state is a wait without a mark */
    int64_t since_ns;
    unsigned marks;               /* bit i is 1 while the mark of the rule's state labels[i] is set */
    int64_t spent_ns[LABELS_MAX]; /* time in each state in this segment */
    past pasts[PAST_MAX];
    unsigned past_count;
    event *segment; /* the event that began the segment */
} subject;

void states_free(void *e)
{
    subject *t = e;
    event_release(t->segment);
    free(t);
}

/* Removes the oldest ended state. Derives a record from the state if the rule requires such records. */
static void end_past(nl_synthesis *s, const rule *r, subject *t)
{
    past p = t->pasts[0];
    memmove(t->pasts, t->pasts + 1, --t->past_count * sizeof *t->pasts);
    if (!r->changes || t->segment == NULL)
        return;
    nl_record *record = make_record(r, r->labels[p.label], p.from_ns, t->segment);
    make_fields(s, record, r, t->segment, t->segment);
    nl_record_add_int(record, "DUR.NS", p.to_ns - p.from_ns);
    make_put(s, r, record);
}

static void end_all_pasts(nl_synthesis *s, const rule *r, subject *t)
{
    while (t->past_count > 0)
        end_past(s, r, t);
}

/* Adds the time in the current state until now_ns to the state's time in this segment. */
static void settle(subject *t, int64_t now_ns)
{
    if (t->label != UNKNOWN && now_ns > t->since_ns)
        t->spent_ns[t->label] += now_ns - t->since_ns;
    if (now_ns > t->since_ns)
        t->since_ns = now_ns;
}

static void enter_state(nl_synthesis *s, const rule *r, subject *t, unsigned label, bool unmarked, int64_t now_ns)
{
    if (t->label == label && t->unmarked == unmarked)
        return;
    int64_t from_ns = t->since_ns;
    settle(t, now_ns);
    if (t->label != UNKNOWN) {
        if (t->past_count == PAST_MAX)
            end_past(s, r, t);
        t->pasts[t->past_count++] = (past){t->unmarked, t->label, from_ns, now_ns};
    }
    t->label = label;
    t->unmarked = unmarked;
    t->since_ns = now_ns;
}

/* Enters the state of the first mark, or the base state if no mark is set. */
static void override_state(nl_synthesis *s, const rule *r, subject *t, int64_t now_ns)
{
    unsigned label = t->marks != 0 ? (unsigned)__builtin_ctz(t->marks) : t->base;
    if (label != UNKNOWN)
        enter_state(s, r, t, label, false, now_ns);
}

static void change_mark(nl_synthesis *s, const rule *r, subject *t, unsigned label, bool set, int64_t now_ns)
{
    t->marks = set ? t->marks | 1u << label : t->marks & ~(1u << label);
    if (r->overlay)
        override_state(s, r, t, now_ns);
}

static void change_state(nl_synthesis *s, const rule *r, subject *t, unsigned label, int64_t now_ns)
{
    t->base = label;
    if (r->overlay)
        override_state(s, r, t, now_ns);
    else
        enter_state(s, r, t, label, false, now_ns);
}

static void enter_wait(nl_synthesis *s, const rule *r, subject *t, unsigned label, int64_t now_ns)
{
    bool marked = t->marks != 0;
    /* The thread itself caused this event, so no later event changes an earlier wait. */
    end_all_pasts(s, r, t);
    enter_state(s, r, t, marked ? (unsigned)__builtin_ctz(t->marks) : label, !marked, now_ns);
}

/* Changes the state of the last ended wait that had no mark. */
static void change_last_wait(subject *t, unsigned label)
{
    past *p = NULL;
    for (unsigned i = t->past_count; p == NULL && i-- > 0;)
        if (t->pasts[i].unmarked)
            p = &t->pasts[i];
    if (p == NULL)
        return;
    int64_t ns = p->to_ns - p->from_ns;
    if (t->segment != NULL && p->from_ns < t->segment->time_ns)
        ns = p->to_ns - t->segment->time_ns;
    if (ns > 0 && ns <= t->spent_ns[p->label]) {
        t->spent_ns[p->label] -= ns;
        t->spent_ns[label] += ns;
    }
    p->label = label;
    p->unmarked = false;
}

/* ---- segments ---- */

static void add_label(nl_record *record, const char *label, int64_t ns)
{
    char name[128];
    int size = snprintf(name, sizeof name, "%s.NS", label);
    for (int i = 0; i < size && i < (int)sizeof name; i++)
        name[i] = (char)toupper((unsigned char)name[i]);
    nl_record_add_int(record, name, ns);
}

static void derive_segment(nl_synthesis *s, const rule *r, const subject *t, const event *end)
{
    int64_t duration_ns = end->time_ns - t->segment->time_ns, known_ns = 0;
    nl_record *record = make_record(r, NULL, end->time_ns, end);
    make_fields(s, record, r, t->segment, end);
    nl_record_add_string(record, "FROM.EVENT", t->segment->source->name->data, t->segment->source->name->string.size);
    nl_record_add_string(record, "TO.EVENT", end->source->name->data, end->source->name->string.size);
    nl_record_add_int(record, "DUR.NS", duration_ns);
    for (unsigned i = 0; i < r->label_count; i++) {
        add_label(record, r->labels[i], t->spent_ns[i]);
        known_ns += t->spent_ns[i];
    }
    nl_record_add_int(record, "UNKNOWN.NS", duration_ns - known_ns);
    make_put(s, r, record);
}

static void states_derive_segment(nl_synthesis *s, const rule *r, subject *t, unsigned label, event *e)
{
    if (t->label == UNKNOWN)
        change_state(s, r, t, label, e->time_ns);
    settle(t, e->time_ns);
    if (r->segments && t->segment != NULL && e->time_ns >= t->segment->time_ns)
        derive_segment(s, r, t, e);
    end_all_pasts(s, r, t);
    memset(t->spent_ns, 0, sizeof t->spent_ns);
    event_release(t->segment);
    t->segment = event_hold(e);
}

void states_take(nl_synthesis *s, const clause *c, event *e)
{
    const rule *r = c->rule;
    key k;
    if (!event_key(e, c, &k))
        return;
    subject *t = map_find_or_add(r->entries, &k, sizeof *t);
    if (t == NULL) {
        s->stats.dropped++;
        return;
    }
    if (!t->is_initialized)
        t->label = t->base = UNKNOWN;
    t->is_initialized = true;
    switch (c->role) {
    case ROLE_MARK:
    case ROLE_UNMARK:
        change_mark(s, r, t, c->label, c->role == ROLE_MARK, e->time_ns);
        break;
    case ROLE_STATE:
        if (c->unless == NO_FIELD || t->label != c->unless)
            change_state(s, r, t, c->label, e->time_ns);
        break;
    case ROLE_WAIT:
        enter_wait(s, r, t, c->label, e->time_ns);
        break;
    case ROLE_BECOMES:
        change_last_wait(t, c->label);
        break;
    default:
        states_derive_segment(s, r, t, c->label, e);
    }
}
