#include "config.h"

#include "subscription.h"

#include "base/monotonic.h"
#include "output/failure.h"
#include "past.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_SIZE = 64 << 10, /* what is gathered is handed out at that size even within a turn */
    SHARED_SIZE = 4 << 10, /* a larger chunk is shared by the queues, a smaller one copied into them */
    SLICE_NS = 2000000,    /* of the past, in a turn */
    CLOCK_RECORDS = 64,    /* between looks at the clock meanwhile */
    BLOCKED_MS = 250,      /* the output cannot be written: the past can't be joined with the present before */
};

/* Records that are of one kind for somebody: how many, and from when to when they are. */
typedef struct span {
    uint64_t count;
    int64_t from_ns, to_ns;
} span;

typedef struct group {
    struct group *next, **link;
    nl_format format;
    char *where; /* NULL: all records */
    nl_filter *filter;
    bool has_since;
    int64_t since_ns;
    nl_encoder *encoder; /* of the turn */
    span gathered;       /* by it */
    subscription *members;
    size_t users; /* members, and those who will be once they have caught up */
} group;

struct subscription {
    subscription *next, **link; /* in the group, when live */
    subscriptions *all;
    request *request;
    group *group;
    bool live;
    int64_t began_ns;
    uint64_t records;
    span missed; /* and not told yet */
    uint64_t missed_in_all;
    /* while it catches up. If it is live nevertheless, the file has no more than was there when it became so, and what
     * comes meanwhile is missed: */
    past *past;
    nl_encoder *encoder;
    struct event *turn;
};

struct subscriptions {
    server *server;
    group *groups;
    struct event *turn; /* what is gathered is handed out when all who were readable have been read */
    bool turn_comes;
    nl_buffer lines[2]; /* the present record in the text formats, empty until one is wanted */
    nl_buffer chunk;
    subscription_counts counts;
};

static void *must(void *memory)
{
    if (memory == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return memory;
}

static void span_add(span *s, uint64_t count, int64_t from_ns, int64_t to_ns)
{
    s->from_ns = s->count == 0 || from_ns < s->from_ns ? from_ns : s->from_ns;
    s->to_ns = s->count == 0 || to_ns > s->to_ns ? to_ns : s->to_ns;
    s->count += count;
}

/* ---- groups ---- */

static bool is_same(const group *g, const group *wanted)
{
    return g->format == wanted->format && g->has_since == wanted->has_since && g->since_ns == wanted->since_ns &&
           (g->where == NULL || wanted->where == NULL ? g->where == wanted->where
                                                      : strcmp(g->where, wanted->where) == 0);
}

/* The group that is as wanted. The filter is taken over; where is copied. */
static group *join(subscriptions *all, const group *wanted)
{
    group *g = all->groups;
    while (g != NULL && !is_same(g, wanted))
        g = g->next;
    if (g != NULL) {
        nl_filter_free(wanted->filter);
    } else {
        g = must(malloc(sizeof *g));
        *g = *wanted;
        g->where = wanted->where != NULL ? must(strdup(wanted->where)) : NULL;
        g->encoder = nl_encoder_new(&(nl_encoder_options){.format = g->format});
        g->next = all->groups;
        g->link = &all->groups;
        if (g->next != NULL)
            g->next->link = &g->next;
        all->groups = g;
    }
    g->users++;
    return g;
}

static void leave(group *g)
{
    if (--g->users > 0)
        return;
    *g->link = g->next;
    if (g->next != NULL)
        g->next->link = g->link;
    nl_filter_free(g->filter);
    nl_encoder_free(g->encoder);
    free(g->where);
    free(g);
}

static bool is_meant(const group *g, const nl_record *record)
{
    return (!g->has_since || record->time_ns >= g->since_ns) && nl_filter_matches(g->filter, record);
}

/* ---- queues ---- */

/* Bytes that several queues hold. */
typedef struct shared {
    size_t users;
    char bytes[];
} shared;

static void release(const void *data, size_t size, void *user)
{
    (void)data, (void)size;
    shared *s = user;
    if (--s->users == 0)
        free(s);
}

/* A record of netlogd's own in the format of the stream. */
static void put_own(subscription *s, const nl_record *record)
{
    nl_buffer bytes = {0};
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = s->group->format});
    nl_encoder_put(encoder, record);
    nl_encoder_finish(encoder, &bytes);
    evbuffer_add(s->request->queue, bytes.data, bytes.size);
    nl_encoder_free(encoder);
    nl_buffer_free(&bytes);
}

/* Whether all queues together have room for so much more. */
static bool all_have_room(const subscription *s, size_t size)
{
    return s->all->server->queued + size <= s->all->server->settings->max_memory / 2;
}

/* When the queues of all take too much, one that is empty goes on: each in its turn. */
static bool is_half_empty(const subscription *s)
{
    size_t queued = request_queued(s->request);
    return queued == 0 || (queued <= s->all->server->settings->subscriber_queue / 2 && all_have_room(s, 0));
}

/* Tells it what it has missed. False when its queue is still too full for going on. */
static bool catch_breath(subscription *s)
{
    if (s->missed.count == 0)
        return true;
    if (!is_half_empty(s))
        return false;
    nl_record *record = request_record(s->request, NL_WARNING, "Netlogd.Missed");
    nl_record_add_uint(record, "COUNT", s->missed.count);
    request_add_time(record, "FROM", s->missed.from_ns);
    request_add_time(record, "TO", s->missed.to_ns);
    put_own(s, record);
    s->missed = (span){0};
    return true;
}

static void miss(subscription *s, const span *what)
{
    span_add(&s->missed, what->count, what->from_ns, what->to_ns);
    s->missed_in_all += what->count;
    s->all->counts.missed += what->count;
}

/* One that is alone in its queue may be larger than that. */
static bool has_room(const subscription *s, size_t size)
{
    size_t queued = request_queued(s->request);
    return all_have_room(s, size) && (queued == 0 || queued + size <= s->all->server->settings->subscriber_queue);
}

static void put_chunk(subscription *s, const nl_buffer *chunk, shared *common, const span *what)
{
    if (s->past != NULL || !catch_breath(s) || !has_room(s, chunk->size)) {
        miss(s, what);
        return;
    }
    s->records += what->count;
    s->all->counts.records += what->count;
    if (common == NULL) {
        evbuffer_add(s->request->queue, chunk->data, chunk->size);
    } else {
        common->users++;
        evbuffer_add_reference(s->request->queue, common->bytes, chunk->size, release, common);
    }
}

/* Hands out what the group has gathered. No subscription ends by that: see request_send. */
static void deliver(subscriptions *all, group *g)
{
    if (g->gathered.count == 0)
        return;
    all->chunk.size = 0;
    nl_encoder_finish(g->encoder, &all->chunk);
    span what = g->gathered;
    g->gathered = (span){0};
    shared *common = NULL;
    if (all->chunk.size >= SHARED_SIZE && g->users > 1) {
        common = must(malloc(sizeof *common + all->chunk.size));
        common->users = 1;
        memcpy(common->bytes, all->chunk.data, all->chunk.size);
    }
    for (subscription *s = g->members; s != NULL; s = s->next) {
        put_chunk(s, &all->chunk, common, &what);
        request_send(s->request);
    }
    if (common != NULL)
        release(common->bytes, 0, common);
}

void subscriptions_deliver(subscriptions *all)
{
    all->turn_comes = false;
    for (group *g = all->groups; g != NULL; g = g->next)
        deliver(all, g);
}

static void on_turn(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    subscriptions_deliver(user);
}

/* ---- records ---- */

/* The record in a text format, as the output has it. */
static const nl_buffer *line_of(subscriptions *all, const nl_record *record, nl_format format)
{
    nl_buffer *line = &all->lines[format == NL_FORMAT_BP];
    if (line->size > 0)
        return line;
    if (output_takes_raw(record, format)) {
        nl_buffer_append(line, record->raw.data, record->raw.size);
        nl_buffer_append(line, "\n", 1);
    } else {
        nl_record_encode(record, format, line);
    }
    return line;
}

static void gather(subscriptions *all, nl_encoder *encoder, nl_format format, const nl_record *record)
{
    if (format == NL_FORMAT_NLB) {
        /* The one way to fail, a record larger than a block, is no way for what has come through the decoder. */
        nl_encoder_put(encoder, record);
        return;
    }
    const nl_buffer *line = line_of(all, record, format);
    nl_encoder_put_lines(encoder, line->data, line->size);
}

bool subscriptions_want_records(const subscriptions *all)
{
    return all->groups != NULL;
}

void subscriptions_put(subscriptions *all, const nl_record *record)
{
    if (all->groups == NULL)
        return;
    all->lines[0].size = all->lines[1].size = 0;
    for (group *g = all->groups; g != NULL; g = g->next) {
        if (g->members == NULL || !is_meant(g, record))
            continue;
        gather(all, g->encoder, g->format, record);
        span_add(&g->gathered, 1, record->time_ns, record->time_ns);
        if (nl_encoder_size(g->encoder) >= CHUNK_SIZE)
            deliver(all, g);
        else if (!all->turn_comes)
            event_active(all->turn, EV_TIMEOUT, 0);
        all->turn_comes = all->turn_comes || g->gathered.count > 0;
    }
}

/* ---- the past ---- */

static void end_past(subscription *s)
{
    past_close(s->past);
    nl_encoder_free(s->encoder);
    if (s->turn != NULL)
        event_free(s->turn);
    s->past = NULL;
    s->encoder = NULL;
    s->turn = NULL;
}

static void join_members(subscription *s)
{
    group *g = s->group;
    deliver(s->all, g); /* what the group has gathered is in the file, and is read from there */
    s->live = true;
    s->next = g->members;
    s->link = &g->members;
    if (s->next != NULL)
        s->next->link = &s->next;
    g->members = s;
}

static void go_live(subscription *s)
{
    if (!s->live)
        join_members(s);
    end_past(s);
    catch_breath(s);
}

/* Whether an output has, and will have, all that it reads. */
static bool is_kept(const subscription *s)
{
    const outputs *all = s->all->server->outputs;
    for (size_t i = 0; outputs_get(all, i) != NULL; i++)
        if (past_is_of(s->past, outputs_get(all, i)))
            return true;
    return false;
}

void subscriptions_outputs_changed(subscriptions *all)
{
    for (request *r = all->server->requests; r != NULL; r = r->next) {
        subscription *s = r->subscription;
        if (s != NULL && s->past != NULL && !s->live && !is_kept(s))
            join_members(s);
    }
}

static void send_past(subscription *s)
{
    nl_buffer *chunk = &s->all->chunk;
    chunk->size = 0;
    nl_encoder_finish(s->encoder, chunk);
    evbuffer_add(s->request->queue, chunk->data, chunk->size);
    request_send(s->request);
}

static void put_past(subscription *s, const nl_record *record)
{
    subscriptions *all = s->all;
    if (!is_meant(s->group, record))
        return;
    all->lines[0].size = all->lines[1].size = 0;
    gather(all, s->encoder, s->group->format, record);
    s->records++;
    all->counts.records++;
    if (nl_encoder_size(s->encoder) >= CHUNK_SIZE)
        send_past(s);
}

/* Reads the file on. NL_OK: there is more; NL_AGAIN: not at the moment, all there is was read. */
static nl_status read_slice(subscription *s)
{
    int64_t until_ns = nl_monotonic_ns() + SLICE_NS;
    nl_status status = NL_OK;
    for (unsigned i = 1; status == NL_OK && is_half_empty(s); i++) {
        const nl_record *record;
        status = past_next(s->past, &record);
        if (status == NL_OK && record == NULL)
            break;
        if (status == NL_OK)
            put_past(s, record);
        if (i % CLOCK_RECORDS == 0 && nl_monotonic_ns() >= until_ns)
            break;
    }
    return status;
}

static void on_past(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    subscription *s = user;
    nl_status status = read_slice(s);
    send_past(s);
    if (status == NL_OK) {
        server_take_turn(s->all->server);
        if (is_half_empty(s)) /* otherwise it is called when it has sent some */
            event_active(s->turn, EV_TIMEOUT, 0);
    } else if (status == NL_AGAIN && (s->live || outputs_are_empty(s->all->server->outputs))) {
        go_live(s);
        request_send(s->request);
    } else if (status == NL_AGAIN) {
        bool good = server_flush(s->all->server);
        event_add(s->turn, &(struct timeval){.tv_usec = good ? 0 : BLOCKED_MS * 1000});
    } else {
        nl_record *record = request_record(s->request, NL_ERROR, "Netlogd.Error");
        request_add_text(record, "REASON", failure_text());
        put_own(s, record);
        end_past(s);
        request_end(s->request);
    }
}

static bool catch_up(subscription *s, const char **why)
{
    const output *out = outputs_with_all(s->all->server->outputs);
    s->past = out != NULL ? past_open(out, s->group->since_ns) : NULL;
    *why = out != NULL ? failure_text() : "the past is not kept: no output has all records in files that can be read";
    if (s->past == NULL)
        return false;
    s->encoder = nl_encoder_new(&(nl_encoder_options){.format = s->group->format});
    s->turn = must(event_new(s->all->server->base, -1, 0, on_past, s));
    event_active(s->turn, EV_TIMEOUT, 0);
    return true;
}

/* ---- the verb ---- */

/* A time, or -60: seconds back from now. */
static nl_status parse_since(const char *text, int64_t *time_ns)
{
    if (strlen(text) == 8 && strspn(text, "0123456789") == 8)
        return NL_MALFORMED; /* meant as a day, but to be read as seconds since 1970 */
    if (text[0] != '-')
        return nl_time_parse(text, strlen(text), NL_FRACTION_DECIMAL, time_ns);
    char *end;
    double seconds = strtod(text + 1, &end);
    if (end == text + 1 || *end != '\0' || !(seconds >= 0 && seconds < 1e9))
        return NL_MALFORMED;
    *time_ns = nl_time_now_ns() - (int64_t)(seconds * 1e9);
    return NL_OK;
}

/* Reads what is asked for into wanted. False when r was failed. */
static bool read_wish(request *r, const nl_record *asked, group *wanted, char where[NL_FILTER_SIZE_MAX + 1])
{
    char text[NL_TIME_TEXT_SIZE] = "";
    wanted->format = NL_FORMAT_ULM;
    if (request_value(r, asked, "FORMAT", text, sizeof text) &&
        (wanted->format = nl_format_parse(text)) == NL_FORMAT_UNKNOWN)
        request_fail(r, "FORMAT is none of ulm, bp, nlb");
    if (!r->ending && request_value(r, asked, "SINCE", text, sizeof text)) {
        wanted->has_since = true;
        if (parse_since(text, &wanted->since_ns) != NL_OK)
            request_fail(r, "SINCE is neither a time nor seconds back (-60)");
    }
    if (!r->ending && request_value(r, asked, "WHERE", where, NL_FILTER_SIZE_MAX + 1)) {
        wanted->filter = nl_filter_parse(where);
        wanted->where = where;
        if (wanted->filter == NULL) {
            char reason[400];
            snprintf(reason, sizeof reason, "WHERE: %s", nl_error_message());
            request_fail(r, reason);
        }
    }
    return !r->ending;
}

static void welcome(request *r, const group *g)
{
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Subscribed");
    request_add_text(record, "FORMAT", nl_format_name(g->format));
    request_add_text(record, "WHERE", g->where);
    if (g->has_since)
        request_add_time(record, "SINCE", g->since_ns);
    request_put(r, record);
}

void subscription_start(request *r, const nl_record *asked)
{
    subscriptions *all = r->server->subscriptions;
    group wanted = {0};
    char where[NL_FILTER_SIZE_MAX + 1];
    if (!r->control && !r->server->settings->subscribe) {
        request_fail(r, "subscriptions are not allowed here");
        return;
    }
    if (!r->control && all->counts.subscribers >= r->server->settings->max_subscribers) {
        request_fail(r, "there are as many subscribers as are allowed here");
        return;
    }
    if (!read_wish(r, asked, &wanted, where))
        return;
    subscription *s = must(calloc(1, sizeof *s));
    s->all = all;
    s->request = r;
    s->group = join(all, &wanted);
    s->began_ns = nl_monotonic_ns();
    all->counts.asked++;
    all->counts.subscribers++;
    r->subscription = s;
    const char *why;
    if (wanted.has_since && !catch_up(s, &why)) {
        request_fail(r, why);
        return;
    }
    welcome(r, s->group);
    if (!wanted.has_since)
        go_live(s);
    nl_write(r->server->log, NL_DEBUG, "Netlogd.Subscribed", "PEER=%s WHERE=%s", r->peer,
             wanted.where != NULL ? wanted.where : "");
    request_send(r);
}

void subscription_drained(subscription *s)
{
    if (s->past == NULL && s->missed.count > 0) {
        if (catch_breath(s))
            request_send(s->request);
    } else if (s->turn != NULL && is_half_empty(s) && !event_pending(s->turn, EV_TIMEOUT, NULL)) {
        event_active(s->turn, EV_TIMEOUT, 0);
    }
}

void subscription_free(subscription *s)
{
    if (s == NULL)
        return;
    end_past(s);
    if (s->live) {
        *s->link = s->next;
        if (s->next != NULL)
            s->next->link = s->link;
    }
    s->all->counts.subscribers--;
    leave(s->group);
    free(s);
}

void subscription_describe(const subscription *s, nl_record *record)
{
    request_add_text(record, "PEER", s->request->peer);
    request_add_text(record, "WHERE", s->group->where);
    request_add_text(record, "FORMAT", nl_format_name(s->group->format));
    request_add_text(record, "STATE", s->past == NULL ? "live" : "past");
    nl_record_add_uint(record, "RECORDS", s->records);
    nl_record_add_uint(record, "MISSED", s->missed_in_all);
    nl_record_add_uint(record, "QUEUED", request_queued(s->request));
    int64_t lasted_ms = (nl_monotonic_ns() - s->began_ns) / 1000000;
    nl_record_add_double(record, "SECONDS", (double)lasted_ms / 1e3);
}

/* ---- all of them ---- */

subscriptions *subscriptions_new(server *srv)
{
    subscriptions *all = must(calloc(1, sizeof *all));
    all->server = srv;
    all->turn = must(event_new(srv->base, -1, 0, on_turn, all));
    return all;
}

void subscriptions_free(subscriptions *all)
{
    event_free(all->turn);
    nl_buffer_free(&all->lines[0]);
    nl_buffer_free(&all->lines[1]);
    nl_buffer_free(&all->chunk);
    free(all);
}

subscription_counts subscriptions_count(const subscriptions *all)
{
    subscription_counts counts = all->counts;
    counts.queued = all->server->queued;
    return counts;
}
