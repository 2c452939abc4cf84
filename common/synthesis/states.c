/*
 * The states that something is in, a thread for one, and how long it was in each.
 *
 * A state holds until the next one. What it waits for when it waits is known by marks: a mark is set and taken off by
 * events (the thread entered and left a system call, it contends for a lock), and a wait that begins while there is one
 * is of that kind, the one that the file names first when there are several. An event may come after the wait that
 * tells what it was for: then what was waited for last becomes that.
 *
 * Marks may also overlay the state, as an interrupt does whatever the processor runs: then the state is that of the
 * mark for as long as it is set, and what it would be otherwise after that.
 *
 * Between two events of [segment] the time of each state is summed: that is a segment, and becomes a record.
 */
#include "config.h"

#include "synthesis/synthesis_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = NO_FIELD };

/* States that are over, and not said yet: what a wait was for may become known after it. */
enum { PASTS = 8 };

typedef struct past {
    bool guessed; /* a wait without a mark */
    unsigned label;
    int64_t from_ns, to_ns;
} past;

typedef struct subject {
    entry entry;
    unsigned label; /* its state; UNKNOWN */
    unsigned base;  /* the same without marks, where these overlay it */
    bool guessed;
    int64_t since_ns;
    unsigned marks;               /* a bit for each label */
    int64_t spent_ns[LABELS_MAX]; /* in this segment */
    past pasts[PASTS];
    unsigned past_count;
    event *segment; /* with which it began */
} subject;

static void free_subject(subject *t)
{
    event_release(t->segment);
    free(t);
}

/* The first of them. */
static void say_past(nl_synthesis *s, rule *r, subject *t)
{
    past p = t->pasts[0];
    memmove(t->pasts, t->pasts + 1, --t->past_count * sizeof *t->pasts);
    if (!r->changes || t->segment == NULL)
        return;
    nl_record *record = make_record(s, r, r->labels[p.label], p.from_ns, t->segment);
    make_fields(s, record, r, t->segment, t->segment);
    nl_record_add_int(record, "DUR.NS", p.to_ns - p.from_ns);
    make_put(s, r, record);
}

static void say_pasts(nl_synthesis *s, rule *r, subject *t)
{
    while (t->past_count > 0)
        say_past(s, r, t);
}

/* Counts what the state took so far. */
static void settle(subject *t, int64_t now_ns)
{
    if (t->label != UNKNOWN && now_ns > t->since_ns)
        t->spent_ns[t->label] += now_ns - t->since_ns;
    if (now_ns > t->since_ns)
        t->since_ns = now_ns;
}

static void enter_state(nl_synthesis *s, rule *r, subject *t, unsigned label, bool guessed, int64_t now_ns)
{
    if (t->label == label && t->guessed == guessed)
        return;
    int64_t from_ns = t->since_ns;
    settle(t, now_ns);
    if (t->label != UNKNOWN) {
        if (t->past_count == PASTS)
            say_past(s, r, t);
        t->pasts[t->past_count++] = (past){t->guessed, t->label, from_ns, now_ns};
    }
    t->label = label;
    t->guessed = guessed;
    t->since_ns = now_ns;
}

/* The state that holds, of what it would be and of marks that overlay it. */
static void overlay(nl_synthesis *s, rule *r, subject *t, int64_t now_ns)
{
    unsigned label = t->marks != 0 ? (unsigned)__builtin_ctz(t->marks) : t->base;
    if (label != UNKNOWN)
        enter_state(s, r, t, label, false, now_ns);
}

static void change_mark(nl_synthesis *s, rule *r, subject *t, unsigned label, bool set, int64_t now_ns)
{
    t->marks = set ? t->marks | 1u << label : t->marks & ~(1u << label);
    if (r->overlay)
        overlay(s, r, t, now_ns);
}

static void change_state(nl_synthesis *s, rule *r, subject *t, unsigned label, int64_t now_ns)
{
    t->base = label;
    if (r->overlay)
        overlay(s, r, t, now_ns);
    else
        enter_state(s, r, t, label, false, now_ns);
}

static void enter_wait(nl_synthesis *s, rule *r, subject *t, unsigned label, int64_t now_ns)
{
    bool marked = t->marks != 0;
    /* With the present one, that is the thread's own before it waits, all is known of what was. */
    say_pasts(s, r, t);
    enter_state(s, r, t, marked ? (unsigned)__builtin_ctz(t->marks) : label, !marked, now_ns);
}

/* What was waited for last is known now. The wait is over: the thread that says so runs. */
static void become(subject *t, unsigned label)
{
    past *p = NULL;
    for (unsigned i = t->past_count; p == NULL && i-- > 0;)
        if (t->pasts[i].guessed)
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
    p->guessed = false;
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

static void say_segment(nl_synthesis *s, const rule *r, const subject *t, const event *end)
{
    int64_t took_ns = end->time_ns - t->segment->time_ns, known_ns = 0;
    nl_record *record = make_record(s, r, NULL, end->time_ns, end);
    make_fields(s, record, r, t->segment, end);
    nl_record_add_string(record, "FROM.EVENT", t->segment->source->name->data, t->segment->source->name->size);
    nl_record_add_string(record, "TO.EVENT", end->source->name->data, end->source->name->size);
    nl_record_add_int(record, "DUR.NS", took_ns);
    for (unsigned i = 0; i < r->label_count; i++) {
        add_label(record, r->labels[i], t->spent_ns[i]);
        known_ns += t->spent_ns[i];
    }
    nl_record_add_int(record, "UNKNOWN.NS", took_ns - known_ns);
    make_put(s, r, record);
}

static void take_segment(nl_synthesis *s, rule *r, subject *t, unsigned label, event *e)
{
    if (t->label == UNKNOWN)
        change_state(s, r, t, label, e->time_ns);
    settle(t, e->time_ns);
    if (r->segments && t->segment != NULL && e->time_ns >= t->segment->time_ns)
        say_segment(s, r, t, e);
    say_pasts(s, r, t);
    memset(t->spent_ns, 0, sizeof t->spent_ns);
    event_release(t->segment);
    t->segment = event_hold(e);
}

void states_take(nl_synthesis *s, rule *r, const clause *c, event *e)
{
    key k;
    bool added;
    if (!event_key(e, c, &k))
        return;
    subject *t = (subject *)map_put(&r->entries, &k, sizeof *t, &added);
    if (t == NULL) {
        s->stats.dropped++;
        return;
    }
    if (added)
        t->label = t->base = UNKNOWN;
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
        become(t, c->label);
        break;
    default:
        take_segment(s, r, t, c->label, e);
    }
}

static bool synthesis_states_forget(entry *e, void *user)
{
    (*(uint64_t *)user)++;
    free_subject((subject *)e);
    return true;
}

void states_forget(nl_synthesis *s, rule *r)
{
    map_visit(&r->entries, synthesis_states_forget, &s->stats.dropped);
}
