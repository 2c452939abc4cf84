#include "config.h"

#include "subscription.h"

#include "backlog.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/option.h"
#include "filter/filter.h"
#include "flush.h"
#include "output/outputs.h"
#include "past.h"
#include "peer_address.h"
#include "program/program.h"
#include "record/encoder.h"
#include "record/format.h"
#include "server.h"
#include "service/allowance.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_SIZE = 64 << 10, /* number of gathered bytes after which a group's records are delivered */
    SCARCE_SIZE = 4 << 10, /* size of a chunk of stored records while all queues together use too much memory */
    SHARED_SIZE = 4 << 10, /* the queues share larger chunks, and copy smaller chunks */
    CLOCK_RECORDS = 64,    /* maximum number of records between two checks of the clock */
    CLOCK_STEPS = 1 << 17, /* maximum number of steps of an expression between two checks of the clock */
    BLOCKED_MS = 250,      /* time between two attempts to flush a blocked output */
    GROUP_STEPS = 50,      /* approximate number of steps for a group and a record, not counting the expression */
    CHEAP_STEPS = 2000,    /* groups are cheap if all groups together need at most this many steps for a record */
    COSTLY_STEPS = 1000,   /* an expression is costly if it needs more steps than this for a record, on average */
    AT_ONCE_NS = 2000000,  /* maximum processor time of work that is done at once while the backlog is full */
    AT_ONCE_SAVED = 10,    /* maximum allowance for such work, as a multiple of AT_ONCE_NS */
};

/*
 * Maximum shares of the time for work that is done at once. The first share applies if all groups are cheap, and the
 * second share otherwise.
 */
#define AT_ONCE_SHARE_CHEAP 0.9
#define AT_ONCE_SHARE (1 / 3.0)

/* A number of records, with their earliest and latest times. */
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
    span gathered;          /* the records in the encoder */
    uint64_t gathered_from; /* number of the backlog's record at which gathering began */
    uint64_t position;      /* number of the next record in the backlog to match */
    uint64_t steps, looked; /* total steps of the expression, and number of records for which it was evaluated */
    subscription *members;
    size_t users;   /* number of members plus number of subscriptions that are reading stored records */
    size_t joining; /* maximum number of members that joined at a record that has not been matched yet */
} group;

struct subscription {
    subscription *all_next, **all_link; /* in the list of all subscriptions */
    subscription *next, **link;         /* in the group's list, once the subscription is live */
    request *request;
    group *group;
    bool live;
    uint64_t joins_at; /* number of the subscription's first record in the backlog */
    int64_t began_ns;
    uint64_t records;
    span missed; /* missed records that have not been reported yet */
    uint64_t missed_in_all;
    /*
     * Set while the subscription reads stored records. If the subscription is already live, the file ends where the
     * subscription became live, and the subscription misses records until it has read the file.
     */
    past *past;
    background_task catching_up;
    struct event *retry;
};

static subscription *subscriptions;
static group *groups;
static group *next_group; /* the next group to match; NULL: begin with the first group */
static background_task matching;
static allowance at_once; /* allowance of processor time in ns for work that is done at once */
static nl_buffer past_line;
static nl_buffer chunk;
static subscription_counts counts;

static void span_add(span *s, uint64_t count, int64_t from_ns, int64_t to_ns)
{
    s->from_ns = s->count == 0 || from_ns < s->from_ns ? from_ns : s->from_ns;
    s->to_ns = s->count == 0 || to_ns > s->to_ns ? to_ns : s->to_ns;
    s->count += count;
}

/* ---- groups ---- */

static bool group_is_same(const group *g, const group *wanted)
{
    return g->format == wanted->format && g->has_since == wanted->has_since && g->since_ns == wanted->since_ns &&
           (g->where == NULL || wanted->where == NULL ? g->where == wanted->where
                                                      : strcmp(g->where, wanted->where) == 0);
}

/*
 * Returns the group that equals `wanted`. Creates the group if it does not exist. Takes ownership of the filter, and
 * copies `where`.
 */
static group *group_join(const group *wanted)
{
    group *g = groups;
    while (g != NULL && !group_is_same(g, wanted))
        g = g->next;
    if (g != NULL) {
        nl_filter_free(wanted->filter);
    } else {
        g = nl_memory_check(malloc(sizeof *g));
        *g = *wanted;
        g->where = wanted->where != NULL ? program_copy(wanted->where) : NULL;
        g->encoder = nl_encoder_new(&(nl_encoder_options){.format = g->format});
        g->next = groups;
        g->link = &groups;
        if (g->next != NULL)
            g->next->link = &g->next;
        groups = g;
    }
    g->users++;
    return g;
}

static void group_leave(group *g)
{
    if (--g->users > 0)
        return;
    if (next_group == g)
        next_group = g->next;
    *g->link = g->next;
    if (g->next != NULL)
        g->next->link = g->link;
    nl_filter_free(g->filter);
    nl_encoder_free(g->encoder);
    free(g->where);
    free(g);
}

/*
 * Sets *meant to whether the group receives the record. Returns NL_FAILED if the evaluation would take more than
 * NL_FILTER_STEPS_MAX steps.
 */
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

/* Bytes that several queues share. */
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

/* Appends one of netlogd's own records to the queue, in the format of the stream. */
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

static bool all_queues_fit(size_t size)
{
    return requests_get_queued() + size <= server_settings()->max_memory / 2;
}

/*
 * Returns whether the queue is at least half empty. If all queues together use too much memory, the queue must be
 * completely empty.
 */
static bool is_half_empty(const subscription *s)
{
    size_t queued = request_queued(s->request);
    return queued == 0 || (queued <= server_settings()->subscriber_queue / 2 && all_queues_fit(0));
}

/* Reports missed records to the subscriber. Returns false if its queue is too full. */
static bool report_missed(subscription *s)
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
    counts.missed += what->count;
}

/* Returns whether a chunk fits into the queue. A single chunk may be larger than the queue. */
static bool queue_fits(const subscription *s, size_t size)
{
    size_t queued = request_queued(s->request);
    return all_queues_fit(size) && (queued == 0 || queued + size <= server_settings()->subscriber_queue);
}

static void put_chunk(subscription *s, const nl_buffer *bytes, shared *common, const span *what)
{
    bool fits = s->past == NULL && report_missed(s) && queue_fits(s, bytes->size);
    if (!fits && s->past == NULL && !request_is_held_up(s->request)) {
        request_send(s->request);
        fits = report_missed(s) && queue_fits(s, bytes->size);
    }
    if (!fits) {
        miss(s, what);
        return;
    }
    s->records += what->count;
    counts.records += what->count;
    if (common == NULL) {
        evbuffer_add(s->request->queue, bytes->data, bytes->size);
    } else {
        common->users++;
        evbuffer_add_reference(s->request->queue, common->bytes, bytes->size, release, common);
    }
}

/*
 * Moves the encoder's records to `chunk`. The encoder receives the previous buffer of `chunk`. There may be as many
 * encoders as subscriptions, so this function frees a large buffer.
 */
static void finish_chunk(nl_encoder *encoder)
{
    if (chunk.capacity > SHARED_SIZE)
        nl_buffer_free(&chunk);
    chunk.size = 0;
    nl_encoder_finish(encoder, &chunk);
}

/* Adds the gathered records of the group to its members' queues. Frees no subscription. */
static void deliver(group *g)
{
    uint64_t from = g->gathered_from;
    g->gathered_from = g->position;
    if (g->gathered.count == 0)
        return;
    finish_chunk(g->encoder);
    span what = g->gathered;
    g->gathered = (span){0};
    shared *common = NULL;
    if (chunk.size >= SHARED_SIZE && g->users > 1) {
        common = nl_memory_check(malloc(sizeof *common + chunk.size));
        common->users = 1;
        memcpy(common->bytes, chunk.data, chunk.size);
    }
    for (subscription *s = g->members; s != NULL; s = s->next) {
        if (s->joins_at > from)
            continue;
        put_chunk(s, &chunk, common, &what);
        request_send_later(s->request);
    }
    if (common != NULL)
        release(common->bytes, 0, common);
}

/* ---- disconnecting ---- */

static void end_past(subscription *s)
{
    past_close(s->past);
    background_remove(&s->catching_up);
    if (s->retry != NULL)
        event_free(s->retry);
    s->past = NULL;
    s->retry = NULL;
}

static void leave_members(subscription *s)
{
    if (!s->live)
        return;
    *s->link = s->next;
    if (s->next != NULL)
        s->next->link = s->link;
    s->live = false;
}

/* Ends the stream with a record that contains the current error. */
static void disconnect(subscription *s)
{
    char reason[NL_ERROR_MESSAGE_SIZE];
    snprintf(reason, sizeof reason, "%s", nl_error_message());
    nl_record *record = request_record(s->request, NL_ERROR, "Netlogd.Error");
    request_add_text(record, "REASON", reason);
    put_own(s, record);
    nl_write(server_log(), NL_WARNING, "Netlogd.RequestFailed", "PEER=%s REASON=%s", s->request->peer, reason);
    end_past(s);
    leave_members(s);
    request_end(s->request);
}

#define COSTLY_REMEDY                                                                                                  \
    "subscribe with a simpler WHERE expression, or without WHERE, and select records with nlsort --where"

static void disconnect_for_cost(subscription *s, bool on_average)
{
    const group *g = s->group;
    if (on_average)
        nl_error_set(NL_ERROR_LIMIT,
                     "WHERE costs %" PRIu64
                     " steps per record on average, but netlogd has time for only %d now; " COSTLY_REMEDY,
                     g->steps / g->looked, COSTLY_STEPS);
    else
        nl_error_set(NL_ERROR_LIMIT, "WHERE costs more than %" PRIu64 " steps for one record; " COSTLY_REMEDY,
                     NL_FILTER_STEPS_MAX);
    counts.costly++;
    disconnect(s);
}

static void disconnect_members(group *g, bool on_average)
{
    deliver(g);
    while (g->members != NULL)
        disconnect_for_cost(g->members, on_average);
}

/* ---- records ---- */

static void gather(nl_encoder *encoder, const nl_record *record, nl_string line)
{
    /* This fails only if a record is larger than a block. Decoders do not return such records. */
    if (line.data == NULL)
        nl_encoder_put(encoder, record);
    else
        nl_encoder_put_lines(encoder, line.data, line.size);
}

bool subscriptions_want_records(void)
{
    return groups != NULL;
}

/*
 * Returns the number of the first record at which a member joins the group, at most `end`. The group can be matched up
 * to that record in one step.
 */
static uint64_t find_next_join(group *g, uint64_t end)
{
    size_t joining = 0;
    for (const subscription *s = g->joining > 0 ? g->members : NULL; s != NULL; s = s->next) {
        joining += s->joins_at > g->position;
        end = s->joins_at > g->position && s->joins_at < end ? s->joins_at : end;
    }
    g->joining = joining;
    return end;
}

/* Matches some records of the backlog with the group. Returns false if the group had no records left to match. */
static bool match_some(group *g)
{
    uint64_t end = backlog_end(), steps = g->steps;
    if (g->members == NULL || g->position == end)
        return false;
    end = find_next_join(g, end);
    bool joins = end < backlog_end();
    for (int i = 0; i < CLOCK_RECORDS && g->position < end && g->steps - steps < CLOCK_STEPS; i++) {
        uint64_t number = g->position;
        const nl_record *record = backlog_record(number);
        bool meant;
        if (match(g, record, &meant) != NL_OK) {
            disconnect_members(g, false);
            return true;
        }
        g->position++;
        if (!meant)
            continue;
        gather(g->encoder, record, g->format != NL_FORMAT_NLB ? backlog_line(number, g->format) : (nl_string){0});
        span_add(&g->gathered, 1, record->time_ns, record->time_ns);
        if (nl_encoder_size(g->encoder) >= CHUNK_SIZE)
            deliver(g);
    }
    if (joins && g->position == end)
        deliver(g);
    return true;
}

static void drop_matched(void)
{
    uint64_t matched = backlog_end();
    for (const group *g = groups; g != NULL; g = g->next)
        if (g->members != NULL && g->position < matched)
            matched = g->position;
    backlog_drop(matched);
}

/*
 * Matches records with one group after another until `clock` returns at least until_ns. Returns whether all records
 * have been matched.
 */
static bool match_until(int64_t (*clock)(void), int64_t until_ns)
{
    bool left = false, done = false;
    for (group *start = next_group; !done; done = done || clock() >= until_ns) {
        group *g = next_group != NULL ? next_group : groups;
        if (g == NULL)
            break;
        next_group = g->next;
        left = match_some(g) || left;
        if (next_group == start) { /* every group has had its turn */
            done = !left;
            left = false;
        }
    }
    for (group *g = groups; g != NULL; g = g->next)
        deliver(g);
    drop_matched();
    return backlog_first() == backlog_end();
}

static void run_matching(void *user)
{
    (void)user;
    if (!match_until(nl_monotonic_ns, nl_monotonic_ns() + BACKGROUND_SLICE_NS))
        background_add(&matching);
}

void subscriptions_deliver(int64_t until_ns)
{
    match_until(nl_monotonic_ns, until_ns);
    for (subscription *s = subscriptions; s != NULL; s = s->all_next)
        request_send(s->request);
}

static bool are_cheap(void)
{
    uint64_t steps = 0;
    for (const group *g = groups; g != NULL && steps <= CHEAP_STEPS; g = g->next)
        if (g->members != NULL)
            steps += GROUP_STEPS + g->steps / (g->looked + 1);
    return steps <= CHEAP_STEPS;
}

/*
 * Matches records at once, for a limited share of the processor time that netlogd uses, and drops the records that were
 * matched with all groups. If the elapsed time were the limit, subscribers would miss records when the kernel runs
 * other programs.
 */
static void match_at_once(void)
{
    int64_t began_ns = nl_thread_cpu_ns();
    double share = are_cheap() ? AT_ONCE_SHARE_CHEAP : AT_ONCE_SHARE, saved = (double)AT_ONCE_SAVED * AT_ONCE_NS;
    allowance_spend(&at_once, share * 1e9, began_ns, 0);
    at_once.left = at_once.left < saved ? at_once.left : saved;
    if (at_once.left <= 0)
        return;
    match_until(nl_thread_cpu_ns, began_ns + AT_ONCE_NS);
    int64_t ended_ns = nl_thread_cpu_ns();
    allowance_spend(&at_once, share * 1e9, ended_ns, (uint64_t)(ended_ns - began_ns));
}

/* Disconnects costly subscribers that have not received all records. Returns whether there were any. */
static bool disconnect_costly(void)
{
    bool any = false;
    for (group *g = groups; g != NULL; g = g->next)
        if (g->members != NULL && g->position < backlog_end() && is_costly(g)) {
            disconnect_members(g, true);
            any = true;
        }
    return any;
}

/* Describes the records [from, before) of the backlog. */
static span span_of(uint64_t from, uint64_t before)
{
    span what = {0};
    for (uint64_t number = from; number < before; number++) {
        int64_t time_ns = backlog_record(number)->time_ns;
        span_add(&what, 1, time_ns, time_ns);
    }
    return what;
}

/*
 * Makes each group skip the records before `before` that were not matched with the group. Its members miss these
 * records. Most groups have the same position, so the function computes the span again only if a group's position
 * differs from the position of the previous group.
 */
static void skip_unmatched(uint64_t before)
{
    span what = {0};
    uint64_t from = UINT64_MAX;
    for (group *g = groups; g != NULL; g = g->next) {
        if (g->members == NULL || g->position >= before)
            continue;
        deliver(g);
        if (g->position != from)
            what = span_of(g->position, before);
        from = g->position;
        g->position = g->gathered_from = before;
        for (subscription *s = g->members; s != NULL; s = s->next)
            if (s->joins_at < before)
                miss(s, &what);
    }
}

/*
 * Makes space in the backlog. First matches the records, then disconnects costly subscribers. Drops unmatched records
 * only if the backlog is still full.
 */
static void make_space(void)
{
    match_at_once();
    if (!backlog_is_full())
        return;
    /* Match again after each disconnection, because the cost of a group that was never matched is unknown. */
    while (backlog_is_full() && disconnect_costly())
        match_at_once();
    if (!backlog_is_full())
        return;
    uint64_t first = backlog_first();
    skip_unmatched(first + (backlog_end() - first + 3) / 4);
    drop_matched();
}

static bool any_is_live(void)
{
    const group *g = groups;
    while (g != NULL && g->members == NULL)
        g = g->next;
    return g != NULL;
}

static __attribute__((noinline)) void put_in_backlog(const nl_record *record)
{
    if (!any_is_live())
        return;
    while (backlog_is_full() && any_is_live())
        make_space();
    if (backlog_is_full())
        backlog_drop(backlog_end());
    backlog_put(record);
    background_add(&matching);
}

void subscriptions_put(const nl_record *record)
{
    if (groups != NULL)
        put_in_backlog(record);
}

/* ---- stored records ---- */

static void join_members(subscription *s)
{
    group *g = s->group;
    uint64_t end = backlog_end();
    if (g->members == NULL)
        g->position = g->gathered_from = end;
    deliver(g);
    s->joins_at = end; /* the subscription has read the earlier records of the backlog from the file */
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
    report_missed(s);
}

/* Returns whether an output has, and will have, all records that the subscription needs. */
static bool is_kept(const subscription *s)
{
    for (size_t i = 0; outputs_get(i) != NULL; i++)
        if (past_is_of(s->past, outputs_get(i)))
            return true;
    return false;
}

uint64_t subscriptions_get_first_needed(const output *out)
{
    uint64_t first = UINT64_MAX;
    for (const subscription *s = subscriptions; s != NULL; s = s->all_next)
        if (s->past != NULL && past_is_of(s->past, out) && past_get_number(s->past) < first)
            first = past_get_number(s->past);
    return first;
}

void subscriptions_outputs_changed(void)
{
    for (subscription *s = subscriptions; s != NULL; s = s->all_next)
        if (s->past != NULL && !s->live && !is_kept(s))
            join_members(s);
}

static void send_past(subscription *s, nl_encoder *encoder)
{
    finish_chunk(encoder);
    evbuffer_add(s->request->queue, chunk.data, chunk.size);
    request_send(s->request);
}

/* Adds a stored record to the queue. Returns NL_FAILED if evaluating the expression for the record costs too much. */
static nl_status put_past(subscription *s, nl_encoder *encoder, const nl_record *record)
{
    bool meant;
    if (match(s->group, record, &meant) != NL_OK)
        return NL_FAILED;
    if (!meant)
        return NL_OK;
    past_line.size = 0;
    if (s->group->format != NL_FORMAT_NLB)
        output_put_line(record, s->group->format, &past_line);
    gather(encoder, record, (nl_string){past_line.size > 0 ? past_line.data : NULL, past_line.size});
    s->records++;
    counts.records++;
    if (nl_encoder_size(encoder) >= (size_t)(all_queues_fit(CHUNK_SIZE) ? CHUNK_SIZE : SCARCE_SIZE))
        send_past(s, encoder);
    return NL_OK;
}

typedef enum slice { SLICE_MORE, SLICE_ALL_READ, SLICE_FAILED, SLICE_COSTLY } slice;

/* Reads some records of the file. Returns SLICE_ALL_READ if the file contains no further records at present. */
static slice read_slice(subscription *s, nl_encoder *encoder)
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
        if (put_past(s, encoder, record) != NL_OK)
            return SLICE_COSTLY;
        bool look = i % CLOCK_RECORDS == 0 || s->group->steps - steps >= CLOCK_STEPS;
        steps = look ? s->group->steps : steps;
        if (look && nl_monotonic_ns() >= until_ns)
            break;
    }
    return SLICE_MORE;
}

/*
 * Called when the subscription has read all written records. Makes the subscription live if all received records are
 * written.
 */
static void join_present(subscription *s)
{
    if (s->live || outputs_are_empty()) {
        go_live(s);
        request_send_later(s->request);
    } else if (flush_now()) {
        background_add(&s->catching_up);
    } else {
        event_add(s->retry, &(struct timeval){.tv_usec = BLOCKED_MS * 1000});
    }
}

static void run_catching_up(void *user)
{
    subscription *s = user;
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = s->group->format});
    slice result = read_slice(s, encoder);
    nl_error error;
    nl_error_save(&error);
    send_past(s, encoder);
    nl_encoder_free(encoder); /* a blocked subscription keeps no encoder, because its buffer may be large */
    switch (result) {
    case SLICE_MORE:
        if (is_half_empty(s)) /* otherwise, it continues when some bytes have been sent */
            background_add(&s->catching_up);
        break;
    case SLICE_ALL_READ:
        join_present(s);
        break;
    case SLICE_FAILED:
        nl_error_restore(&error);
        disconnect(s);
        break;
    case SLICE_COSTLY:
        disconnect_for_cost(s, false);
        break;
    }
}

static void on_retry(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    background_add(&((subscription *)user)->catching_up);
}

static nl_status catch_up(subscription *s)
{
    const output *out = outputs_with_all();
    if (out == NULL)
        return nl_error_set(NL_ERROR_UNSUPPORTED, "SINCE: no output stores all records in readable files");
    s->past = past_open(out, s->group->since_ns, s->group->filter);
    if (s->past == NULL)
        return NL_FAILED;
    s->retry = server_new_event(-1, 0, on_retry, s);
    background_add(&s->catching_up);
    return NL_OK;
}

/* ---- the verb ---- */

static nl_status read_fields(const nl_record *asked, group *wanted, char where[NL_FILTER_SIZE_MAX + 1])
{
    char format[NL_TIME_TEXT_SIZE] = "ulm", since[NL_TIME_TEXT_SIZE] = "";
    nl_field field;
    if (request_get_value(asked, "FORMAT", format, sizeof format) != NL_OK ||
        request_get_value(asked, "SINCE", since, sizeof since) != NL_OK ||
        request_get_value(asked, "WHERE", where, NL_FILTER_SIZE_MAX + 1) != NL_OK)
        return NL_FAILED;
    wanted->format = nl_format_parse(format);
    if (wanted->format == NL_FORMAT_UNKNOWN)
        return nl_error_set(NL_ERROR_INVALID, "FORMAT is not one of %s", nl_format_choices() + 1);
    wanted->has_since = nl_record_find(asked, "SINCE", &field);
    if (wanted->has_since && !nl_time_parse_relative(since, &wanted->since_ns))
        return nl_error_set(NL_ERROR_INVALID, "SINCE must be a time, or a duration before now, as in -10m");
    if (!nl_record_find(asked, "WHERE", &field))
        return NL_OK;
    wanted->where = where;
    wanted->filter = nl_filter_parse(where);
    return wanted->filter != NULL ? NL_OK : nl_error_prepend("WHERE");
}

static void reply_subscribed(request *r, const group *g)
{
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Subscribed");
    request_add_text(record, "FORMAT", nl_format_name(g->format));
    request_add_text(record, "WHERE", g->where);
    if (g->has_since)
        request_add_time(record, "SINCE", g->since_ns);
    request_put(r, record);
}

/* Returns whether the subscription counts towards max-subscribers. */
static bool is_limited(const subscription *s)
{
    return !s->request->control && !s->request->ending;
}

/*
 * Returns the subscription to end when a new subscription of r would exceed the maximum, or NULL. Considers the address
 * with the most subscriptions, if that address has at least two more than the address of r. Returns the subscription of
 * that address that has received nothing for the longest time.
 */
static subscription *find_displaced(const request *r)
{
    enum { BUCKETS = 1024 };
    unsigned numbers[BUCKETS] = {0};
    size_t own = peer_address_bucket(r->peer, BUCKETS), largest = own;
    subscription *silent = NULL;
    for (const subscription *s = subscriptions; s != NULL; s = s->all_next) {
        size_t bucket = peer_address_bucket(s->request->peer, BUCKETS);
        if (is_limited(s) && ++numbers[bucket] > numbers[largest])
            largest = bucket;
    }
    if (numbers[largest] < numbers[own] + 2)
        return NULL;
    for (subscription *s = subscriptions; s != NULL; s = s->all_next)
        if (is_limited(s) && peer_address_bucket(s->request->peer, BUCKETS) == largest &&
            (silent == NULL || s->request->entry.heard_ns < silent->request->entry.heard_ns))
            silent = s;
    return silent;
}

static void add_subscription(request *r, const group *wanted)
{
    subscription *s = nl_memory_check(calloc(1, sizeof *s));
    s->request = r;
    s->catching_up = (background_task){.run = run_catching_up, .user = s};
    s->group = group_join(wanted);
    s->began_ns = nl_monotonic_ns();
    s->all_next = subscriptions;
    s->all_link = &subscriptions;
    if (s->all_next != NULL)
        s->all_next->all_link = &s->all_next;
    subscriptions = s;
    counts.subscribers++;
    r->subscription = s;
}

nl_status subscription_start(request *r, const nl_record *asked)
{
    const settings *settings = server_settings();
    group wanted = {0};
    char where[NL_FILTER_SIZE_MAX + 1];
    if (!r->control && !settings->subscribe)
        return nl_error_set(NL_ERROR_PERMISSION, "this netlogd does not allow subscriptions");
    bool full = !r->control && counts.subscribers >= settings->max_subscribers;
    subscription *displaced = full ? find_displaced(r) : NULL;
    if (full && displaced == NULL)
        return nl_error_set(NL_ERROR_LIMIT, "too many subscribers");
    if (read_fields(asked, &wanted, where) != NL_OK)
        return NL_FAILED;
    if (displaced != NULL) {
        nl_error_set(NL_ERROR_LIMIT, "too many subscribers; this address has the most");
        disconnect(displaced);
    }
    add_subscription(r, &wanted);
    if (wanted.has_since && catch_up(r->subscription) != NL_OK)
        return NL_FAILED;
    reply_subscribed(r, r->subscription->group);
    if (!wanted.has_since)
        go_live(r->subscription);
    nl_write(server_log(), NL_DEBUG, "Netlogd.Subscribed", "PEER=%s WHERE=%s", r->peer,
             wanted.where != NULL ? wanted.where : "");
    request_send(r);
    return NL_OK;
}

void subscription_drained(subscription *s)
{
    if (s->request->ending)
        return;
    if (s->past == NULL && s->missed.count > 0) {
        if (report_missed(s))
            request_send(s->request);
    } else if (s->past != NULL && is_half_empty(s) && !event_pending(s->retry, EV_TIMEOUT, NULL)) {
        background_add(&s->catching_up);
    }
}

void subscription_free(subscription *s)
{
    if (s == NULL)
        return;
    end_past(s);
    leave_members(s);
    *s->all_link = s->all_next;
    if (s->all_next != NULL)
        s->all_next->all_link = s->all_link;
    counts.subscribers--;
    group_leave(s->group);
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

void subscriptions_start(void)
{
    matching = (background_task){.run = run_matching};
    at_once = allowance_new((double)AT_ONCE_SAVED * AT_ONCE_NS, nl_thread_cpu_ns());
}

void subscriptions_free(void)
{
    background_remove(&matching);
    backlog_free();
    nl_buffer_free(&past_line);
    nl_buffer_free(&chunk);
}

subscription_counts subscriptions_count(void)
{
    subscription_counts now = counts;
    now.queued = requests_get_queued();
    return now;
}
