#include "config.h"

#include "agent/agent.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { LEAST_LEASE_S = 1, MOST_LEASE_S = 86400 };

static void let_go(shared_record *shared)
{
    if (--shared->users > 0)
        return;
    nl_record_free(shared->record);
    free(shared);
}

/* Nobody guesses it. */
static void make_id(char id[SUBSCRIPTION_ID])
{
    unsigned char bytes[(SUBSCRIPTION_ID - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        program_fail(PROGRAM_PROBLEM, "there are no random numbers");
    for (size_t i = 0; i < sizeof bytes; i++)
        sprintf(id + 2 * i, "%02x", bytes[i]);
}

static bool may_have_more(const agent *a, const char *owner)
{
    size_t own = 0;
    for (const subscription *s = a->subscriptions; s != NULL; s = s->next)
        own += strcmp(s->owner, owner) == 0;
    if (a->subscription_count < a->limits.subscriptions && own < a->limits.per_consumer)
        return true;
    nl_error_set(NL_ERROR_LIMIT, "there are %zu subscriptions, of these %zu of %s, which is as many as may be",
                 a->subscription_count, own, owner);
    return false;
}

static void on_turn(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    subscription *s = user;
    s->turn_comes = false;
    if (s->on_records != NULL)
        s->on_records(s->user);
}

subscription *subscription_new(agent *a, const char *spec, const subscription_wish *w)
{
    if (!may_have_more(a, w->owner))
        return NULL;
    condition *c = condition_new(&w->condition);
    active *sensor = c != NULL ? active_get(a, spec) : NULL;
    if (sensor == NULL) {
        condition_free(c);
        return NULL;
    }
    subscription *s = nl_memory_check(calloc(1, sizeof *s));
    s->queue = nl_memory_check(calloc(a->limits.queue, sizeof *s->queue));
    s->capacity = a->limits.queue;
    make_id(s->id);
    s->owner = program_copy(w->owner);
    s->sensor = sensor;
    s->condition = c;
    s->interval_s = w->condition.interval_s > 0 ? w->condition.interval_s : 1;
    if (s->interval_s < a->limits.least_interval_s)
        s->interval_s = a->limits.least_interval_s;
    s->summary_minutes = w->summary_minutes;
    s->lease_s = w->lease_s < LEAST_LEASE_S ? LEAST_LEASE_S : w->lease_s > MOST_LEASE_S ? MOST_LEASE_S : w->lease_s;
    s->turn = nl_memory_check(event_new(a->base, -1, 0, on_turn, s));
    subscription_renew(s);
    s->next = a->subscriptions;
    a->subscriptions = s;
    a->subscription_count++;
    s->next_member = sensor->members;
    sensor->members = s;
    active_adjust(sensor);
    return s;
}

void subscription_free(subscription *s)
{
    agent *a = s->sensor->agent;
    subscription **link = &a->subscriptions;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    a->subscription_count--;
    for (link = &s->sensor->members; *link != s;)
        link = &(*link)->next_member;
    *link = s->next_member;
    active *sensor = s->sensor;
    for (size_t i = 0; i < s->count; i++)
        let_go(s->queue[(s->first + i) % s->capacity]);
    event_free(s->turn);
    condition_free(s->condition);
    free(s->owner);
    free(s->queue);
    free(s);
    active_adjust(sensor);
}

subscription *subscription_find(agent *a, const char *id)
{
    subscription *s = a->subscriptions;
    while (s != NULL && strcmp(s->id, id) != 0)
        s = s->next;
    return s;
}

void subscription_renew(subscription *s)
{
    s->expires_ns = nl_monotonic_ns() + (int64_t)(s->lease_s * 1e9);
}

/* ---- records ---- */

static void note_missed(subscription *s, int64_t time_ns)
{
    s->missed_from_ns = s->missed == 0 || time_ns < s->missed_from_ns ? time_ns : s->missed_from_ns;
    s->missed_to_ns = s->missed == 0 || time_ns > s->missed_to_ns ? time_ns : s->missed_to_ns;
    s->missed++;
    s->missed_in_all++;
    s->sensor->agent->counts.missed++;
}

/* The oldest give way: who is slow wants to see how things are now. */
static void enqueue(subscription *s, shared_record *shared)
{
    size_t size = s->capacity;
    if (s->count == size) {
        note_missed(s, s->queue[s->first]->record->time_ns);
        let_go(s->queue[s->first]);
        s->first = (s->first + 1) % size;
        s->count--;
    }
    shared->users++;
    s->queue[(s->first + s->count++) % size] = shared;
    if (!s->turn_comes)
        event_active(s->turn, EV_TIMEOUT, 0);
    s->turn_comes = true;
}

static shared_record *share(const nl_record *record)
{
    shared_record *shared = nl_memory_check(calloc(1, sizeof *shared));
    shared->users = 1;
    shared->record = nl_record_new();
    nl_record_copy(shared->record, record);
    return shared;
}

void subscription_put_event(subscription *s, const nl_record *record)
{
    shared_record *shared = share(record);
    enqueue(s, shared);
    let_go(shared);
}

/* The last record of the subscription is the reason. */
static void end_costly(subscription *s)
{
    static const char reason[] = "the expression costs too much; subscribe with a simpler one";
    const char *sensor = s->sensor->spec->text;
    nl_record *record = agent_record(s->sensor->agent, NL_WARNING, "Nlagentd.CostlyFilter");
    nl_record_add_string(record, "SENSOR", sensor, strlen(sensor));
    nl_record_add_string(record, "REASON", reason, sizeof reason - 1);
    subscription_put_event(s, record);
    nl_write(s->sensor->agent->log, NL_WARNING, "Nlagentd.CostlyFilter", "SENSOR=%s CONSUMER=%s REASON=%s", sensor,
             s->owner, reason);
    nl_record_free(record);
    s->over = true;
}

void subscription_put(subscription *s, const nl_record *record, uint64_t look, int64_t look_ns, shared_record **shared)
{
    bool wanted = false;
    if (s->over || s->summary_minutes != 0)
        return;
    if (condition_judge(s->condition, &s->sensor->agent->matching, record, look, look_ns, &wanted) != NL_OK)
        end_costly(s);
    if (!wanted || s->over)
        return;
    if (*shared == NULL)
        *shared = share(record);
    enqueue(s, *shared);
}

void subscription_put_summary(subscription *s, const nl_record *record, unsigned minutes)
{
    bool wanted = false;
    if (s->over || s->summary_minutes != minutes)
        return;
    if (condition_judge(s->condition, &s->sensor->agent->matching, record, 1, 0, &wanted) != NL_OK)
        end_costly(s);
    else if (wanted)
        subscription_put_event(s, record);
}

bool subscription_take(subscription *s, const nl_record **record)
{
    static nl_record *taken;
    nl_record_free(taken);
    taken = NULL;
    if (s->missed > 0) {
        char text[NL_TIME_TEXT_SIZE];
        taken = agent_record(s->sensor->agent, NL_WARNING, "Nlagentd.Missed");
        nl_record_add_string(taken, "SENSOR", s->sensor->spec->text, strlen(s->sensor->spec->text));
        nl_record_add_uint(taken, "COUNT", s->missed);
        nl_record_add_string(taken, "FROM", text, nl_time_format_ulm(s->missed_from_ns, text));
        nl_record_add_string(taken, "TO", text, nl_time_format_ulm(s->missed_to_ns, text));
        s->missed = 0;
    } else if (s->count > 0) {
        shared_record *shared = s->queue[s->first];
        s->first = (s->first + 1) % s->capacity;
        s->count--;
        s->sent++;
        taken = nl_record_new();
        nl_record_copy(taken, shared->record);
        let_go(shared);
    }
    *record = taken;
    return taken != NULL;
}

void subscriptions_sweep(agent *a)
{
    int64_t now_ns = nl_monotonic_ns();
    for (subscription *s = a->subscriptions, *next; s != NULL; s = next) {
        next = s->next;
        if (s->on_records == NULL && (now_ns >= s->expires_ns || (s->over && s->count == 0)))
            subscription_free(s);
    }
}
