#include "config.h"

#include "agent/agent.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/text.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { LEASE_MIN_S = 1, LEASE_MAX_S = 86400 };

/* Writes a random ID to `id`. Other clients cannot guess the ID. */
static void subscription_make_id(char id[SUBSCRIPTION_ID_SIZE])
{
    unsigned char bytes[(SUBSCRIPTION_ID_SIZE - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        program_fail(PROGRAM_PROBLEM, "cannot get random bytes");
    for (size_t i = 0; i < sizeof bytes; i++)
        sprintf(id + 2 * i, "%02x", bytes[i]);
}

static bool subscription_is_within_limits(const agent *a, const char *owner)
{
    size_t own = 0;
    for (const subscription *s = a->subscriptions; s != NULL; s = s->next)
        own += strcmp(s->owner, owner) == 0;
    if (a->subscription_count >= a->limits.subscriptions)
        return nl_error_false(NL_ERROR_LIMIT, "the maximum number of subscriptions (%zu) exists",
                              a->subscription_count);
    return own < a->limits.per_consumer ||
           nl_error_false(NL_ERROR_LIMIT, "%s has the maximum number of subscriptions per client (%zu)", owner, own);
}

static void on_schedule(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    subscription *s = user;
    s->is_scheduled = false;
    if (s->on_records != NULL)
        s->on_records(s->user);
}

subscription *subscription_new(agent *a, const char *spec, const subscription_options *o)
{
    if (!subscription_is_within_limits(a, o->owner))
        return NULL;
    condition *c = condition_new(&o->condition);
    active *sensor = c != NULL ? active_get(a, spec) : NULL;
    if (sensor == NULL) {
        condition_free(c);
        return NULL;
    }
    subscription *s = nl_memory_check(calloc(1, sizeof *s));
    s->queue = nl_memory_check(calloc(a->limits.queue, sizeof(shared_record *)));
    s->capacity = a->limits.queue;
    subscription_make_id(s->id);
    s->owner = program_copy(o->owner);
    s->sensor = sensor;
    s->condition = c;
    s->interval_s = o->condition.interval_s > 0 ? o->condition.interval_s : 1;
    if (s->interval_s < a->limits.min_interval_s)
        s->interval_s = a->limits.min_interval_s;
    s->summary_minutes = o->summary_minutes;
    s->lease_s = o->lease_s < LEASE_MIN_S ? LEASE_MIN_S : o->lease_s > LEASE_MAX_S ? LEASE_MAX_S : o->lease_s;
    s->schedule = nl_memory_check(event_new(a->base, -1, 0, on_schedule, s));
    subscription_renew(s);
    s->next = a->subscriptions;
    a->subscriptions = s;
    a->subscription_count++;
    s->next_member = sensor->members;
    sensor->members = s;
    if (s->summary_minutes != 0)
        active_summarize(sensor);
    active_adjust(sensor);
    return s;
}

void subscription_free(subscription *s)
{
    agent *a = s->sensor->agent;
    active *sensor = s->sensor;
    subscription **link = &a->subscriptions;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    a->subscription_count--;
    for (link = &sensor->members; *link != s;)
        link = &(*link)->next_member;
    *link = s->next_member;
    for (size_t i = 0; i < s->count; i++)
        shared_record_release(s->queue[(s->first + i) % s->capacity]);
    event_free(s->schedule);
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

static shared_record *subscription_pop(subscription *s)
{
    shared_record *record = s->queue[s->first];
    s->first = (s->first + 1) % s->capacity;
    s->count--;
    return record;
}

/* Appends a record. A full queue drops its oldest record, because a slow client needs the most recent data. */
static void subscription_append(subscription *s, shared_record *record)
{
    if (s->count == s->capacity) {
        shared_record *dropped = subscription_pop(s);
        s->missed_from_ns = s->missed == 0 ? dropped->received_ns : s->missed_from_ns;
        s->missed_to_ns = dropped->received_ns;
        s->missed++;
        s->sensor->agent->counts.missed++;
        shared_record_release(dropped);
    }
    record->users++;
    s->queue[(s->first + s->count++) % s->capacity] = record;
    if (!s->is_scheduled)
        event_active(s->schedule, EV_TIMEOUT, 0);
    s->is_scheduled = true;
}

void subscription_put_event(subscription *s, const nl_record *record, bool is_failure)
{
    shared_record *shared = shared_record_encode(record);
    shared->is_failure = is_failure;
    subscription_append(s, shared);
    shared_record_release(shared);
}

/* Ends a subscription whose expression is too costly. The subscription's last record contains the reason. */
static void subscription_end_costly(subscription *s)
{
    static const char reason[] = "the expression costs too much; subscribe with a simpler expression";
    const char *sensor = s->sensor->spec->text;
    nl_record *record = agent_record(s->sensor->agent, NL_WARNING, "Nlagentd.CostlyFilter");
    nl_record_add_text(record, "SENSOR", sensor);
    nl_record_add_text(record, "REASON", reason);
    subscription_put_event(s, record, true);
    nl_write(s->sensor->agent->log, NL_WARNING, "Nlagentd.CostlyFilter", "SENSOR=%s CONSUMER=%s REASON=%s", sensor,
             s->owner, reason);
    nl_record_free(record);
    s->over = true;
}

/* Returns whether the record meets all conditions except the interval. */
static bool subscription_wants(subscription *s, const nl_record *record)
{
    bool wanted = false;
    if (condition_judge(s->condition, &s->sensor->agent->matching, record, &wanted) != NL_OK)
        subscription_end_costly(s);
    return wanted && !s->over;
}

void subscription_put(subscription *s, shared_record *record)
{
    if (s->over || s->summary_minutes != 0 ||
        !condition_selects(s->condition, s->sensor->measurement, s->sensor->measured_ns))
        return;
    if (condition_needs_fields(s->condition)) {
        const nl_record *fields = shared_record_decode(record);
        if (fields == NULL || !subscription_wants(s, fields))
            return;
    }
    subscription_append(s, record);
}

void subscription_put_summary(subscription *s, const nl_record *record, unsigned minutes)
{
    if (!s->over && s->summary_minutes == minutes && subscription_wants(s, record))
        subscription_put_event(s, record, false);
}

/* Returns a record that reports the dropped records, and sets s->missed to 0. */
static shared_record *subscription_report_missed(subscription *s)
{
    char text[NL_TIME_TEXT_SIZE];
    nl_record *record = agent_record(s->sensor->agent, NL_WARNING, "Nlagentd.Missed");
    nl_record_add_text(record, "SENSOR", s->sensor->spec->text);
    nl_record_add_uint(record, "COUNT", s->missed);
    nl_record_add_string(record, "FROM", text, nl_time_format_ulm(s->missed_from_ns, text));
    nl_record_add_string(record, "TO", text, nl_time_format_ulm(s->missed_to_ns, text));
    s->missed = 0;
    shared_record *shared = shared_record_encode(record);
    nl_record_free(record);
    return shared;
}

shared_record *subscription_take(subscription *s)
{
    if (s->missed > 0)
        return subscription_report_missed(s);
    return s->count > 0 ? subscription_pop(s) : NULL;
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
