#include "config.h"

#include "agent/service.h"

#include "agent/access.h"
#include "agent/collections.h"
#include "agents/directory.h"
#include "agents/soap.h"
#include "program/program.h"
#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FETCH_MAX = 1000,
    WAIT_MOST_S = 50, /* below what HTTP's own timeout is */
    QUERY_WAIT_S = 10,
    LOOK_MS = 150,        /* how long records of one look may take to come */
    LISTED_MAX = 300,     /* which is what read_list says */
    ANSWER_MAX = 32 << 20 /* bytes */
};

typedef struct call {
    agent *agent;
    exchange *exchange;
    const soap_call *soap;
    const char *consumer;
    unsigned rights;
    nl_buffer out; /* the answer */
    bool later;    /* it comes later */
    bool failed;   /* with this thread's error */
} call;

/* Keeps the first error. */
static void service_fail(call *c, nl_error_code code, const char *problem)
{
    if (!c->failed)
        nl_error_set(code, "%s", problem);
    c->failed = true;
}

static void fail_for_argument(call *c, const char *name, const char *problem)
{
    if (!c->failed)
        nl_error_set(NL_ERROR_INVALID, "%s %s", name, problem);
    c->failed = true;
}

static const char *needed(call *c, const char *name)
{
    const char *value = soap_value(c->soap, name);
    if (value == NULL || *value == '\0') {
        fail_for_argument(c, name, "is wanted");
        return NULL;
    }
    return value;
}

/* A number; otherwise when it is not there. */
static double number(call *c, const char *name, double otherwise)
{
    const char *text = soap_value(c->soap, name);
    char *end;
    if (text == NULL || *text == '\0')
        return otherwise;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        fail_for_argument(c, name, "is no number");
    return value;
}

static bool has_right(call *c, unsigned right, const char *problem)
{
    if ((c->rights & right) == right)
        return true;
    service_fail(c, NL_ERROR_PERMISSION, problem);
    return false;
}

/* A sensor that runs may be read by whoever may read; one that does not, needs the right to start it. */
static bool may_have(call *c, const char *sensor, unsigned right)
{
    active *s;
    active_find(c->agent, sensor, &s);
    if (!has_right(c, right, "you may not read this"))
        return false;
    return (s != NULL && s->process != NULL) ||
           has_right(c, RIGHT_START, "the sensor does not run, and you may not have it started");
}

/* ---- List, Status ---- */

static void put_fields_of(nl_buffer *out, const definition *d)
{
    for (const sensor_field *f = d->fields; f != NULL && f->event != NULL; f++) {
        soap_open(out, "field");
        soap_put(out, "event", f->event);
        soap_put(out, "name", f->name);
        soap_put(out, "unit", f->unit);
        soap_put(out, "meaning", f->meaning);
        soap_close(out, "field");
    }
}

static void put_instances(nl_buffer *out, const agent *a, const definition *d)
{
    nl_record *record = nl_record_new();
    for (const active *s = a->sensors; s != NULL; s = s->next) {
        if (s->definition != d)
            continue;
        nl_record_clear(record);
        active_describe(s, record);
        soap_open(out, "instance");
        soap_put_fields(out, record);
        soap_close(out, "instance");
    }
    nl_record_free(record);
}

static void list(call *c)
{
    const char *details = soap_value(c->soap, "details");
    bool detailed = details != NULL && (strcmp(details, "true") == 0 || strcmp(details, "1") == 0);
    for (const definition *d = c->agent->definitions.first; d != NULL; d = d->next) {
        soap_open(&c->out, "sensor");
        soap_put(&c->out, "name", d->name);
        soap_put(&c->out, "what", d->what);
        soap_put(&c->out, "arguments", d->arguments_help);
        put_instances(&c->out, c->agent, d);
        if (detailed)
            put_fields_of(&c->out, d);
        soap_close(&c->out, "sensor");
    }
}

static void status(call *c)
{
    const agent *a = c->agent;
    size_t running = 0;
    nl_record *record = agent_record(a, NL_USAGE, "Nlagentd.Status");
    for (const active *s = a->sensors; s != NULL; s = s->next)
        running += s->process != NULL;
    nl_record_add_uint(record, "SENSORS", running);
    nl_record_add_uint(record, "SUBSCRIPTIONS", a->subscription_count);
    nl_record_add_uint(record, "RECORDS", a->counts.records);
    nl_record_add_uint(record, "MISSED", a->counts.missed);
    nl_record_add_uint(record, "STARTS", a->counts.starts);
    nl_record_add_uint(record, "FAILURES", a->counts.failures);
    nl_record_add_uint(record, "REQUESTS", a->counts.requests);
    nl_record_add_uint(record, "REFUSED", a->counts.refused);
    if (a->directory != NULL)
        nl_record_add_uint(record, "AGENTS", directory_size(a->directory));
    soap_put_record(&c->out, record);
    nl_record_free(record);
}

/* ---- Subscribe, Fetch, Unsubscribe ---- */

static void read_wish(call *c, subscription_wish *w)
{
    const char *change = soap_value(c->soap, "change");
    w->condition = (wish){.interval_s = number(c, "interval", 0),
                          .where = soap_value(c->soap, "where"),
                          .field = soap_value(c->soap, "field"),
                          .on_change = change != NULL && (strcmp(change, "true") == 0 || strcmp(change, "1") == 0),
                          .above = number(c, "above", NAN),
                          .below = number(c, "below", NAN),
                          .percent = number(c, "percent", NAN)};
    if (w->condition.where != NULL && *w->condition.where == '\0')
        w->condition.where = NULL;
    if (w->condition.field != NULL && *w->condition.field == '\0')
        w->condition.field = NULL;
    double minutes = number(c, "summary", 0);
    w->summary_minutes = minutes == 1 || minutes == 10 || minutes == 60 ? (unsigned)minutes : 0;
    if (minutes != w->summary_minutes)
        service_fail(c, NL_ERROR_INVALID, "summaries are of 1, 10 or 60 minutes");
    w->lease_s = number(c, "lease", 60);
    w->owner = c->consumer;
}

static void subscribe(call *c)
{
    subscription_wish w = {0};
    const char *sensor = needed(c, "sensor");
    read_wish(c, &w);
    if (c->failed || !may_have(c, sensor, w.summary_minutes != 0 ? RIGHT_SUMMARIES : RIGHT_SUMMARIES | RIGHT_READ))
        return;
    const subscription *s = subscription_new(c->agent, sensor, &w);
    if (s == NULL) {
        c->failed = true;
        return;
    }
    soap_put(&c->out, "subscription", s->id);
    soap_put(&c->out, "sensor", s->sensor->spec->text);
    soap_put_number(&c->out, "interval", s->interval_s);
    soap_put_number(&c->out, "lease", s->lease_s);
}

static subscription *own_subscription(call *c)
{
    const char *id = needed(c, "subscription");
    subscription *s = id != NULL ? subscription_find(c->agent, id) : NULL;
    if (id != NULL && (s == NULL || strcmp(s->owner, c->consumer) != 0)) {
        service_fail(c, NL_ERROR_NOT_FOUND, "nothing of that name exists, or no longer");
        return NULL;
    }
    return s;
}

static void unsubscribe(call *c)
{
    subscription *s = own_subscription(c);
    if (s == NULL)
        return;
    if (s->on_records != NULL)
        service_fail(c, NL_ERROR_BUSY, "it is being read; end that");
    else
        subscription_free(s);
}

/* ---- answers that come later: Fetch, Query ---- */

typedef struct pending {
    agent *agent;
    exchange *exchange;
    subscription *subscription;
    struct event *timer;
    size_t most;
    bool is_query, has_waited;
} pending;

static void service_forget(pending *p)
{
    event_free(p->timer);
    p->subscription->on_records = NULL;
    if (p->is_query)
        subscription_free(p->subscription);
    else
        subscription_renew(p->subscription);
    free(p);
}

static void on_gone(void *user)
{
    service_forget(user);
}

/* Appends the waiting records. Returns false and sets the error when there are none, or a sensor failed. */
static bool put_records(subscription *s, size_t most, nl_buffer *out)
{
    const nl_record *record;
    size_t count = 0;
    uint64_t missed = s->missed;
    bool failed = false;
    nl_error_set(NL_ERROR_TIMEOUT, "the sensor has logged nothing");
    while (count < most && subscription_take(s, &record)) {
        nl_field reason;
        bool tells = record->event.size == 21 && (memcmp(record->event.data, "Nlagentd.SensorFailed", 21) == 0 ||
                                                  memcmp(record->event.data, "Nlagentd.CostlyFilter", 21) == 0);
        if (tells && nl_record_find(record, "REASON", &reason)) {
            char scratch[NL_FIELD_TEXT_SIZE];
            nl_string shown = nl_field_text(&reason, scratch);
            nl_error_set(NL_ERROR_TIMEOUT, "%.*s", (int)shown.size, shown.data);
            failed = true;
        }
        soap_put_record(out, record);
        count++;
    }
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)missed);
    soap_put(out, "missed", text);
    return count > 0 && !failed;
}

static void answer_fetch(pending *p)
{
    nl_buffer out = {0};
    soap_begin(&out, "FetchResponse");
    put_records(p->subscription, p->most, &out);
    soap_end(&out, "FetchResponse");
    exchange_answer(p->exchange, &out, false);
    nl_buffer_free(&out);
    service_forget(p);
}

static void answer_query(pending *p)
{
    nl_buffer out = {0}, records = {0};
    bool good = put_records(p->subscription, p->most, &records);
    if (good) {
        soap_begin(&out, "QueryResponse");
        const char *end = memmem(records.data, records.size, "<missed>", 8);
        nl_buffer_append(&out, records.data, (size_t)(end - records.data));
        soap_end(&out, "QueryResponse");
    } else {
        soap_put_fault(&out);
    }
    exchange_answer(p->exchange, &out, !good);
    nl_buffer_free(&out);
    nl_buffer_free(&records);
    service_forget(p);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    pending *p = user;
    if (p->is_query)
        answer_query(p);
    else
        answer_fetch(p);
}

/* The rest of a query's look is waited for. */
static void on_records(void *user)
{
    pending *p = user;
    if (!p->is_query) {
        answer_fetch(p);
    } else if (!p->has_waited) {
        p->has_waited = true;
        event_add(p->timer, &(struct timeval){.tv_usec = LOOK_MS * 1000});
    }
}

static void answer_later(call *c, subscription *s, bool is_query, size_t most, double wait_s)
{
    pending *p = nl_memory_check(calloc(1, sizeof *p));
    *p = (pending){c->agent, c->exchange, s, NULL, most, is_query, false};
    p->timer = evtimer_new(c->agent->base, on_timer, p);
    struct timeval time = {.tv_sec = (time_t)wait_s, .tv_usec = (suseconds_t)(fmod(wait_s, 1) * 1e6)};
    if (p->timer == NULL || event_add(p->timer, &time) != 0)
        nl_memory_failed();
    s->on_records = on_records;
    s->user = p;
    exchange_keep(c->exchange, on_gone, p);
    c->later = true;
}

static void fetch(call *c)
{
    subscription *s = own_subscription(c);
    double most = number(c, "most", FETCH_MAX), wait_s = number(c, "wait", 0);
    if (s == NULL || c->failed)
        return;
    if (s->on_records != NULL) {
        service_fail(c, NL_ERROR_BUSY, "it is being read already");
        return;
    }
    size_t count = most >= 1 && most <= FETCH_MAX ? (size_t)most : FETCH_MAX;
    if (s->count > 0 || s->missed > 0 || !(wait_s > 0)) {
        subscription_renew(s);
        put_records(s, count, &c->out);
    } else {
        answer_later(c, s, false, count, wait_s < WAIT_MOST_S ? wait_s : WAIT_MOST_S);
    }
}

/* What is there already, of a sensor that runs. False when there is nothing. */
static bool query_latest(call *c, const char *sensor, const char *where)
{
    active *s;
    if (!active_find(c->agent, sensor, &s) || s == NULL || s->process == NULL || s->latest_count == 0)
        return false;
    nl_filter *filter = where != NULL && *where != '\0' ? nl_filter_parse(where) : NULL;
    size_t count = 0;
    for (size_t i = 0; i < s->latest_count; i++) {
        bool matches = true;
        if (filter != NULL && condition_match(&c->agent->matching, filter, s->latest[i], &matches) != NL_OK) {
            service_fail(c, NL_ERROR_LIMIT, "the expression costs too much");
            break;
        }
        if (!matches)
            continue;
        soap_put_record(&c->out, s->latest[i]);
        count++;
    }
    nl_filter_free(filter);
    return count > 0 || c->failed;
}

static void query(call *c)
{
    subscription_wish w = {0};
    const char *sensor = needed(c, "sensor");
    read_wish(c, &w);
    if (c->failed || !may_have(c, sensor, RIGHT_SUMMARIES | RIGHT_READ))
        return;
    nl_filter *filter = w.condition.where != NULL ? nl_filter_parse(w.condition.where) : NULL;
    if (w.condition.where != NULL && filter == NULL) {
        c->failed = true;
        return;
    }
    nl_filter_free(filter);
    if (query_latest(c, sensor, w.condition.where))
        return;
    subscription *s = subscription_new(c->agent, sensor, &w);
    if (s == NULL)
        c->failed = true;
    else
        answer_later(c, s, true, FETCH_MAX, QUERY_WAIT_S);
}

/* ---- Start, Stop, Summaries ---- */

static void service_start(call *c)
{
    const char *sensor = needed(c, "sensor");
    double interval_s = number(c, "interval", 1);
    if (c->failed || !has_right(c, RIGHT_START, "you may not start sensors"))
        return;
    if (!(interval_s >= c->agent->limits.least_interval_s && interval_s <= 86400)) {
        service_fail(c, NL_ERROR_INVALID, "the interval is too short, or longer than a day");
        return;
    }
    active *s = active_get(c->agent, sensor);
    if (s == NULL) {
        c->failed = true;
        return;
    }
    s->held = true;
    s->held_interval_s = interval_s;
    active_adjust(s);
    soap_put(&c->out, "sensor", s->spec->text);
}

static void stop(call *c)
{
    active *s;
    const char *sensor = needed(c, "sensor");
    if (sensor == NULL || !has_right(c, RIGHT_START, "you may not stop sensors"))
        return;
    if (!active_find(c->agent, sensor, &s)) {
        c->failed = true;
        return;
    }
    if (s != NULL) {
        s->held = false;
        active_adjust(s);
    }
    soap_put(&c->out, "sensor", s != NULL ? s->spec->text : sensor);
}

static void put_one(void *user, const nl_record *record)
{
    call *c = user;
    if (c->out.size < ANSWER_MAX)
        soap_put_record(&c->out, record);
}

static void summaries_of(call *c)
{
    active *s;
    const char *sensor = needed(c, "sensor"), *since = soap_value(c->soap, "since");
    double minutes = number(c, "minutes", 1);
    int64_t since_ns = 0;
    if (c->failed || !has_right(c, RIGHT_SUMMARIES, "you may not have summaries"))
        return;
    if (since != NULL && *since != '\0' && nl_time_parse(since, strlen(since), NL_FRACTION_DECIMAL, &since_ns) != NL_OK)
        service_fail(c, NL_ERROR_INVALID, "since is no time");
    else if (minutes != 1 && minutes != 10 && minutes != 60)
        service_fail(c, NL_ERROR_INVALID, "summaries are of 1, 10 or 60 minutes");
    if (c->failed)
        return;
    if (!active_find(c->agent, sensor, &s))
        c->failed = true;
    else if (s != NULL)
        summaries_list(s->summaries, (unsigned)minutes, since_ns, put_one, c);
    if (c->out.size >= ANSWER_MAX)
        service_fail(c, NL_ERROR_LIMIT, "that is too much for one answer; ask for less, with since");
}

/* ---- the directory ---- */

static bool is_directory(call *c)
{
    if (c->agent->directory == NULL)
        service_fail(c, NL_ERROR_NOT_FOUND, "this agent is no directory: nlagentd --directory is one");
    return c->agent->directory != NULL;
}

/* Names and URLs of strangers go into messages and terminals: only what can be seen is taken. */
static bool is_plain(const char *text, size_t most)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] == 0x7f || text[i] == '<' || text[i] == '"')
            return false;
    return size > 0 && size <= most;
}

/* Returns how many there are; one more than are read at most. */
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

static void register_agent(call *c)
{
    const char *host = needed(c, "agent.host"), *url = needed(c, "agent.url");
    double ttl_s = number(c, "agent.ttl", 60);
    directory_sensor sensors[DIRECTORY_SENSORS_MAX];
    if (c->failed || !is_directory(c) || !has_right(c, RIGHT_REGISTER, "you may not register agents"))
        return;
    size_t count = read_sensors(c, sensors);
    if (count > DIRECTORY_SENSORS_MAX) {
        service_fail(c, NL_ERROR_LIMIT, "so many sensors of one agent are too many");
        return;
    }
    if (!is_plain(host, 255) || !is_plain(url, 512) ||
        (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) ||
        !(ttl_s >= 1 && ttl_s <= DIRECTORY_TTL_MOST_S)) {
        service_fail(c, NL_ERROR_INVALID, "host, url (http or https) and ttl (1 to 86400 seconds) are wanted");
        return;
    }
    if (directory_register(c->agent->directory, host, url, ttl_s, sensors, count))
        soap_put_number(&c->out, "ttl", ttl_s);
    else
        service_fail(c, NL_ERROR_LIMIT, "the directory is full");
}

static void withdraw(call *c)
{
    const char *url = needed(c, "url");
    if (!c->failed && is_directory(c) && has_right(c, RIGHT_REGISTER, "you may not register agents"))
        directory_withdraw(c->agent->directory, url);
}

static void put_agent(void *user, const char *host, const char *url, const directory_sensor *sensors, size_t count)
{
    nl_buffer *out = user;
    soap_open(out, "agent");
    soap_put(out, "host", host);
    soap_put(out, "url", url);
    for (size_t i = 0; i < count; i++) {
        soap_open(out, "sensor");
        soap_put(out, "name", sensors[i].name);
        soap_put(out, "what", sensors[i].what);
        soap_put(out, "events", sensors[i].events);
        soap_close(out, "sensor");
    }
    soap_close(out, "agent");
}

static void service_find(call *c)
{
    const char *expression = soap_value(c->soap, "expression");
    nl_filter *filter = NULL;
    if (!is_directory(c) || !has_right(c, RIGHT_SUMMARIES, "you may not look up"))
        return;
    if (expression != NULL && *expression != '\0' && (filter = directory_filter(expression)) == NULL) {
        c->failed = true;
        return;
    }
    directory_expire(c->agent->directory);
    directory_find(c->agent->directory, filter, put_agent, &c->out);
    nl_filter_free(filter);
}

/* ---- collections ---- */

static void read_list(call *c, const char *name, const char *list[LISTED_MAX + 1])
{
    size_t place = 0, count = 0;
    const char *value;
    while ((value = soap_next_value(c->soap, name, &place)) != NULL) {
        if (*value == '\0')
            continue;
        if (count == LISTED_MAX) {
            fail_for_argument(c, name, "is there too often: more than 300 times");
            break;
        }
        list[count++] = value;
    }
    list[count] = NULL;
}

static bool is_collectors(const nl_url *url)
{
    return url != NULL &&
           (url->scheme == NL_SCHEME_NETLOG || url->scheme == NL_SCHEME_NETLOGS || url->scheme == NL_SCHEME_UNIX);
}

/* The first option that may name a file, or is none at all; NULL when there is none such. */
static const char *find_harmful(const nl_url *url)
{
    static const char *const harmless[] = {"block", "clock",  "format",  "idle", "name",
                                           "ring",  "policy", "timeout", "zstd"};
    enum { COUNT = sizeof harmless / sizeof harmless[0] };
    for (size_t i = 0; i < url->option_count; i++) {
        size_t k = 0;
        while (k < COUNT && strcmp(url->options[i].name, harmless[k]) != 0)
            k++;
        if (k == COUNT)
            return url->options[i].name;
    }
    return NULL;
}

/* Fails unless records may be sent there: to a collector, and with no option that names a file, which would be written
 * or read with this agent's rights. */
static void check_destination(call *c, const char *destination)
{
    nl_url *url = nl_url_parse(destination);
    const char *harmful = is_collectors(url) ? find_harmful(url) : NULL;
    if (!is_collectors(url))
        service_fail(c, NL_ERROR_INVALID,
                     "the destination is a collector's: x-netlog://HOST, x-netlogs://HOST, unix:PATH");
    if (harmful != NULL) {
        nl_error_set(
            NL_ERROR_INVALID,
            "the destination may not say \"%.60s\": policy, block, ring, clock, idle, format, zstd, timeout and "
            "name are permitted",
            harmful);
        c->failed = true;
    }
    nl_url_free(url);
}

static void collect(call *c)
{
    const char *urls[LISTED_MAX + 1], *sensors[LISTED_MAX + 1];
    collection_wish w = {
        soap_value(c->soap, "hosts"), urls, sensors, soap_value(c->soap, "interval"), soap_value(c->soap, "where"),
        needed(c, "destination")};
    read_list(c, "agent", urls);
    read_list(c, "sensor", sensors);
    if (c->failed || !has_right(c, RIGHT_COLLECT, "you may not have this agent collect"))
        return;
    check_destination(c, w.destination);
    if (!c->failed && (sensors[0] == NULL || (urls[0] == NULL && (w.hosts == NULL || *w.hosts == '\0'))))
        service_fail(c, NL_ERROR_INVALID, "which sensors, and of which agents or hosts?");
    if (c->failed)
        return;
    const char *name = collections_begin(c->agent->collections, &w);
    if (name == NULL)
        c->failed = true;
    else
        soap_put(&c->out, "collection", name);
}

static void release(call *c)
{
    const char *name = needed(c, "collection");
    if (name == NULL || !has_right(c, RIGHT_COLLECT, "you may not have this agent collect"))
        return;
    if (!collections_end(c->agent->collections, name))
        service_fail(c, NL_ERROR_NOT_FOUND, "nothing of that name exists");
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    void (*function)(call *c);
} operations[] = {
    {"List", list},
    {"Status", status},
    {"Query", query},
    {"Subscribe", subscribe},
    {"Fetch", fetch},
    {"Start", service_start},
    {"Unsubscribe", unsubscribe},
    {"Stop", stop},
    {"Summaries", summaries_of},
    {"Register", register_agent},
    {"Withdraw", withdraw},
    {"Find", service_find},
    {"Collect", collect},
    {"Release", release},
};

/* Does it, with the answer begun; false when there is no such operation. */
static bool perform(call *c)
{
    char name[SOAP_NAME + 16];
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        if (strcmp(operations[i].name, c->soap->operation) != 0)
            continue;
        snprintf(name, sizeof name, "%sResponse", operations[i].name);
        soap_begin(&c->out, name);
        operations[i].function(c);
        soap_end(&c->out, name);
        return true;
    }
    return false;
}

void service_do(agent *a, exchange *x, const char *message, size_t size, const char *consumer, unsigned rights)
{
    soap_call soap;
    call c = {.agent = a, .exchange = x, .soap = &soap, .consumer = consumer, .rights = rights};
    c.failed = !soap_read(message, size, &soap);
    if (!c.failed && !perform(&c)) {
        nl_error_set(NL_ERROR_NOT_FOUND, "there is no operation \"%s\"", soap.operation);
        c.failed = true;
    }
    if (c.failed) {
        a->counts.refused++;
        c.out.size = 0;
        soap_put_fault(&c.out);
    }
    if (!c.later)
        exchange_answer(x, &c.out, c.failed);
    nl_buffer_free(&c.out);
    soap_call_free(&soap);
}
