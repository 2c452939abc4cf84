#include "config.h"

#include "agent/service.h"

#include "agent/access.h"
#include "agent/collections.h"
#include "agent/settings.h"
#include "agents/directory.h"
#include "agents/soap.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FETCH_MAX = 1000,
    FETCH_WAIT_MAX_S = 50, /* maximum wait of Fetch in seconds; less than the HTTP timeout */
    QUERY_WAIT_S = 10,
    MEASUREMENT_MS = 150, /* maximum time in milliseconds for the arrival of a measurement's records */
    LIST_MAX = 300,       /* maximum number of values of a repeated argument */
    REPLY_MAX = 32 << 20  /* maximum size of a reply in bytes */
};

/* A reply under construction. Records are XML elements, or ULM lines if the client requested format=ulm. */
typedef struct reply {
    nl_buffer out;
    nl_buffer lines;
    bool as_lines;
} reply;

typedef struct call {
    agent *agent;
    exchange *exchange;
    const soap_call *soap;
    const char *consumer;
    unsigned rights;
    reply reply;
    bool deferred; /* the agent sends the reply later */
    bool failed;   /* the call has failed; this thread's error is the reason */
} call;

/* ---- replies ---- */

static void reply_put_record(reply *r, const nl_record *record)
{
    if (r->as_lines)
        nl_record_encode(record, NL_FORMAT_ULM, &r->lines);
    else
        soap_put_record(&r->out, record);
}

/* Appends a shared record to the reply. Copies the line unchanged if the client requested ULM. */
static void reply_put_shared(reply *r, shared_record *record)
{
    if (r->as_lines)
        nl_buffer_append(&r->lines, record->line, record->size);
    else if (shared_record_decode(record) != NULL)
        soap_put_record(&r->out, shared_record_decode(record));
}

static size_t reply_size(const reply *r)
{
    return r->out.size + r->lines.size;
}

/* Sends and frees the reply. If `failed` is true, sends a fault with the current thread's error instead. */
static void reply_send(reply *r, exchange *x, const char *operation, bool failed)
{
    char name[SOAP_NAME_SIZE + 16];
    snprintf(name, sizeof name, "%sResponse", operation);
    nl_buffer message = {0};
    if (failed) {
        soap_put_fault(&message);
    } else {
        soap_begin(&message, name);
        if (r->lines.size > 0)
            soap_put_lines(&message, &r->lines);
        nl_buffer_append(&message, r->out.data, r->out.size);
        soap_end(&message, name);
    }
    exchange_answer(x, &message, failed);
    nl_buffer_free(&message);
    nl_buffer_free(&r->out);
    nl_buffer_free(&r->lines);
}

/* ---- arguments and rights ---- */

/* Marks the call as failed. Keeps only the first error of a call. */
#define service_fail(c, ...) ((c)->failed ? (void)0 : (void)nl_error_set(__VA_ARGS__), (c)->failed = true)

/* Returns an argument's value, or NULL if it is missing or empty. */
static const char *service_text(const call *c, const char *name)
{
    const char *value = soap_value(c->soap, name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static const char *service_required(call *c, const char *name)
{
    const char *value = service_text(c, name);
    if (value == NULL)
        service_fail(c, NL_ERROR_INVALID, "missing argument: %s", name);
    return value;
}

static double service_number(call *c, const char *name, double initial)
{
    const char *text = service_text(c, name);
    char *end;
    if (text == NULL)
        return initial;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        service_fail(c, NL_ERROR_INVALID, "%s: invalid number", name);
    return value;
}

static bool service_flag(const call *c, const char *name)
{
    const char *value = service_text(c, name);
    return value != NULL && (strcmp(value, "true") == 0 || strcmp(value, "1") == 0);
}

static unsigned service_minutes(call *c, const char *name, double initial)
{
    double minutes = service_number(c, name, initial);
    if (minutes != initial && minutes != 1 && minutes != 10 && minutes != 60)
        service_fail(c, NL_ERROR_INVALID, "%s: a summary covers 1, 10 or 60 minutes", name);
    return c->failed ? 0 : (unsigned)minutes;
}

static bool service_check_right(call *c, unsigned right, const char *problem)
{
    if ((c->rights & right) == right)
        return true;
    service_fail(c, NL_ERROR_PERMISSION, "%s", problem);
    return false;
}

/* Returns whether the client has the right to read a sensor. A client that may not start sensors may read only running
 * sensors. */
static bool service_check_reading(call *c, const char *sensor, unsigned right)
{
    active *s;
    active_find(c->agent, sensor, &s);
    return service_check_right(c, right, "you are not allowed to read this sensor") &&
           ((s != NULL && s->process != NULL) ||
            service_check_right(c, RIGHT_START, "the sensor is not running, and you are not allowed to start it"));
}

/* ---- List, Status, Settings ---- */

static void put_definition(call *c, const definition *d, bool detailed)
{
    nl_record *state = nl_record_new();
    soap_open(&c->reply.out, "sensor");
    soap_put(&c->reply.out, "name", d->name);
    soap_put(&c->reply.out, "what", d->what);
    soap_put(&c->reply.out, "arguments", d->arguments_help);
    for (const active *s = c->agent->sensors; s != NULL; s = s->next) {
        if (s->definition != d)
            continue;
        nl_record_clear(state);
        active_describe(s, state);
        soap_open(&c->reply.out, "instance");
        soap_put_fields(&c->reply.out, state);
        soap_close(&c->reply.out, "instance");
    }
    for (const sensor_field *f = detailed ? d->fields : NULL; f != NULL && f->event != NULL; f++) {
        soap_open(&c->reply.out, "field");
        soap_put(&c->reply.out, "event", f->event);
        soap_put(&c->reply.out, "name", f->name);
        soap_put(&c->reply.out, "unit", f->unit);
        soap_put(&c->reply.out, "meaning", f->meaning);
        soap_close(&c->reply.out, "field");
    }
    soap_close(&c->reply.out, "sensor");
    nl_record_free(state);
}

static void do_list(call *c)
{
    bool detailed = service_flag(c, "details");
    for (const definition *d = c->agent->definitions.first; d != NULL; d = d->next)
        put_definition(c, d, detailed);
}

static void do_status(call *c)
{
    const agent *a = c->agent;
    uint64_t running = 0;
    for (const active *s = a->sensors; s != NULL; s = s->next)
        running += s->process != NULL;
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        {"SENSORS", running},
        {"SUBSCRIPTIONS", a->subscription_count},
        {"RECORDS", a->counts.records},
        {"DECODED", shared_record_decoded_count()},
        {"MISSED", a->counts.missed},
        {"STARTS", a->counts.starts},
        {"FAILURES", a->counts.failures},
        {"REQUESTS", a->counts.requests},
        {"REFUSED", a->counts.refused},
    };
    nl_record *record = agent_record(a, NL_USAGE, "Nlagentd.Status");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        nl_record_add_uint(record, counts[i].name, counts[i].value);
    if (a->directory != NULL)
        nl_record_add_uint(record, "AGENTS", directory_size(a->directory));
    reply_put_record(&c->reply, record);
    nl_record_free(record);
}

static void do_settings(call *c)
{
    char scratch[NL_OPTION_TEXT_SIZE];
    const char *value;
    if (!service_check_right(c, RIGHT_ALL, "you are not allowed to read the settings"))
        return;
    for (const nl_option *row = agent_settings_rows; row->name != NULL; row++)
        for (size_t i = 0; (value = nl_option_get_at(row, c->agent->settings, i, scratch)) != NULL; i++) {
            nl_record *record = agent_record(c->agent, NL_USAGE, "Nlagentd.Setting");
            nl_record_add_text(record, "OPTION", row->name);
            nl_record_add_text(record, "VALUE", value);
            reply_put_record(&c->reply, record);
            nl_record_free(record);
        }
}

/* ---- Subscribe, Unsubscribe ---- */

static subscription_options read_subscription(call *c)
{
    return (subscription_options){.condition = {.interval_s = service_number(c, "interval", 0),
                                                .where = service_text(c, "where"),
                                                .field = service_text(c, "field"),
                                                .on_change = service_flag(c, "change"),
                                                .above = service_number(c, "above", NAN),
                                                .below = service_number(c, "below", NAN),
                                                .percent = service_number(c, "percent", NAN)},
                                  .summary_minutes = service_minutes(c, "summary", 0),
                                  .lease_s = service_number(c, "lease", 60),
                                  .owner = c->consumer};
}

static void do_subscribe(call *c)
{
    const char *sensor = service_required(c, "sensor");
    subscription_options o = read_subscription(c);
    unsigned right = o.summary_minutes != 0 ? RIGHT_SUMMARIES : RIGHT_SUMMARIES | RIGHT_READ;
    if (c->failed || !service_check_reading(c, sensor, right))
        return;
    const subscription *s = subscription_new(c->agent, sensor, &o);
    if (s == NULL) {
        c->failed = true;
        return;
    }
    soap_put(&c->reply.out, "subscription", s->id);
    soap_put(&c->reply.out, "sensor", s->sensor->spec->text);
    soap_put_number(&c->reply.out, "interval", s->interval_s);
    soap_put_number(&c->reply.out, "lease", s->lease_s);
}

/* Returns the client's subscription that the call names. Returns NULL and marks the call as failed if there is no such
 * subscription, or if another request is reading it. */
static subscription *find_own_subscription(call *c)
{
    const char *id = service_required(c, "subscription");
    subscription *s = id != NULL ? subscription_find(c->agent, id) : NULL;
    if (s == NULL || strcmp(s->owner, c->consumer) != 0)
        service_fail(c, NL_ERROR_NOT_FOUND, "unknown subscription; it may have expired");
    else if (s->on_records != NULL)
        service_fail(c, NL_ERROR_BUSY, "another request is reading the subscription");
    return c->failed ? NULL : s;
}

static void do_unsubscribe(call *c)
{
    subscription *s = find_own_subscription(c);
    if (s != NULL)
        subscription_free(s);
}

/* ---- Fetch and Query, whose replies can be deferred ---- */

typedef struct pending {
    agent *agent;
    exchange *exchange;
    subscription *subscription;
    struct event *timer;
    size_t max;
    bool is_query, has_records, as_lines;
} pending;

static void pending_free(pending *p)
{
    event_free(p->timer);
    p->subscription->on_records = NULL;
    if (p->is_query)
        subscription_free(p->subscription);
    else
        subscription_renew(p->subscription);
    free(p);
}

static void on_client_gone(void *user)
{
    pending_free(user);
}

/* Appends at most `max` queued records. Returns false and sets the error if the queue is empty or the sensor has
 * failed. */
static bool put_records(subscription *s, size_t max, reply *to)
{
    size_t count = 0;
    bool failed = false;
    shared_record *r;
    nl_error_set(NL_ERROR_TIMEOUT, "the sensor has not logged any records yet");
    for (; count < max && (r = subscription_take(s)) != NULL; count++) {
        nl_field reason;
        if (r->is_failure && nl_record_find(shared_record_decode(r), "REASON", &reason)) {
            nl_error_set(NL_ERROR_TIMEOUT, "%.*s", (int)reason.string.size, reason.string.data);
            failed = true;
        }
        reply_put_shared(to, r);
        shared_record_release(r);
    }
    return count > 0 && !failed;
}

static void put_fetched(subscription *s, size_t max, reply *to)
{
    double missed = (double)s->missed;
    put_records(s, max, to);
    soap_put_number(&to->out, "missed", missed);
}

static void pending_answer(pending *p)
{
    reply r = {.as_lines = p->as_lines};
    bool good = true;
    if (p->is_query)
        good = put_records(p->subscription, p->max, &r);
    else
        put_fetched(p->subscription, p->max, &r);
    reply_send(&r, p->exchange, p->is_query ? "Query" : "Fetch", !good);
    pending_free(p);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    pending_answer(user);
}

/* Sends the deferred reply. For Query, first waits for the other records of the measurement. */
static void on_records(void *user)
{
    pending *p = user;
    if (!p->is_query) {
        pending_answer(p);
        return; /* p was freed */
    }
    if (!p->has_records)
        event_add(p->timer, &(struct timeval){.tv_usec = MEASUREMENT_MS * 1000});
    p->has_records = true;
}

static void defer_answer(call *c, subscription *s, bool is_query, size_t max, double wait_s)
{
    pending *p = nl_memory_check(calloc(1, sizeof *p));
    *p = (pending){.agent = c->agent,
                   .exchange = c->exchange,
                   .subscription = s,
                   .max = max,
                   .is_query = is_query,
                   .as_lines = c->reply.as_lines};
    p->timer = evtimer_new(c->agent->base, on_timer, p);
    struct timeval time = {.tv_sec = (time_t)wait_s, .tv_usec = (suseconds_t)(fmod(wait_s, 1) * 1e6)};
    if (p->timer == NULL || event_add(p->timer, &time) != 0)
        nl_memory_failed();
    s->on_records = on_records;
    s->user = p;
    exchange_keep(c->exchange, on_client_gone, p);
    c->deferred = true;
}

static void do_fetch(call *c)
{
    subscription *s = find_own_subscription(c);
    double max = service_number(c, "most", FETCH_MAX), wait_s = service_number(c, "wait", 0);
    if (c->failed)
        return;
    size_t count = max >= 1 && max <= FETCH_MAX ? (size_t)max : FETCH_MAX;
    if (s->count > 0 || s->missed > 0 || !(wait_s > 0)) {
        subscription_renew(s);
        put_fetched(s, count, &c->reply);
    } else {
        defer_answer(c, s, false, count, wait_s < FETCH_WAIT_MAX_S ? wait_s : FETCH_WAIT_MAX_S);
    }
}

/* Appends the latest measurement of a running sensor. Returns false if the measurement contains no matching records. */
static bool put_latest(call *c, const active *s, const nl_filter *filter)
{
    size_t count = 0;
    for (size_t i = 0; i < s->latest_count; i++) {
        bool matches = true;
        const nl_record *fields = filter != NULL ? shared_record_decode(s->latest[i]) : NULL;
        if (fields != NULL && condition_match(&c->agent->matching, filter, fields, &matches) != NL_OK) {
            service_fail(c, NL_ERROR_LIMIT, "the expression costs too much");
            return false;
        }
        if (!matches || (filter != NULL && fields == NULL)) /* an invalid line does not match */
            continue;
        reply_put_shared(&c->reply, s->latest[i]);
        count++;
    }
    return count > 0;
}

static void do_query(call *c)
{
    active *running = NULL;
    const char *sensor = service_required(c, "sensor");
    subscription_options o = read_subscription(c);
    if (c->failed || !service_check_reading(c, sensor, RIGHT_SUMMARIES | RIGHT_READ))
        return;
    nl_filter *filter = o.condition.where != NULL ? nl_filter_parse(o.condition.where) : NULL;
    c->failed = o.condition.where != NULL && filter == NULL;
    active_find(c->agent, sensor, &running);
    bool done = !c->failed && running != NULL && running->process != NULL && put_latest(c, running, filter);
    nl_filter_free(filter);
    if (done || c->failed)
        return;
    subscription *s = subscription_new(c->agent, sensor, &o);
    if (s == NULL)
        c->failed = true;
    else
        defer_answer(c, s, true, FETCH_MAX, QUERY_WAIT_S);
}

/* ---- Start, Stop, Summaries ---- */

static void do_start(call *c)
{
    const char *sensor = service_required(c, "sensor");
    double interval_s = service_number(c, "interval", 1);
    if (c->failed || !service_check_right(c, RIGHT_START, "you are not allowed to start sensors"))
        return;
    if (!(interval_s >= c->agent->limits.min_interval_s && interval_s <= 86400)) {
        service_fail(c, NL_ERROR_INVALID, "the interval is out of range; use %g to 86400 seconds",
                     c->agent->limits.min_interval_s);
        return;
    }
    active *s = active_get(c->agent, sensor);
    if (s == NULL) {
        c->failed = true;
        return;
    }
    s->held = true;
    s->held_interval_s = interval_s;
    active_summarize(s);
    active_adjust(s);
    soap_put(&c->reply.out, "sensor", s->spec->text);
}

/* Returns whether the client has the right and the `sensor` argument is valid. If not, marks the call as failed. Sets
 * *s to the sensor, or to NULL if the sensor has not run. */
static bool find_sensor(call *c, unsigned right, const char *problem, active **s)
{
    const char *sensor = service_required(c, "sensor");
    if (sensor != NULL && service_check_right(c, right, problem) && !active_find(c->agent, sensor, s))
        c->failed = true;
    return !c->failed;
}

static void do_stop(call *c)
{
    active *s;
    if (!find_sensor(c, RIGHT_START, "you are not allowed to stop sensors", &s))
        return;
    if (s != NULL) {
        s->held = false;
        active_adjust(s);
    }
    soap_put(&c->reply.out, "sensor", s != NULL ? s->spec->text : service_text(c, "sensor"));
}

static void put_summary(void *user, const nl_record *record)
{
    call *c = user;
    if (reply_size(&c->reply) < REPLY_MAX)
        reply_put_record(&c->reply, record);
}

static void do_summaries(call *c)
{
    active *s;
    const char *since = service_text(c, "since");
    unsigned minutes = service_minutes(c, "minutes", 1);
    int64_t since_ns = 0;
    if (since != NULL && nl_time_parse(since, strlen(since), NL_FRACTION_DECIMAL, &since_ns) != NL_OK)
        service_fail(c, NL_ERROR_INVALID, "since: invalid time");
    if (!find_sensor(c, RIGHT_SUMMARIES, "you are not allowed to read summaries", &s) || s == NULL)
        return;
    active_summarize(s);
    summaries_list(s->summaries, minutes, since_ns, put_summary, c);
    if (reply_size(&c->reply) >= REPLY_MAX)
        service_fail(c, NL_ERROR_LIMIT, "the reply is too large; use since to request fewer records");
}

/* ---- Register, Withdraw, Find ---- */

static bool service_check_directory(call *c)
{
    if (c->agent->directory == NULL)
        service_fail(c, NL_ERROR_NOT_FOUND, "this agent is not a directory; start one with nlagentd --serve-directory");
    return c->agent->directory != NULL;
}

/*
 * Returns whether a name or URL has 1 to `max` bytes, and contains no blank, no control character, no '<' and no '"'.
 */
static bool is_printable_name(const char *text, size_t max)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] == 0x7f || text[i] == '<' || text[i] == '"')
            return false;
    return size > 0 && size <= max;
}

/* Stores the sensors of the call, and returns the number of sensors. If there are too many sensors, returns one more
 * than the maximum number. */
static size_t read_sensors(const call *c, directory_sensor sensors[DIRECTORY_SENSORS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < c->soap->count; i++) {
        const soap_argument *a = &c->soap->arguments[i];
        const char *value = c->soap->text.data + a->value;
        bool begins = strcmp(a->name, "agent.sensor") == 0;
        if (begins && count++ < DIRECTORY_SENSORS_MAX)
            sensors[count - 1] = (directory_sensor){"", "", ""};
        else if (count > DIRECTORY_SENSORS_MAX)
            break;
        else if (count > 0 && strcmp(a->name, "agent.sensor.name") == 0)
            sensors[count - 1].name = value;
        else if (count > 0 && strcmp(a->name, "agent.sensor.what") == 0)
            sensors[count - 1].what = value;
        else if (count > 0 && strcmp(a->name, "agent.sensor.events") == 0)
            sensors[count - 1].events = value;
    }
    return count;
}

static void do_register(call *c)
{
    const char *host = service_required(c, "agent.host"), *url = service_required(c, "agent.url");
    double ttl_s = service_number(c, "agent.ttl", 60);
    directory_sensor sensors[DIRECTORY_SENSORS_MAX];
    if (c->failed || !service_check_directory(c) ||
        !service_check_right(c, RIGHT_REGISTER, "you are not allowed to register agents"))
        return;
    size_t count = read_sensors(c, sensors);
    if (count > DIRECTORY_SENSORS_MAX)
        service_fail(c, NL_ERROR_LIMIT, "too many sensors; the maximum is %d per agent", DIRECTORY_SENSORS_MAX);
    else if (!is_printable_name(host, 255) || !is_printable_name(url, 512) ||
             (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0))
        service_fail(c, NL_ERROR_INVALID, "invalid host or URL; the URL must be http://HOST or https://HOST");
    else if (!(ttl_s >= 1 && ttl_s <= DIRECTORY_TTL_MAX_S))
        service_fail(c, NL_ERROR_INVALID, "ttl is out of range; use 1 to %d seconds", DIRECTORY_TTL_MAX_S);
    else if (!directory_register(c->agent->directory, host, url, ttl_s, sensors, count))
        service_fail(c, NL_ERROR_LIMIT, "the directory is full");
    else
        soap_put_number(&c->reply.out, "ttl", ttl_s);
}

static void do_withdraw(call *c)
{
    const char *url = service_required(c, "url");
    if (!c->failed && service_check_directory(c) &&
        service_check_right(c, RIGHT_REGISTER, "you are not allowed to register agents"))
        directory_withdraw(c->agent->directory, url);
}

static void put_agent(void *user, const char *host, const char *url, const directory_sensor *sensors, size_t count)
{
    soap_put_agent(user, host, url, 0, sensors, count);
}

static void do_find(call *c)
{
    const char *expression = service_text(c, "expression");
    nl_filter *filter = NULL;
    if (!service_check_directory(c) ||
        !service_check_right(c, RIGHT_SUMMARIES, "you are not allowed to search the directory"))
        return;
    if (expression != NULL && (filter = directory_filter(expression)) == NULL) {
        c->failed = true;
        return;
    }
    directory_expire(c->agent->directory);
    directory_find(c->agent->directory, filter, put_agent, &c->reply.out);
    nl_filter_free(filter);
}

/* ---- Collect, Release ---- */

static void read_list(call *c, const char *name, const char *list[LIST_MAX + 1])
{
    size_t place = 0, count = 0;
    const char *value;
    while ((value = soap_next_value(c->soap, name, &place)) != NULL) {
        if (*value == '\0')
            continue;
        if (count == LIST_MAX) {
            service_fail(c, NL_ERROR_LIMIT, "%s: too many values; the maximum is %d", name, LIST_MAX);
            break;
        }
        list[count++] = value;
    }
    list[count] = NULL;
}

/* Marks the call as failed unless the destination is a collector. Also rejects options that name files, because
 * nlagentd would access these files with its own rights. */
static void check_destination(call *c, const char *destination)
{
    static const char harmless[] = "block clock format idle name ring policy timeout zstd";
    nl_url *url = nl_url_parse(destination);
    if (url == NULL ||
        (url->scheme != NL_SCHEME_NETLOG && url->scheme != NL_SCHEME_NETLOGS && url->scheme != NL_SCHEME_UNIX))
        service_fail(c, NL_ERROR_INVALID,
                     "invalid destination; use a collector: x-netlog://HOST, x-netlogs://HOST or "
                     "unix:PATH");
    for (size_t i = 0; url != NULL && i < url->option_count; i++)
        if (!nl_option_list_has(harmless, ' ', url->options[i].name, strlen(url->options[i].name)))
            service_fail(c, NL_ERROR_INVALID,
                         "the destination's option \"%.60s\" is not permitted; the permitted options are %s",
                         url->options[i].name, harmless);
    nl_url_free(url);
}

static void do_collect(call *c)
{
    const char *agents[LIST_MAX + 1], *sensors[LIST_MAX + 1];
    collection_options o = {.hosts = service_text(c, "hosts"),
                            .agents = agents,
                            .sensors = sensors,
                            .interval = service_text(c, "interval"),
                            .where = service_text(c, "where"),
                            .destination = service_required(c, "destination")};
    read_list(c, "agent", agents);
    read_list(c, "sensor", sensors);
    if (c->failed || !service_check_right(c, RIGHT_COLLECT, "you are not allowed to start collections"))
        return;
    check_destination(c, o.destination);
    if (sensors[0] == NULL || (agents[0] == NULL && o.hosts == NULL))
        service_fail(c, NL_ERROR_INVALID, "missing argument; give at least one sensor, and agents or hosts");
    const char *name = c->failed ? NULL : collections_start(c->agent->collections, &o);
    if (name == NULL)
        c->failed = true;
    else
        soap_put(&c->reply.out, "collection", name);
}

static void do_release(call *c)
{
    const char *name = service_required(c, "collection");
    if (name != NULL && service_check_right(c, RIGHT_COLLECT, "you are not allowed to end collections") &&
        !collections_end(c->agent->collections, name))
        service_fail(c, NL_ERROR_NOT_FOUND, "unknown collection");
}

/* ---- dispatch ---- */

static const struct {
    const char *name;
    void (*function)(call *c);
} operations[] = {
    {"List", do_list},           {"Status", do_status},           {"Settings", do_settings},
    {"Query", do_query},         {"Subscribe", do_subscribe},     {"Fetch", do_fetch},
    {"Start", do_start},         {"Unsubscribe", do_unsubscribe}, {"Stop", do_stop},
    {"Summaries", do_summaries}, {"Register", do_register},       {"Withdraw", do_withdraw},
    {"Find", do_find},           {"Collect", do_collect},         {"Release", do_release},
};
enum { OPERATION_COUNT = sizeof operations / sizeof operations[0] };

static void perform(call *c)
{
    const char *format = service_text(c, "format");
    size_t i = 0;
    while (i < OPERATION_COUNT && strcmp(operations[i].name, c->soap->operation) != 0)
        i++;
    if (format != NULL && strcmp(format, "xml") != 0 && strcmp(format, "ulm") != 0)
        service_fail(c, NL_ERROR_INVALID, "format: unknown format; use xml or ulm");
    c->reply.as_lines = format != NULL && strcmp(format, "ulm") == 0;
    if (i == OPERATION_COUNT)
        service_fail(c, NL_ERROR_NOT_FOUND, "unknown operation \"%s\"", c->soap->operation);
    else if (!c->failed)
        operations[i].function(c);
}

void service_do(agent *a, exchange *x, const char *message, size_t size, const char *consumer, unsigned rights)
{
    soap_call soap;
    call c = {.agent = a, .exchange = x, .soap = &soap, .consumer = consumer, .rights = rights};
    if (soap_read(message, size, &soap))
        perform(&c);
    else
        c.failed = true;
    a->counts.refused += c.failed;
    if (!c.deferred)
        reply_send(&c.reply, x, soap.operation, c.failed);
    soap_call_free(&soap);
}
