#include "config.h"

#include "base/text.h"
#include "agent/agent.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"

#include <stdlib.h>
#include <string.h>

enum { LATEST_MAX = 1024, STOPPED_KEEP_S = 24 * 3600, STOPPED_MAX = 64 };

nl_record *agent_record(const agent *a, nl_level level, const char *event)
{
    nl_record *record = nl_record_new();
    nl_record_set_time(record, nl_time_now_ns());
    nl_record_set_level(record, level);
    nl_record_set_host(record, a->host, strlen(a->host));
    nl_record_set_prog(record, "nlagentd", strlen("nlagentd"));
    nl_record_set_event(record, event, strlen(event));
    return record;
}

/* ---- records ---- */

static void active_forget_latest(active *s)
{
    for (size_t i = 0; i < s->latest_count; i++)
        shared_record_release(s->latest[i]);
    s->latest_count = 0;
}

/*
 * Begins a new measurement if the new record arrives more than a fifth of the interval, or more than 0.2 s, after the
 * previous record.
 */
static void active_number_measurement(active *s)
{
    int64_t now_ns = nl_monotonic_ns(), gap_ns = (int64_t)(s->interval_s * 1e9 / 5);
    gap_ns = gap_ns < NL_NS_PER_SECOND / 5 ? gap_ns : NL_NS_PER_SECOND / 5;
    if (s->measurement == 0 || now_ns - s->heard_ns > gap_ns) {
        s->measurement++;
        s->measured_ns = now_ns;
        active_forget_latest(s);
    }
    s->heard_ns = now_ns;
}

static void on_line(void *user, const char *line, size_t size)
{
    active *s = user;
    shared_record *record = shared_record_new(line, size);
    s->agent->counts.records++;
    active_number_measurement(s);
    if (s->latest_count < LATEST_MAX) {
        record->users++;
        s->latest[s->latest_count++] = record;
    }
    const nl_record *fields = s->summaries != NULL ? shared_record_decode(record) : NULL;
    if (fields != NULL)
        summaries_put(s->summaries, fields, nl_time_now_ns());
    for (subscription *m = s->members; m != NULL; m = m->next_member)
        subscription_put(m, record);
    shared_record_release(record);
}

static void on_summary(void *user, const nl_record *record, unsigned minutes)
{
    active *s = user;
    for (subscription *m = s->members; m != NULL; m = m->next_member)
        subscription_put_summary(m, record, minutes);
}

void active_summarize(active *s)
{
    if (s->summaries != NULL)
        return;
    s->summaries = summaries_new();
    summaries_on_closed(s->summaries, on_summary, s);
}

/* ---- the process ---- */

/* Writes an event about the sensor to nlagentd's log. If `unusual` is true, also sends the event to the sensor's
 * subscriptions. Frees the event. */
static void active_report(active *s, nl_record *event, bool unusual, bool is_failure)
{
    if (s->agent->log != NULL)
        nl_write_record(s->agent->log, event);
    for (subscription *m = s->members; m != NULL && unusual; m = m->next_member)
        if (!m->over)
            subscription_put_event(m, event, is_failure);
    nl_record_free(event);
}

static void on_ended(void *user, const char *reason, double retry_s)
{
    active *s = user;
    nl_record *event = agent_record(s->agent, NL_WARNING, "Nlagentd.SensorFailed");
    s->agent->counts.failures++;
    snprintf(s->failure, sizeof s->failure, "%s", reason);
    nl_record_add_text(event, "SENSOR", s->spec->text);
    nl_record_add_text(event, "REASON", reason);
    nl_record_add_double(event, "AGAIN", retry_s);
    active_report(s, event, true, true);
}

static void on_started(void *user, bool again)
{
    active *s = user;
    nl_record *event = agent_record(s->agent, NL_USAGE, again ? "Nlagentd.SensorRestarted" : "Nlagentd.SensorStarted");
    s->agent->counts.starts++;
    nl_record_add_text(event, "SENSOR", s->spec->text);
    active_report(s, event, again, false);
}

static void active_stop(active *s)
{
    process_free(s->process);
    s->process = NULL;
    s->stopped_ns = nl_monotonic_ns();
    active_forget_latest(s);
    nl_record *event = agent_record(s->agent, NL_USAGE, "Nlagentd.SensorStopped");
    nl_record_add_text(event, "SENSOR", s->spec->text);
    active_report(s, event, false, false);
}

void active_adjust(active *s)
{
    double interval_s = s->held ? s->held_interval_s : 0;
    bool needed = s->held;
    for (const subscription *m = s->members; m != NULL; m = m->next_member) {
        interval_s = !needed || m->interval_s < interval_s ? m->interval_s : interval_s;
        needed = true;
    }
    if (!needed) {
        if (s->process != NULL)
            active_stop(s);
        return;
    }
    bool changed = interval_s != s->interval_s;
    s->interval_s = interval_s;
    if (s->process == NULL) {
        const process_watcher watcher = {on_line, on_ended, on_started, s};
        s->failure[0] = '\0';
        s->process = process_new(s->agent->base, s->definition, s->spec, interval_s, &watcher);
    } else if (changed) {
        process_set_interval(s->process, interval_s);
    }
}

/* ---- all sensors ---- */

static active *active_find_spec(const agent *a, const sensor_spec *spec)
{
    active *s = a->sensors;
    while (s != NULL && strcmp(s->spec->text, spec->text) != 0)
        s = s->next;
    return s;
}

/* Returns the definition of a sensor that accepts the arguments, or NULL on failure. */
static const definition *active_find_definition(const agent *a, const sensor_spec *spec)
{
    const definition *d = definitions_find(&a->definitions, spec->name);
    if (d == NULL)
        nl_error_set(NL_ERROR_NOT_FOUND, "unknown sensor \"%s\"", spec->name);
    return d != NULL && definition_check(d, spec) ? d : NULL;
}

bool active_find(const agent *a, const char *text, active **found)
{
    sensor_spec *spec = spec_parse(text);
    *found = spec != NULL ? active_find_spec(a, spec) : NULL;
    bool good = *found != NULL || (spec != NULL && active_find_definition(a, spec) != NULL);
    spec_free(spec);
    return good;
}

/* Returns whether another sensor may start. If the maximum number of sensors is running, returns false and sets the
 * error. */
static bool active_may_start(const agent *a)
{
    size_t running = 0;
    for (const active *s = a->sensors; s != NULL; s = s->next)
        running += s->process != NULL;
    return running < a->limits.sensors ||
           nl_error_false(NL_ERROR_LIMIT, "the maximum number of sensors (%zu) is running", running);
}

active *active_get(agent *a, const char *text)
{
    sensor_spec *spec = spec_parse(text);
    if (spec == NULL)
        return NULL;
    active *s = active_find_spec(a, spec);
    const definition *d = active_find_definition(a, spec);
    bool runs = s != NULL && s->process != NULL;
    bool good = d != NULL && (runs || active_may_start(a));
    if (good && s == NULL) {
        s = nl_memory_check(calloc(1, sizeof *s));
        *s = (active){.next = a->sensors, .agent = a, .spec = spec, .stopped_ns = nl_monotonic_ns()};
        s->latest = nl_memory_check(calloc(LATEST_MAX, sizeof(shared_record *)));
        a->sensors = s;
    } else {
        spec_free(spec);
    }
    if (good && !runs)
        s->definition = d; /* a reload may have replaced the definition */
    return good ? s : NULL;
}

static void active_free(active *s)
{
    if (s->process != NULL)
        process_free(s->process);
    active_forget_latest(s);
    free(s->latest);
    summaries_free(s->summaries);
    spec_free(s->spec);
    free(s);
}

void active_sweep(agent *a)
{
    size_t stopped = 0;
    for (active **link = &a->sensors, *s; (s = *link) != NULL;) {
        if (s->summaries != NULL)
            summaries_tick(s->summaries, nl_time_now_ns());
        bool runs = s->process != NULL || s->members != NULL;
        stopped += !runs;
        if (runs || (stopped <= STOPPED_MAX && nl_monotonic_ns() - s->stopped_ns < STOPPED_KEEP_S * NL_NS_PER_SECOND)) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        active_free(s);
    }
}

void active_free_all(agent *a)
{
    while (a->sensors != NULL) {
        active *s = a->sensors;
        a->sensors = s->next;
        active_free(s);
    }
}

void active_describe(const active *s, nl_record *record)
{
    size_t consumers = 0;
    for (const subscription *m = s->members; m != NULL; m = m->next_member)
        consumers++;
    nl_record_add_text(record, "sensor", s->spec->text);
    nl_record_add_bool(record, "running", s->process != NULL && process_id(s->process) != 0);
    nl_record_add_uint(record, "consumers", consumers);
    nl_record_add_bool(record, "held", s->held);
    nl_record_add_double(record, "interval", s->interval_s);
    nl_record_add_uint(record, "pid", s->process != NULL ? (uint64_t)process_id(s->process) : 0);
    nl_record_add_uint(record, "restarts", s->process != NULL ? process_restarts(s->process) : 0);
    if (s->failure[0] != '\0')
        nl_record_add_text(record, "failure", s->failure);
    if (s->summaries != NULL && summaries_left_out(s->summaries) > 0)
        nl_record_add_uint(record, "unsummed", summaries_left_out(s->summaries));
}
