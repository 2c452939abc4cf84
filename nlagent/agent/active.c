#include "config.h"

#include "agent/agent.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "program/program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LATEST_MAX = 1024, KEEP_S = 24 * 3600, KEPT_MAX = 64 };

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

/* ---- looks ---- */

static void forget_latest(active *s)
{
    for (size_t i = 0; i < s->latest_count; i++)
        nl_record_free(s->latest[i]);
    s->latest_count = 0;
}

/* Records that come within a fifth of the interval of one another are of one look. */
static void number_look(active *s)
{
    int64_t now_ns = nl_monotonic_ns(), gap_ns = (int64_t)(s->interval_s * 1e9 / 5);
    gap_ns = gap_ns < NL_NS_PER_SECOND / 5 ? gap_ns : NL_NS_PER_SECOND / 5;
    if (s->look == 0 || now_ns - s->heard_ns > gap_ns) {
        s->look++;
        s->look_ns = now_ns;
        forget_latest(s);
    }
    s->heard_ns = now_ns;
}

static void keep_latest(active *s, const nl_record *record)
{
    if (s->latest == NULL)
        s->latest = nl_memory_check(calloc(LATEST_MAX, sizeof *s->latest));
    if (s->latest_count == LATEST_MAX)
        return;
    nl_record *copy = nl_record_new();
    nl_record_copy(copy, record);
    s->latest[s->latest_count++] = copy;
}

static void on_record(void *user, const nl_record *record)
{
    active *s = user;
    shared_record *shared = NULL;
    s->agent->counts.records++;
    number_look(s);
    keep_latest(s, record);
    summaries_put(s->summaries, record, nl_time_now_ns());
    for (subscription *m = s->members; m != NULL; m = m->next_member)
        subscription_put(m, record, s->look, s->look_ns, &shared);
    if (shared != NULL && --shared->users == 0) {
        nl_record_free(shared->record);
        free(shared);
    }
}

static void on_summary(void *user, const nl_record *record, unsigned minutes)
{
    active *s = user;
    for (subscription *m = s->members; m != NULL; m = m->next_member)
        subscription_put_summary(m, record, minutes);
}

/* ---- what becomes of the process ---- */

/* Tells the log, and all who look of what is not usual. */
static void active_tell(active *s, nl_record *record, bool unusual)
{
    if (s->agent->log != NULL)
        nl_write_record(s->agent->log, record);
    for (subscription *m = s->members; m != NULL && unusual; m = m->next_member)
        if (!m->over)
            subscription_put_event(m, record);
    nl_record_free(record);
}

static void active_add(nl_record *record, const char *name, const char *value)
{
    nl_record_add_string(record, name, value, strlen(value));
}

static void on_ended(void *user, const char *reason, double again_s)
{
    active *s = user;
    nl_record *record = agent_record(s->agent, NL_WARNING, "Nlagentd.SensorFailed");
    s->agent->counts.failures++;
    snprintf(s->failure, sizeof s->failure, "%s", reason);
    active_add(record, "SENSOR", s->spec->text);
    active_add(record, "REASON", reason);
    nl_record_add_double(record, "AGAIN", again_s);
    active_tell(s, record, true);
}

static void on_started(void *user, bool again)
{
    active *s = user;
    nl_record *record = agent_record(s->agent, NL_USAGE, again ? "Nlagentd.SensorRestarted" : "Nlagentd.SensorStarted");
    s->agent->counts.starts++;
    active_add(record, "SENSOR", s->spec->text);
    active_tell(s, record, again);
}

static void active_start(active *s)
{
    const process_watcher watcher = {on_record, on_ended, on_started, s};
    s->failure[0] = '\0';
    s->process = process_new(s->agent->base, &s->agent->definitions, s->definition, s->spec, s->interval_s, &watcher);
}

static void stop(active *s)
{
    process_free(s->process);
    s->process = NULL;
    s->stopped_ns = nl_monotonic_ns();
    forget_latest(s);
    nl_record *record = agent_record(s->agent, NL_USAGE, "Nlagentd.SensorStopped");
    active_add(record, "SENSOR", s->spec->text);
    active_tell(s, record, false);
}

void active_adjust(active *s)
{
    double interval_s = s->held ? s->held_interval_s : 0;
    bool wanted = s->held;
    for (const subscription *m = s->members; m != NULL; m = m->next_member) {
        interval_s = !wanted || m->interval_s < interval_s ? m->interval_s : interval_s;
        wanted = true;
    }
    if (!wanted) {
        if (s->process != NULL)
            stop(s);
        return;
    }
    bool changed = interval_s != s->interval_s;
    s->interval_s = interval_s;
    if (s->process == NULL)
        active_start(s);
    else if (changed)
        process_set_interval(s->process, interval_s);
}

/* ---- all of them ---- */

static size_t count_running(const agent *a)
{
    size_t count = 0;
    for (const active *s = a->sensors; s != NULL; s = s->next)
        count += s->process != NULL;
    return count;
}

static active *agent_active_find(const agent *a, const sensor_spec *spec)
{
    active *s = a->sensors;
    while (s != NULL && strcmp(s->spec->text, spec->text) != 0)
        s = s->next;
    return s;
}

/* The definition of which there may be such a sensor; NULL on failure. */
static const definition *find_definition(const agent *a, const sensor_spec *spec)
{
    const definition *d = definitions_find(&a->definitions, spec->name);
    if (d == NULL)
        nl_error_set(NL_ERROR_NOT_FOUND, "there is no sensor \"%s\"", spec->name);
    return d != NULL && definition_check(d, spec) ? d : NULL;
}

bool active_find(const agent *a, const char *text, active **found)
{
    sensor_spec *spec = spec_parse(text);
    *found = spec != NULL ? agent_active_find(a, spec) : NULL;
    bool good = *found != NULL || (spec != NULL && find_definition(a, spec) != NULL);
    spec_free(spec);
    return good;
}

active *active_get(agent *a, const char *text)
{
    sensor_spec *spec = spec_parse(text);
    if (spec == NULL)
        return NULL;
    active *s = agent_active_find(a, spec);
    const definition *d = find_definition(a, spec);
    bool good = d != NULL;
    if (good && (s == NULL || s->process == NULL) && count_running(a) >= a->limits.sensors) {
        nl_error_set(NL_ERROR_LIMIT, "%zu sensors run, which is as many as may", a->limits.sensors);
        good = false;
    }
    if (good && s != NULL && s->process == NULL)
        s->definition = d; /* another than when it last ran, perhaps */
    if (s != NULL || !good) {
        spec_free(spec);
        return good ? s : NULL;
    }
    s = nl_memory_check(calloc(1, sizeof *s));
    *s = (active){.next = a->sensors, .agent = a, .definition = d, .spec = spec, .summaries = summaries_new()};
    summaries_on_closed(s->summaries, on_summary, s);
    s->stopped_ns = nl_monotonic_ns();
    a->sensors = s;
    return s;
}

static void free_one(active *s)
{
    if (s->process != NULL)
        process_free(s->process);
    forget_latest(s);
    free(s->latest);
    summaries_free(s->summaries);
    spec_free(s->spec);
    free(s);
}

/* What has not run for a day goes, and of what stands still no more than some. */
void active_sweep(agent *a)
{
    size_t still = 0;
    for (active **link = &a->sensors, *s; (s = *link) != NULL;) {
        summaries_tick(s->summaries, nl_time_now_ns());
        bool runs = s->process != NULL || s->members != NULL;
        still += !runs;
        if (runs || (still <= KEPT_MAX && nl_monotonic_ns() - s->stopped_ns < KEEP_S * NL_NS_PER_SECOND)) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        free_one(s);
    }
}

void active_free_all(agent *a)
{
    while (a->sensors != NULL) {
        active *s = a->sensors;
        a->sensors = s->next;
        free_one(s);
    }
}

void active_describe(const active *s, nl_record *record)
{
    size_t consumers = 0;
    for (const subscription *m = s->members; m != NULL; m = m->next_member)
        consumers++;
    active_add(record, "sensor", s->spec->text);
    nl_record_add_bool(record, "running", s->process != NULL && process_id(s->process) != 0);
    nl_record_add_uint(record, "consumers", consumers);
    nl_record_add_bool(record, "held", s->held);
    nl_record_add_double(record, "interval", s->interval_s);
    nl_record_add_uint(record, "pid", s->process != NULL ? (uint64_t)process_id(s->process) : 0);
    nl_record_add_uint(record, "restarts", s->process != NULL ? process_restarts(s->process) : 0);
    if (s->failure[0] != '\0')
        active_add(record, "failure", s->failure);
    if (summaries_left_out(s->summaries) > 0)
        nl_record_add_uint(record, "unsummed", summaries_left_out(s->summaries));
}
