#include "config.h"

#include "record/format_info.h"
#include "subscription.h"

#include "backlog.h"
#include "base/monotonic.h"
#include "base/option.h"
#include "filter/filter_cost.h"
#include "base/error.h"
#include "past.h"
#include "peer_address.h"
#include "program/program.h"
#include "record/encoder.h"
#include "record/format.h"
#include "service/allowance.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_SIZE = 64 << 10, /* what is gathered is handed out at that size even within a turn */
    SHARED_SIZE = 4 << 10, /* a larger chunk is shared by the queues, a smaller one copied into them */
    CLOCK_RECORDS = 64,    /* at most, between looks at the clock */
    CLOCK_STEPS = 1 << 17, /* likewise, of an expression */
    BLOCKED_MS = 250,      /* the output cannot be written: the past can't be joined with the present before */
    GROUP_STEPS = 50,      /* about what a group costs for a record, besides its expression */
    CHEAP_STEPS = 2000,    /* of all groups for a record, up to which they are matched with every record */
    COSTLY_STEPS = 1000,   /* of an expression for a record, on average, from which it may have to go */
    AT_ONCE_NS = 2000000,  /* work that is done at once at most, while the backlog is full, */
    AT_ONCE_SAVED = 10,    /* so many times when there was none before */
};

/*
 * The part of the time in which work may be done at once, the most by which subscribers delay those who log: while all
 * groups together cost little for a record, and otherwise.
 */
#define AT_ONCE_SHARE_CHEAP 0.9
#define AT_ONCE_SHARE (1 / 3.0)

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
    nl_encoder *encoder;
    span gathered;          /* by it, */
    uint64_t gathered_from; /* from that record of the backlog on */
    uint64_t position;      /* the record of the backlog that is to be matched next */
    uint64_t steps, looked; /* what the expression cost so far, and for how many records */
    subscription *members;
    size_t users;   /* members, and those who will be once they have caught up */
    size_t joining; /* members that joined at a record that is not matched yet, perhaps */
} group;

struct subscription {
    subscription *next, **link; /* in the group, when live */
    subscriptions *all;
    request *request;
    group *group;
    bool live;
    uint64_t joins_at; /* the record of the backlog that is its first */
    int64_t began_ns;
    uint64_t records;
    span missed; /* and not told yet */
    uint64_t missed_in_all;
    /* while it catches up. If it is live nevertheless, the file has no more than was there when it became so, and what
     * comes meanwhile is missed: */
    past *past;
    nl_encoder *encoder;
    background_task catching_up;
    struct event *retry;
};

struct subscriptions {
    server *server;
    group *groups;
    group *next; /* whose turn it is to be matched; NULL: the first */
    backlog *backlog;
    background_task matching;
    allowance at_once; /* nanoseconds of work that may be done at once */
    nl_buffer line;    /* of a record of the past */
    nl_buffer chunk;
    subscription_counts counts;
};

static void span_add(span *s, uint64_t count, int64_t from_ns, int64_t to_ns)
{
    s->from_ns = s->count == 0 || from_ns < s->from_ns ? from_ns : s->from_ns;
    s->to_ns = s->count == 0 || to_ns > s->to_ns ? to_ns : s->to_ns;
    s->count += count;
}

/* ---- groups ---- */

static bool subscription_is_same(const group *g, const group *wanted)
{
    return g->format == wanted->format && g->has_since == wanted->has_since && g->since_ns == wanted->since_ns &&
           (g->where == NULL || wanted->where == NULL ? g->where == wanted->where
                                                      : strcmp(g->where, wanted->where) == 0);
}

/* The group that is as wanted. The filter is taken over; where is copied. */
static group *subscription_join(subscriptions *all, const group *wanted)
{
    group *g = all->groups;
    while (g != NULL && !subscription_is_same(g, wanted))
        g = g->next;
    if (g != NULL) {
        nl_filter_free(wanted->filter);
    } else {
        g = nl_memory_check(malloc(sizeof *g));
        *g = *wanted;
        g->where = wanted->where != NULL ? nl_memory_check(strdup(wanted->where)) : NULL;
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

static void leave(subscriptions *all, group *g)
{
    if (--g->users > 0)
        return;
    if (all->next == g)
        all->next = g->next;
    *g->link = g->next;
    if (g->next != NULL)
        g->next->link = g->link;
    nl_filter_free(g->filter);
    nl_encoder_free(g->encoder);
    free(g->where);
    free(g);
}

/* Sets *meant to whether a record is for the group. NL_FAILED: that would cost too much. */
static nl_status match(group *g, const nl_record *record, bool *meant)
{
    uint64_t steps = NL_FILTER_STEPS_MAX;
    *meant = !g->has_since || record->time_ns >= g->since_ns;
    nl_status status = *meant ? nl_filter_match(g->filter, record, &steps, meant) : NL_OK;
    g->steps += NL_FILTER_STEPS_MAX - steps;
    g->looked++;
    return status;
}

static bool is_costly(const group *g)
{
    return g->steps / COSTLY_STEPS > g->looked;
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
    bool fits = s->past == NULL && catch_breath(s) && has_room(s, chunk->size);
    if (!fits && s->past == NULL && !request_is_held_up(s->request)) {
        request_send(s->request);
        fits = catch_breath(s) && has_room(s, chunk->size);
    }
    if (!fits) {
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
    uint64_t from = g->gathered_from;
    g->gathered_from = g->position;
    if (g->gathered.count == 0)
        return;
    all->chunk.size = 0;
    nl_encoder_finish(g->encoder, &all->chunk);
    span what = g->gathered;
    g->gathered = (span){0};
    shared *common = NULL;
    if (all->chunk.size >= SHARED_SIZE && g->users > 1) {
        common = nl_memory_check(malloc(sizeof *common + all->chunk.size));
        common->users = 1;
        memcpy(common->bytes, all->chunk.data, all->chunk.size);
    }
    for (subscription *s = g->members; s != NULL; s = s->next) {
        if (s->joins_at > from)
            continue;
        put_chunk(s, &all->chunk, common, &what);
        request_send_later(s->request);
    }
    if (common != NULL)
        release(common->bytes, 0, common);
}

/* ---- the end of one who costs too much ---- */

static void end_past(subscription *s);

static void leave_members(subscription *s)
{
    if (!s->live)
        return;
    *s->link = s->next;
    if (s->next != NULL)
        s->next->link = s->link;
    s->live = false;
}

/* The last record of its stream says why. */
static void disconnect(subscription *s, const char *reason)
{
    server *srv = s->all->server;
    nl_record *record = request_record(s->request, NL_ERROR, "Netlogd.Error");
    request_add_text(record, "REASON", reason);
    put_own(s, record);
    nl_write(srv->log, NL_WARNING, "Netlogd.RequestFailed", "PEER=%s REASON=%s", s->request->peer, reason);
    end_past(s);
    leave_members(s);
    request_end(s->request);
}

#define COSTLY_REMEDY "subscribe with a simpler WHERE, or without one, and choose records with nlsort --where"

static void disconnect_for_cost(subscription *s, bool on_average)
{
    char reason[300];
    if (on_average)
        snprintf(reason, sizeof reason,
                 "WHERE costs %" PRIu64 " steps a record on average, more than the %d that netlogd has time for now; "
                 "%s",
                 s->group->steps / s->group->looked, COSTLY_STEPS, COSTLY_REMEDY);
    else
        snprintf(reason, sizeof reason, "WHERE costs more than %" PRIu64 " steps for one record; %s",
                 NL_FILTER_STEPS_MAX, COSTLY_REMEDY);
    s->all->counts.costly++;
    disconnect(s, reason);
}

static void disconnect_members(subscriptions *all, group *g, bool on_average)
{
    deliver(all, g);
    while (g->members != NULL)
        disconnect_for_cost(g->members, on_average);
}

/* ---- records ---- */

static void gather(nl_encoder *encoder, const nl_record *record, nl_string line)
{
    /* The one way to fail, a record larger than a block, is no way for what has come through the decoder. */
    if (line.data == NULL)
        nl_encoder_put(encoder, record);
    else
        nl_encoder_put_lines(encoder, line.data, line.size);
}

bool subscriptions_want_records(const subscriptions *all)
{
    return all->groups != NULL;
}

/* The number before which the group is matched in one go: where the next member joins at the latest. */
static uint64_t next_join(group *g, uint64_t end)
{
    size_t joining = 0;
    for (const subscription *s = g->joining > 0 ? g->members : NULL; s != NULL; s = s->next) {
        joining += s->joins_at > g->position;
        end = s->joins_at > g->position && s->joins_at < end ? s->joins_at : end;
    }
    g->joining = joining;
    return end;
}

/* Matches some records of the backlog, if there are any that the group has not been matched with. */
static bool match_some(subscriptions *all, group *g)
{
    uint64_t end = backlog_end(all->backlog), steps = g->steps;
    if (g->members == NULL || g->position == end)
        return false;
    end = next_join(g, end);
    bool joins = end < backlog_end(all->backlog);
    for (int i = 0; i < CLOCK_RECORDS && g->position < end && g->steps - steps < CLOCK_STEPS; i++) {
        uint64_t number = g->position;
        const nl_record *record = backlog_record(all->backlog, number);
        bool meant;
        if (match(g, record, &meant) != NL_OK) {
            disconnect_members(all, g, false);
            return true;
        }
        g->position++;
        if (!meant)
            continue;
        nl_string line = {0};
        if (g->format != NL_FORMAT_NLB)
            line = backlog_line(all->backlog, number, g->format);
        gather(g->encoder, record, line);
        span_add(&g->gathered, 1, record->time_ns, record->time_ns);
        if (nl_encoder_size(g->encoder) >= CHUNK_SIZE)
            deliver(all, g);
    }
    if (joins && g->position == end)
        deliver(all, g);
    return true;
}

/* Drops the records that all groups were matched with. */
static void drop_matched(subscriptions *all)
{
    uint64_t matched = backlog_end(all->backlog);
    for (const group *g = all->groups; g != NULL; g = g->next)
        if (g->members != NULL && g->position < matched)
            matched = g->position;
    backlog_drop(all->backlog, matched);
}

/* Matches records, a group after the other, until the time has come. Whether none is left. */
static bool match_until(subscriptions *all, int64_t until_ns)
{
    bool left = false, done = false;
    for (group *start = all->next; !done; done = done || nl_monotonic_ns() >= until_ns) {
        group *g = all->next != NULL ? all->next : all->groups;
        if (g == NULL)
            break;
        all->next = g->next;
        left = match_some(all, g) || left;
        if (all->next == start) { /* each had its turn */
            done = !left;
            left = false;
        }
    }
    for (group *g = all->groups; g != NULL; g = g->next)
        deliver(all, g);
    drop_matched(all);
    return backlog_first(all->backlog) == backlog_end(all->backlog);
}

static void run_matching(void *user)
{
    subscriptions *all = user;
    if (!match_until(all, nl_monotonic_ns() + BACKGROUND_SLICE_NS))
        background_add(all->server->background, &all->matching);
}

void subscriptions_deliver(subscriptions *all, int64_t until_ns)
{
    match_until(all, until_ns);
    for (request *r = all->server->requests; r != NULL; r = r->next)
        if (r->subscription != NULL)
            request_send(r);
}

/* Whether all groups together cost little for a record. */
static bool are_cheap(const subscriptions *all)
{
    uint64_t steps = 0;
    for (const group *g = all->groups; g != NULL && steps <= CHEAP_STEPS; g = g->next)
        if (g->members != NULL)
            steps += GROUP_STEPS + g->steps / (g->looked + 1);
    return steps <= CHEAP_STEPS;
}

/* Matches records at once, for a part of the time at most, and drops those that no group needs any more. */
static void match_at_once(subscriptions *all)
{
    int64_t began_ns = nl_monotonic_ns();
    double share = are_cheap(all) ? AT_ONCE_SHARE_CHEAP : AT_ONCE_SHARE;
    allowance_spend(&all->at_once, share * 1e9, began_ns, 0);
    double saved = (double)AT_ONCE_SAVED * AT_ONCE_NS;
    all->at_once.left = all->at_once.left < saved ? all->at_once.left : saved;
    if (all->at_once.left <= 0)
        return;
    match_until(all, began_ns + AT_ONCE_NS);
    int64_t ended_ns = nl_monotonic_ns();
    allowance_spend(&all->at_once, share * 1e9, ended_ns, (uint64_t)(ended_ns - began_ns));
}

/* Disconnects those who cost too much and for whom records are left to be matched. Whether there were any. */
static bool disconnect_costly(subscriptions *all)
{
    bool any = false;
    for (group *g = all->groups; g != NULL; g = g->next)
        if (g->members != NULL && g->position < backlog_end(all->backlog) && is_costly(g)) {
            disconnect_members(all, g, true);
            any = true;
        }
    return any;
}

/* The records [from, before) of the backlog. */
static span span_of(const subscriptions *all, uint64_t from, uint64_t before)
{
    span what = {0};
    for (uint64_t number = from; number < before; number++) {
        int64_t time_ns = backlog_record(all->backlog, number)->time_ns;
        span_add(&what, 1, time_ns, time_ns);
    }
    return what;
}

/*
 * The members of all groups that were not matched with the records up to before miss them. Most groups have come to the
 * same record, so that the records are looked at once.
 */
static void pass_over(subscriptions *all, uint64_t before)
{
    span what = {0};
    uint64_t from = UINT64_MAX;
    for (group *g = all->groups; g != NULL; g = g->next) {
        if (g->members == NULL || g->position >= before)
            continue;
        deliver(all, g);
        if (g->position != from)
            what = span_of(all, g->position, before);
        from = g->position;
        g->position = g->gathered_from = before;
        for (subscription *s = g->members; s != NULL; s = s->next)
            if (s->joins_at < before)
                miss(s, &what);
    }
}

/* Makes place in the backlog, by dropping records that were not matched only when nothing else helps. */
static void make_place(subscriptions *all)
{
    match_at_once(all);
    if (!backlog_is_full(all->backlog))
        return;
    /* A group that had no turn yet is not known to be costly. */
    while (backlog_is_full(all->backlog) && disconnect_costly(all))
        match_at_once(all);
    if (!backlog_is_full(all->backlog))
        return;
    uint64_t first = backlog_first(all->backlog), before = first + (backlog_end(all->backlog) - first + 3) / 4;
    pass_over(all, before);
    drop_matched(all);
}

static bool somebody_is_live(const subscriptions *all)
{
    const group *g = all->groups;
    while (g != NULL && g->members == NULL)
        g = g->next;
    return g != NULL;
}

static __attribute__((noinline)) void put_in_backlog(subscriptions *all, const nl_record *record)
{
    if (!somebody_is_live(all))
        return;
    while (backlog_is_full(all->backlog) && somebody_is_live(all))
        make_place(all);
    if (backlog_is_full(all->backlog))
        backlog_drop(all->backlog, backlog_end(all->backlog));
    backlog_put(all->backlog, record);
    background_add(all->server->background, &all->matching);
}

void subscriptions_put(subscriptions *all, const nl_record *record)
{
    if (all->groups != NULL)
        put_in_backlog(all, record);
}

/* ---- the past ---- */

static void end_past(subscription *s)
{
    past_close(s->past);
    nl_encoder_free(s->encoder);
    background_remove(s->all->server->background, &s->catching_up);
    if (s->retry != NULL)
        event_free(s->retry);
    s->past = NULL;
    s->encoder = NULL;
    s->retry = NULL;
}

static void join_members(subscription *s)
{
    group *g = s->group;
    uint64_t end = backlog_end(s->all->backlog);
    if (g->members == NULL)
        g->position = g->gathered_from = end;
    deliver(s->all, g);
    s->joins_at = end; /* what is in the backlog is in the file, and was read from there */
    g->joining += g->position < end;
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

/* NL_FAILED: the expression costs too much for the record. */
static nl_status put_past(subscription *s, const nl_record *record)
{
    subscriptions *all = s->all;
    bool meant;
    if (match(s->group, record, &meant) != NL_OK)
        return NL_FAILED;
    if (!meant)
        return NL_OK;
    all->line.size = 0;
    if (s->group->format != NL_FORMAT_NLB)
        output_put_line(record, s->group->format, &all->line);
    gather(s->encoder, record, (nl_string){all->line.size > 0 ? all->line.data : NULL, all->line.size});
    s->records++;
    all->counts.records++;
    if (nl_encoder_size(s->encoder) >= CHUNK_SIZE)
        send_past(s);
    return NL_OK;
}

typedef enum slice { SLICE_MORE, SLICE_ALL_READ, SLICE_FAILED, SLICE_COSTLY } slice;

/* Reads the file on. SLICE_ALL_READ: there is no more at the moment. */
static slice read_slice(subscription *s)
{
    int64_t until_ns = nl_monotonic_ns() + BACKGROUND_SLICE_NS;
    uint64_t steps = s->group->steps;
    for (unsigned i = 1; is_half_empty(s); i++) {
        const nl_record *record;
        nl_status status = past_next(s->past, &record);
        if (status != NL_OK)
            return status == NL_AGAIN ? SLICE_ALL_READ : SLICE_FAILED;
        if (record == NULL)
            break;
        if (put_past(s, record) != NL_OK)
            return SLICE_COSTLY;
        bool look = i % CLOCK_RECORDS == 0 || s->group->steps - steps >= CLOCK_STEPS;
        steps = look ? s->group->steps : steps;
        if (look && nl_monotonic_ns() >= until_ns)
            break;
    }
    return SLICE_MORE;
}

/* All that was written was read: goes on when all that was taken is written. */
static void join_present(subscription *s)
{
    server *srv = s->all->server;
    if (s->live || outputs_are_empty(srv->outputs)) {
        go_live(s);
        request_send_later(s->request);
    } else if (server_flush(srv)) {
        background_add(srv->background, &s->catching_up);
    } else {
        event_add(s->retry, &(struct timeval){.tv_usec = BLOCKED_MS * 1000});
    }
}

static void run_catching_up(void *user)
{
    subscription *s = user;
    slice result = read_slice(s);
    send_past(s);
    switch (result) {
    case SLICE_MORE:
        if (is_half_empty(s)) /* otherwise it goes on when it has sent some */
            background_add(s->all->server->background, &s->catching_up);
        break;
    case SLICE_ALL_READ:
        join_present(s);
        break;
    case SLICE_FAILED:
        disconnect(s, nl_error_message());
        break;
    case SLICE_COSTLY:
        disconnect_for_cost(s, false);
        break;
    }
}

static void on_retry(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    subscription *s = user;
    background_add(s->all->server->background, &s->catching_up);
}

static bool catch_up(subscription *s, const char **reason)
{
    const output *out = outputs_with_all(s->all->server->outputs);
    s->past = out != NULL ? past_open(out, s->group->since_ns) : NULL;
    *reason =
        out != NULL ? nl_error_message() : "the past is not kept: no output has all records in files that can be read";
    if (s->past == NULL)
        return false;
    s->encoder = nl_encoder_new(&(nl_encoder_options){.format = s->group->format});
    s->retry = nl_memory_check(event_new(s->all->server->base, -1, 0, on_retry, s));
    background_add(s->all->server->background, &s->catching_up);
    return true;
}

/* ---- the verb ---- */

static void fail_format(request *r)
{
    char message[150];
    snprintf(message, sizeof message, "FORMAT is not one of %s", nl_format_choices() + 1);
    request_fail(r, message);
}

/* Reads what is asked for into wanted. False when r was failed. */
static bool read_wish(request *r, const nl_record *asked, group *wanted, char where[NL_FILTER_SIZE_MAX + 1])
{
    char text[NL_TIME_TEXT_SIZE] = "";
    wanted->format = NL_FORMAT_ULM;
    if (request_value(r, asked, "FORMAT", text, sizeof text) &&
        (wanted->format = nl_format_parse(text)) == NL_FORMAT_UNKNOWN)
        fail_format(r);
    if (!r->ending && request_value(r, asked, "SINCE", text, sizeof text)) {
        wanted->has_since = true;
        if (!nl_time_parse_relative(text, &wanted->since_ns))
            request_fail(r, "SINCE is neither a time nor a duration back from now (-10m)");
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

static bool takes_place(const request *r)
{
    return r->subscription != NULL && !r->control && !r->ending;
}

/*
 * Returns the subscription that has to end for one of r when there are too many: of the address that has the most, if
 * that has at least two more than the address of r, the one that was sent nothing for the longest. Otherwise NULL.
 */
static subscription *find_displaced(const request *r)
{
    enum { BUCKETS = 1024 };
    unsigned counts[BUCKETS] = {0};
    size_t own = peer_address_bucket(r->peer, BUCKETS), largest = own;
    for (const request *q = r->server->requests; q != NULL; q = q->next) {
        size_t bucket = peer_address_bucket(q->peer, BUCKETS);
        if (takes_place(q) && ++counts[bucket] > counts[largest])
            largest = bucket;
    }
    if (counts[largest] < counts[own] + 2)
        return NULL;
    const request *silent = NULL;
    for (const request *q = r->server->requests; q != NULL; q = q->next)
        if (takes_place(q) && peer_address_bucket(q->peer, BUCKETS) == largest &&
            (silent == NULL || q->entry.heard_ns < silent->entry.heard_ns))
            silent = q;
    return silent != NULL ? silent->subscription : NULL;
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
    bool full = !r->control && all->counts.subscribers >= r->server->settings->max_subscribers;
    subscription *displaced = full ? find_displaced(r) : NULL;
    if (full && displaced == NULL) {
        request_fail(r, "there are as many subscribers as are allowed here");
        return;
    }
    if (!read_wish(r, asked, &wanted, where))
        return;
    if (displaced != NULL)
        disconnect(displaced, "there are too many subscribers, most of them at this address");
    subscription *s = nl_memory_check(calloc(1, sizeof *s));
    s->all = all;
    s->request = r;
    s->catching_up = (background_task){.run = run_catching_up, .user = s};
    s->group = subscription_join(all, &wanted);
    s->began_ns = nl_monotonic_ns();
    all->counts.asked++;
    all->counts.subscribers++;
    r->subscription = s;
    const char *reason;
    if (wanted.has_since && !catch_up(s, &reason)) {
        request_fail(r, reason);
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
    if (s->request->ending)
        return;
    if (s->past == NULL && s->missed.count > 0) {
        if (catch_breath(s))
            request_send(s->request);
    } else if (s->past != NULL && is_half_empty(s) && !event_pending(s->retry, EV_TIMEOUT, NULL)) {
        background_add(s->all->server->background, &s->catching_up);
    }
}

void subscription_free(subscription *s)
{
    if (s == NULL)
        return;
    end_past(s);
    leave_members(s);
    s->all->counts.subscribers--;
    leave(s->all, s->group);
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
    subscriptions *all = nl_memory_check(calloc(1, sizeof *all));
    all->server = srv;
    all->backlog = backlog_new();
    all->matching = (background_task){.run = run_matching, .user = all};
    all->at_once = allowance_new((double)AT_ONCE_SAVED * AT_ONCE_NS, nl_monotonic_ns());
    return all;
}

void subscriptions_free(subscriptions *all)
{
    background_remove(all->server->background, &all->matching);
    backlog_free(all->backlog);
    nl_buffer_free(&all->line);
    nl_buffer_free(&all->chunk);
    free(all);
}

subscription_counts subscriptions_count(const subscriptions *all)
{
    subscription_counts counts = all->counts;
    counts.queued = all->server->queued;
    return counts;
}
