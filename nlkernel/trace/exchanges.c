#include "config.h"

#include "trace/exchanges.h"

#include "base/hash_bytes.h"
#include "requests/hash64.h"
#include "trace/causes.h"
#include "trace/frames.h"
#include "trace/key_table.h"

#include <glib.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* After this pause, a reply whose length is unknown is complete. */
#define REPLY_PAUSE_NS ((int64_t)1 * NL_NS_PER_SECOND)

/*
 * The module forgets ends of connections, threads and calls that were idle for IDLE_NS, and processes that have ended.
 * The event of a call should arrive before the event of the server's request, so the module waits for the event of the
 * call only for MESSAGE_NS.
 */
#define IDLE_NS ((int64_t)600 * NL_NS_PER_SECOND)
#define MESSAGE_NS ((int64_t)1 * NL_NS_PER_SECOND)
#define DATAGRAM_NS ((int64_t)10 * NL_NS_PER_SECOND) /* maximum time to wait for the answer to a datagram */
#define SWEEP_NS ((int64_t)500 * 1000000)

enum { EARLY_MAX = 4 };

/* Maximum number of unfinished requests of a connection. Servers allow 100 to 250. */
enum { STREAMS_MAX = 4096 };

enum { HEAD_SIZE = 8, REPLY_HEAD_SIZE = 64 };

/* If there are no calls after this number of requests, the servers probably send none (exchanges_need_waits). */
enum { SAMPLE_REQUESTS = 1000 };

/* One process's end of a connection, or of one exchange of datagrams. */
typedef struct connection_end {
    uint64_t socket;
    span_address local, peer;
    bool is_datagram;
    enum trace_role role;
    const protocol *protocol;
    span *current;         /* the latest request, or NULL */
    span *opener;          /* the request for which the process opened the connection, until its first call; or NULL */
    uint32_t opener_calls; /* number of calls that `opener` had sent when the process opened the connection */
    char head[HEAD_SIZE];  /* data of a request's first read, if too short to recognize the request */
    uint32_t head_size;
    bool reads_heads;                 /* this program reads a length first */
    char reply_head[REPLY_HEAD_SIZE]; /* short data of the first calls of a reply; see read_reply */
    uint32_t reply_head_size;
    uint32_t next[2]; /* expected sequence number of the next event, for each direction: TRACE_SEND, TRACE_RECEIVE */
    uint32_t sent;    /* according to the events, the position after the last byte that this end has sent */
    GQueue early; /* struct trace_event: events that have arrived before the event of the previous reply (is_early) */
    bool has_next[2];                 /* whether `next` is known, for each direction */
    int64_t tls_begin_ns;             /* time of the first bytes, if they begin a TLS handshake; otherwise 0 */
    int64_t tls_ns;                   /* duration of the TLS handshake; 0: unknown; -1: a span has it */
    const protocol *plain_protocol;   /* the protocol in a TLS connection, or NULL */
    struct trace_event *first_secret; /* the first call that has transferred encrypted bytes of the next request (the
                                         event without the call's data), or NULL */
    frames *frames;                   /* of HTTP/2; NULL: another protocol */
    GHashTable *streams;              /* unfinished HTTP/2 requests: maps a stream to a reference to a span */
    uint32_t last_stream;             /* the largest stream with a request so far */
    int64_t seen_ns;
} connection_end;

typedef struct known_process {
    char program[16];
    const char *host;
    bool serves; /* the process has received requests */
    bool calls;  /* the process has sent calls */
} known_process;

struct exchanges {
    exchanges_take_span *take;
    void *user;
    const descriptions *described;
    GHashTable *ends;            /* maps a socket to its connection_end */
    GHashTable *processes;       /* maps a process ID to its known_process */
    known_process *last_process; /* the latest result of find_process, with the ID last_pid; or NULL */
    uint32_t last_pid;
    key_table *waiting; /* maps each key of a span to the span, for requests with only one known end */
    span *first_message,
        *last_message;   /* references to spans that may be in `waiting`, in the order of waits_since_ns */
    GQueue finished;     /* span: references to finished spans, in the order of finishing */
    size_t stream_count; /* number of unfinished HTTP/2 requests */
    causes *causes;
    uint64_t received;     /* number of requests in servers */
    bool calls_for_others; /* a process that receives requests has sent calls */
    int64_t swept_ns;
    exchange_counts counts;
};

static void forget_opener(connection_end *end)
{
    if (end->opener != NULL)
        end->opener->connecting--;
    span_release(end->opener);
    end->opener = NULL;
}

static void end_free(gpointer data)
{
    connection_end *end = data;
    g_queue_clear_full(&end->early, g_free);
    span_release(end->current);
    forget_opener(end);
    g_free(end->first_secret);
    frames_free(end->frames);
    if (end->streams != NULL)
        g_hash_table_destroy(end->streams);
    g_free(end);
}

exchanges *exchanges_new(exchanges_take_span *take, void *user, const descriptions *described)
{
    exchanges *x = g_new0(exchanges, 1);
    x->take = take;
    x->user = user;
    x->described = described;
    x->ends = g_hash_table_new_full(hash64, g_int64_equal, NULL, end_free);
    x->processes = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    x->waiting = key_table_new();
    x->causes = causes_new();
    return x;
}

void exchanges_free(exchanges *x)
{
    if (x == NULL)
        return;
    for (span *s; (s = g_queue_pop_head(&x->finished)) != NULL;)
        span_release(s);
    g_hash_table_destroy(x->ends);
    g_hash_table_destroy(x->processes);
    key_table_free(x->waiting);
    for (span *s; (s = x->first_message) != NULL; span_release(s))
        x->first_message = s->next_message;
    causes_free(x->causes);
    g_free(x);
}

/* ---- processes ---- */

static known_process *find_process(exchanges *x, const struct trace_event *event)
{
    if (x->last_process != NULL && x->last_pid == event->pid)
        return x->last_process;
    known_process *p = g_hash_table_lookup(x->processes, GUINT_TO_POINTER(event->pid));
    if (p == NULL) {
        p = g_new0(known_process, 1);
        g_hash_table_insert(x->processes, GUINT_TO_POINTER(event->pid), p);
        snprintf(p->program, sizeof p->program, "pid-%u", event->pid);
    }
    x->last_process = p;
    x->last_pid = event->pid;
    return p;
}

static void learn_process(exchanges *x, const struct trace_event *event)
{
    struct trace_process about;
    known_process *p = find_process(x, event);
    memcpy(&about, event->data, sizeof about);
    about.host[sizeof about.host - 1] = '\0';
    memcpy(p->program, about.program, sizeof p->program);
    p->host = *about.host != '\0' ? g_intern_string(about.host) : NULL;
}

/* ---- spans ---- */

/* Appends a span to the list of spans that may be in `waiting`. The list holds a reference to the span. */
static void add_message(exchanges *x, span *s, int64_t now_ns)
{
    s->waits_since_ns = now_ns;
    s->next_message = NULL;
    s->previous_message = x->last_message;
    if (x->first_message == NULL)
        x->first_message = s;
    else
        x->last_message->next_message = s;
    x->last_message = s;
}

static void remove_message(exchanges *x, span *s)
{
    if (s->previous_message != NULL)
        s->previous_message->next_message = s->next_message;
    else
        x->first_message = s->next_message;
    if (s->next_message != NULL)
        s->next_message->previous_message = s->previous_message;
    else
        x->last_message = s->previous_message;
}

/* Removes a span from `waiting` and from the list, so that the module no longer waits for the other end of the
 * request. */
static void forget_message(exchanges *x, span *s)
{
    if (s->waits_since_ns == 0)
        return;
    remove_message(x, s);
    s->waits_since_ns = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(s->keys); i++)
        key_table_remove(x->waiting, s->keys[i], s);
    span_release(s);
}

static void expire_messages(exchanges *x, int64_t now_ns)
{
    span *s;
    while ((s = x->first_message) != NULL && s->waits_since_ns < now_ns - MESSAGE_NS) {
        if (!s->is_server && !s->finished && s->begin_ns >= now_ns - IDLE_NS) { /* the server may still read it */
            remove_message(x, s);
            add_message(x, s, now_ns);
        } else {
            forget_message(x, s);
        }
    }
}

/* Corrects the end of a span. Without a known start of the sending, the span of a server ends when its system call
 * returned, and the client may have read the reply earlier. A wait ends at the latest with its request. */
static void settle_end(span *s)
{
    span *parent = s->parent;
    if (s->cause == SPAN_CAUSE_MESSAGE && s->replied && parent->replied) {
        int64_t latest_ns = parent->ready_ns > s->begin_ns ? parent->ready_ns : parent->end_ns;
        s->end_ns = CLAMP(latest_ns, s->begin_ns, s->end_ns);
    } else if (s->wait != NULL && parent->replied) {
        settle_end(parent);
        s->end_ns = MIN(s->end_ns, parent->end_ns);
    }
}

/* Copies the name from the span at the other end of the request, if only the data at the other end was visible. */
static void copy_name(span *to, const span *from)
{
    if (*to->request.verb != '\0' || *from->request.verb == '\0' || to->written)
        return;
    to->protocol = from->protocol;
    to->request = from->request;
}

/* Returns whether a span is a wait during a call before the last data of the reply. */
static bool precedes_data(const span *s)
{
    const span *call = s->parent;
    return s->wait != NULL && !call->is_server && (!call->replied || call->ready_ns != s->begin_ns);
}

static void hand_out(exchanges *x, span *s)
{
    if (s->cause == SPAN_CAUSE_MESSAGE) {
        copy_name(s, s->parent);
        copy_name(s->parent, s);
    }
    settle_end(s);
    bool is_control = s->is_secret && !s->is_plain && !s->replied, /* for example, the end of a TLS connection */
        is_late = s->wait != NULL && s->begin_ns >= s->end_ns;     /* the wait began after the sending of the reply */
    if (is_control || is_late || precedes_data(s)) {
        forget_message(x, s);
        span_release(s);
        return;
    }
    s->written = true;
    x->counts.spans++;
    x->counts.requests += s->parent == NULL;
    x->counts.unanswered += !s->replied;
    x->counts.unnamed += s->has_unknown;
    x->counts.causes[s->cause]++;
    x->take(x->user, s);
    if (s->is_server)
        forget_message(x, s); /* do not join the request with a call that becomes known later */
    span_release(s);
}

/* Hands out a finished span or, if the span's trace is not known yet, keeps the span for another EXCHANGES_HOLD_NS. */
static void hand_out_or_hold(exchanges *x, span *s, int64_t now_ns)
{
    if (!span_is_undecided(s)) {
        hand_out(x, s);
        return;
    }
    s->hold_ns = now_ns;
    g_queue_push_tail(&x->finished, s);
}

/* Ends the wait of a parent for a call, because the reply has arrived or will not arrive. */
static void end_waiting(span *s)
{
    if (s->awaited)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): an awaited span has a parent */
        s->parent->waiting--;
    s->awaited = false;
}

static void finish_span(exchanges *x, span *s, int64_t now_ns)
{
    if (s->finished)
        return;
    s->finished = true;
    s->hold_ns = now_ns;
    end_waiting(s);
    if (s->is_server)
        causes_answer(x->causes, s);
    g_queue_push_tail(&x->finished, span_hold(s));
}

/* Ends the current request at an end of a connection. */
static void finish_current(exchanges *x, connection_end *end, int64_t now_ns)
{
    if (end->current == NULL)
        return;
    if (!end->current->replied)
        end->current->end_ns = MAX(end->current->end_ns, now_ns);
    finish_span(x, end->current, now_ns);
    span_release(end->current);
    end->current = NULL;
}

/* Joins the two ends of a request, whose spans have the same key. If the other end is unknown, stores `s` in
 * `waiting`. */
static void join(exchanges *x, span *s, uint64_t key)
{
    span *other = key_table_find(x->waiting, key);
    if (other == NULL || other->is_server == s->is_server) {
        key_table_put(x->waiting, key, s);
        return;
    }
    span *request = s->is_server ? s : other, *call = s->is_server ? other : s;
    span_set_parent(request, call, SPAN_CAUSE_MESSAGE);
    call->begin_ns = MIN(call->begin_ns, request->begin_ns); /* correct an unknown start of the sending */
    key_table_remove(x->waiting, key, other);
}

/* Returns the first key of a request: a hash of the positions in both directions of the connection. */
static uint64_t key_by_numbers(const struct trace_event *event)
{
    uint64_t numbers = (uint64_t)event->sequence << 32 | event->other;
    return hash_bytes(0, (const char *)&numbers, sizeof numbers);
}

/* Returns the second key of a request: a hash of the client's address, the server's address and the position of the
 * request. */
static uint64_t key_by_addresses(const span *s, const struct trace_event *event)
{
    struct {
        uint8_t client[16], server[16];
        uint64_t numbers; /* one store, because hash_bytes reads the last 8 bytes with one load */
    } key;
    const span_address *client = s->is_server ? &s->peer : &s->local, *server = s->is_server ? &s->local : &s->peer;
    memcpy(key.client, client->bytes, sizeof key.client);
    memcpy(key.server, server->bytes, sizeof key.server);
    key.numbers = (uint64_t)event->sequence << 32 | (uint32_t)client->port << 16 | server->port;
    return hash_bytes(1, (const char *)&key, sizeof key);
}

static void find_parent(exchanges *x, connection_end *end, span *s, const struct trace_event *event)
{
    span_cause cause;
    span *parent = end->opener == NULL
                       ? causes_find(x->causes, event, &cause, &s->candidates)
                       : causes_find_opener(x->causes, event, end->opener, end->opener_calls, &cause, &s->candidates);
    if (cause == SPAN_CAUSE_AMBIGUOUS) {
        parent = causes_find_context(x->causes, event, &s->request);
        cause = parent != NULL ? SPAN_CAUSE_CONTEXT : cause;
    }
    s->cause = cause;
    if (parent != NULL) {
        span_set_parent(s, parent, cause);
        if (*s->request.trace_id != '\0')
            span_set_trace(s, s->request.trace_id);
        parent->calls++;
        parent->waiting++;
        s->awaited = true;
        causes_call(x->causes, s, event);
    } else if (cause == SPAN_CAUSE_NONE) {
        causes_defer(x->causes, s, event);
    }
    forget_opener(end);
}

static void begin_span(exchanges *x, connection_end *end, const struct trace_event *event, const protocol *protocol,
                       const protocol_request *request)
{
    known_process *process = find_process(x, event);
    span *s = end->current = span_new();
    end->reply_head_size = 0;
    s->is_server = end->role == TRACE_ROLE_SERVER;
    s->protocol = protocol;
    s->is_secret = end->plain_protocol != NULL;
    s->request = *request;
    s->begin_ns = s->end_ns = (int64_t)event->begin_ns;
    s->keys[0] = key_by_numbers(event);
    s->pid = event->pid;
    s->tid = event->tid;
    memcpy(s->program, process->program, sizeof s->program);
    s->host = process->host;
    process->serves |= s->is_server;
    process->calls |= !s->is_server;
    x->received += s->is_server;
    x->calls_for_others |= process->serves && process->calls;
    s->local = end->local;
    s->peer = end->peer;
    if (end->tls_ns > 0) {
        s->tls_ns = end->tls_ns;
        end->tls_ns = -1;
    }
    if (!s->is_server)
        find_parent(x, end, s, event);
    s->keys[1] = key_by_addresses(s, event);
    for (size_t i = 0; i < G_N_ELEMENTS(s->keys); i++)
        join(x, s, s->keys[i]);
    add_message(x, span_hold(s), (int64_t)event->end_ns);
    s->replied = request->silent;
    if (request->silent)
        finish_span(x, s, (int64_t)event->end_ns);
}

/*
 * Adds a span for a wait of a thread in the kernel, if the thread works on one request. The parent is this request or,
 * until the reply to a call of the thread arrives, this call. hand_out discards a wait during a call, unless the thread
 * read the last data of the reply after the wait.
 */
static void take_wait(exchanges *x, const struct trace_event *event)
{
    static const char *const names[TRACE_WAIT_COUNT] = {NULL, "processor", "disk", "futex", "lock"};
    enum { OF_WAIT = 3 };
    span *parent = causes_find_waiting(x->causes, event);
    if (parent == NULL || event->other >= TRACE_WAIT_COUNT || names[event->other] == NULL)
        return;
    const known_process *process = find_process(x, event);
    const uint64_t numbers[2] = {(uint64_t)event->tid << 32 | event->other, event->begin_ns};
    span *s = span_new();
    s->wait = names[event->other];
    s->protocol = parent->protocol;
    s->request = parent->request;
    s->begin_ns = MAX((int64_t)event->begin_ns, parent->begin_ns);
    s->end_ns = MAX((int64_t)event->end_ns, s->begin_ns);
    s->keys[0] = hash_bytes(OF_WAIT, (const char *)numbers, sizeof numbers);
    s->pid = event->pid;
    s->tid = event->tid;
    memcpy(s->program, process->program, sizeof s->program);
    s->host = process->host;
    s->replied = true;
    span_set_parent(s, parent, SPAN_CAUSE_THREAD);
    finish_span(x, s, (int64_t)event->end_ns);
    span_release(s);
}

/* ---- bytes ---- */

static bool read_request(const protocol *p, const protocol_bytes *bytes, protocol_request *request)
{
    return p->description != NULL ? description_read_request(p->description, bytes, request)
                                  : p->read_request(bytes, request);
}

static const protocol *find_protocol(const exchanges *x, const connection_end *end, const protocol_bytes *bytes,
                                     protocol_request *request)
{
    uint16_t local = end->role == TRACE_ROLE_CLIENT ? 0 : end->local.port,
             peer = end->role == TRACE_ROLE_SERVER ? 0 : end->peer.port;
    const protocol *p = descriptions_find(x->described, local, peer, bytes, request);
    return p != NULL ? p : protocol_find(bytes, request);
}

/* Reads the next data of a request whose first bytes, from an earlier call, were too few to recognize it. */
static void read_rest(exchanges *x, connection_end *end, const struct trace_event *event, const protocol_bytes *bytes)
{
    char joined[HEAD_SIZE + TRACE_CAPTURE_MAX];
    protocol_bytes all = {
        .data = joined, .captured = end->head_size + bytes->captured, .size = end->head_size + bytes->size};
    protocol_request request = {0};
    span *s = end->current;
    memcpy(joined, end->head, end->head_size);
    memcpy(joined + end->head_size, bytes->data, bytes->captured);
    end->head_size = all.size <= HEAD_SIZE && all.captured == all.size ? (uint32_t)all.size : 0;
    memcpy(end->head, joined, end->head_size);
    bool known = end->protocol != NULL ? read_request(end->protocol, &all, &request)
                                       : (end->protocol = find_protocol(x, end, &all, &request)) != NULL;
    if (!known)
        return;
    end->head_size = 0;
    end->reads_heads = true;
    s->protocol = end->protocol;
    s->request = request;
    s->replied = request.silent;
    if (request.silent)
        finish_span(x, s, (int64_t)event->end_ns);
}

static void take_request(exchanges *x, connection_end *end, const struct trace_event *event,
                         const protocol_bytes *bytes)
{
    protocol_request request = {0};
    const protocol *protocol = end->protocol;
    span *current = end->current;
    if (current == NULL || current->replied || current->finished) {
        bool known = protocol != NULL && read_request(protocol, bytes, &request);
        if (!known)
            memset(&request, 0, sizeof request);
        if (protocol == NULL)
            end->protocol = protocol = find_protocol(x, end, bytes, &request);
        if (current != NULL && !current->finished && protocol != NULL && !known &&
            !(end->reads_heads && bytes->size <= HEAD_SIZE))
            return; /* ignore further bytes of a request to which the server is already replying */
        finish_current(x, end, (int64_t)event->end_ns);
        begin_span(x, end, event, protocol, &request);
        bool is_head = *request.verb == '\0' && bytes->size <= HEAD_SIZE && bytes->captured == bytes->size;
        end->head_size = is_head ? (uint32_t)bytes->size : 0;
        memcpy(end->head, bytes->data, end->head_size);
    } else if (end->head_size > 0) {
        read_rest(x, end, event, bytes);
    }
    if (end->current->is_server && !end->current->finished)
        causes_receive(x->causes, end->current, event);
}

/*
 * Reads the data of one call of a reply. Some programs read the first bytes of a reply, such as a length, with separate
 * calls. The protocols recognize only whole heads, so the function passes these bytes again, together with the bytes of
 * the next call.
 */
static protocol_progress read_reply(connection_end *end, const protocol_bytes *bytes)
{
    char joined[REPLY_HEAD_SIZE + TRACE_CAPTURE_MAX];
    protocol_bytes all = *bytes;
    span *s = end->current;
    bool is_head = !s->replied || end->reply_head_size > 0;
    if (s->protocol == NULL)
        return PROTOCOL_UNKNOWN;
    if (end->reply_head_size > 0) {
        memcpy(joined, end->reply_head, end->reply_head_size);
        memcpy(joined + end->reply_head_size, bytes->data, bytes->captured);
        all.data = joined;
        all.captured += end->reply_head_size;
        all.size += end->reply_head_size;
        memset(&s->reply, 0, sizeof s->reply);
    }
    const protocol *p = s->protocol;
    protocol_progress progress = p->description != NULL
                                     ? description_read_reply(p->description, &all, &s->request, &s->reply)
                                     : p->read_reply(&all, &s->request, &s->reply);
    is_head = is_head && (progress == PROTOCOL_MORE || progress == PROTOCOL_UNKNOWN) && all.size <= REPLY_HEAD_SIZE &&
              all.captured == all.size;
    end->reply_head_size = is_head ? (uint32_t)all.size : 0;
    memcpy(end->reply_head, all.data, end->reply_head_size);
    return progress;
}

static void take_reply(exchanges *x, connection_end *end, const struct trace_event *event, const protocol_bytes *bytes)
{
    span *s = end->current;
    if (s == NULL)
        return;
    if (!s->is_server)
        s->ready_ns = (int64_t)event->ready_ns;
    if (!s->is_server && s->parent != NULL && !s->parent->finished)
        causes_receive(x->causes, s->parent, event);
    if (s->undecided)
        causes_receive_deferred(x->causes, s, event);
    if (s->is_server && !s->finished)
        causes_reply(x->causes, s, event);
    if (s->written)
        return;
    protocol_progress progress = s->is_plain ? PROTOCOL_UNKNOWN : read_reply(end, bytes);
    if (progress == PROTOCOL_INTERIM)
        return;
    if (progress != PROTOCOL_MORE)
        end_waiting(s);
    s->replied = true;
    s->end_ns = MAX(s->begin_ns, (int64_t)event->begin_ns);
    if (s->is_server && progress == PROTOCOL_UNKNOWN)
        causes_answer(x->causes, s);
    if (progress == PROTOCOL_COMPLETE)
        finish_span(x, s, (int64_t)event->end_ns);
}

/* If bytes are missing before the event, counts a gap, and sets the length of the current reply to unknown. */
static void check_sequence(exchanges *x, connection_end *end, const struct trace_event *event)
{
    int direction = event->kind;
    if (end->has_next[direction] && end->next[direction] != event->sequence) {
        x->counts.gaps++;
        if (end->current != NULL) { /* only later events show the end of the reply */
            end->current->reply.begun = true;
            end->current->reply.counted = end->current->reply.chunked = false;
        }
        end->reply_head_size = 0;
    }
    end->next[direction] = event->sequence + event->size;
    end->has_next[direction] = true;
}

static void find_role(const exchanges *x, connection_end *end, const struct trace_event *event,
                      const protocol_bytes *bytes)
{
    protocol_request request;
    if (end->role == TRACE_ROLE_UNKNOWN)
        end->role = event->role;
    if (end->role == TRACE_ROLE_UNKNOWN && find_protocol(x, end, bytes, &request) != NULL)
        end->role = event->kind == TRACE_SEND ? TRACE_ROLE_CLIENT : TRACE_ROLE_SERVER;
}

/*
 * Measures the TLS handshake. It begins with the first bytes of the connection, and ends when the client has sent the
 * first encrypted record that begins a call. This record is the first data of the program, or the end of the handshake
 * in TLS 1.3.
 */
static void follow_tls(connection_end *end, const struct trace_event *event, const protocol_bytes *bytes)
{
    bool is_first = !end->has_next[TRACE_SEND] && !end->has_next[TRACE_RECEIVE];
    int64_t at_ns = (int64_t)(event->kind == TRACE_SEND ? event->begin_ns : event->end_ns);
    if (is_first && protocol_begins_tls(bytes))
        end->tls_begin_ns = at_ns;
    else if (end->tls_begin_ns > 0 && end->tls_ns == 0 && protocol_is_encrypted(bytes))
        end->tls_ns = MAX(1, at_ns - end->tls_begin_ns);
}

static void take_bytes_in_order(exchanges *x, connection_end *end, const struct trace_event *event)
{
    const protocol_bytes bytes = {.data = (const char *)event->data,
                                  .captured = event->captured,
                                  .size = event->size,
                                  .tail = (const char *)event->tail,
                                  .tail_size = event->tail_size};
    find_role(x, end, event, &bytes);
    if (event->kind == TRACE_RECEIVE)
        causes_receive_other(x->causes, event); /* any further data ends the handling of earlier data */
    if (end->role == TRACE_ROLE_UNKNOWN)
        return;
    bool is_request = (end->role == TRACE_ROLE_SERVER) == (event->kind == TRACE_RECEIVE);
    if (is_request)
        follow_tls(end, event, &bytes);
    check_sequence(x, end, event);
    if (is_request && event->is_in_tls && end->first_secret == NULL)
        end->first_secret = g_memdup2(event, offsetof(struct trace_event, data));
    if (is_request)
        take_request(x, end, event, &bytes);
    else
        take_reply(x, end, event, &bytes);
}

/*
 * Returns whether a server's event of a request has arrived before the event of the previous reply. If another thread
 * sends the reply, the client may receive the reply and send the next request before the thread's call ends. The kernel
 * writes the event of the call only at its end.
 */
static bool is_early(const connection_end *end, const struct trace_event *event)
{
    const span *s = end->current;
    return event->kind == TRACE_RECEIVE && s != NULL && s->is_server && !s->finished && !s->replied &&
           (int32_t)(event->other - end->sent) > 0 && end->early.length < EARLY_MAX;
}

static void take_early(exchanges *x, connection_end *end, bool all)
{
    const struct trace_event *first;
    while ((first = g_queue_peek_head(&end->early)) != NULL && (all || !is_early(end, first))) {
        struct trace_event *event = g_queue_pop_head(&end->early);
        take_bytes_in_order(x, end, event);
        g_free(event);
    }
}

static void take_bytes(exchanges *x, connection_end *end, const struct trace_event *event)
{
    if (end->early.length > 0 && event->kind == TRACE_RECEIVE && end->early.length >= EARLY_MAX)
        take_early(x, end, true);
    if (is_early(end, event) || (event->kind == TRACE_RECEIVE && end->early.length > 0)) {
        g_queue_push_tail(&end->early, g_memdup2(event, offsetof(struct trace_event, data) + event->captured));
        return;
    }
    end->sent = event->kind == TRACE_SEND ? event->sequence + event->size : event->other;
    take_bytes_in_order(x, end, event);
    take_early(x, end, false);
}

/* ---- TLS ---- */

/*
 * Handles a request that a TLS library has encrypted or decrypted. Names the span that began with the encrypted bytes.
 * If the current span began with other bytes, such as the end of the handshake, begins another span.
 */
static void take_plain_request(exchanges *x, connection_end *end, const struct trace_event *event,
                               const protocol_bytes *bytes)
{
    protocol_request request = {0};
    struct trace_event *first = end->first_secret;
    const protocol *protocol = end->plain_protocol;
    end->first_secret = NULL;
    bool known = protocol != NULL && read_request(protocol, bytes, &request);
    if (protocol == NULL)
        known = (end->plain_protocol = protocol = find_protocol(x, end, bytes, &request)) != NULL;
    if (known && first != NULL) {
        if (end->current == NULL || end->current->finished || end->current->keys[0] != key_by_numbers(first)) {
            if (end->current != NULL && !end->current->is_plain)
                end->current->replied = true; /* do not wait for a reply to messages of the handshake */
            finish_current(x, end, (int64_t)first->begin_ns);
            begin_span(x, end, first, protocol, &request);
            if (end->current->is_server && !end->current->finished)
                causes_receive(x->causes, end->current, event);
        }
        span *s = end->current;
        s->is_plain = true;
        s->protocol = protocol;
        s->request = request;
        s->replied = request.silent;
        if (request.silent)
            finish_span(x, s, (int64_t)event->end_ns);
    }
    g_free(first);
}

static void take_plain(exchanges *x, const struct trace_event *event)
{
    const protocol_bytes bytes = {.data = (const char *)event->data,
                                  .captured = event->captured,
                                  .size = event->size,
                                  .tail = (const char *)event->tail,
                                  .tail_size = event->tail_size};
    connection_end *end = g_hash_table_lookup(x->ends, &event->socket);
    if (end == NULL || end->role == TRACE_ROLE_UNKNOWN)
        return;
    span *s = end->current;
    if ((end->role == TRACE_ROLE_SERVER) == (event->other == TRACE_RECEIVE))
        take_plain_request(x, end, event, &bytes);
    else if (s != NULL && s->is_plain && !s->finished && read_reply(end, &bytes) == PROTOCOL_COMPLETE)
        finish_span(x, s, (int64_t)event->end_ns);
}

/* ---- HTTP/2 ---- */

static void release_span(gpointer s)
{
    span_release(s);
}

/* Prepares an end whose connection turns out to use HTTP/2. Discards the request that the module has built from the
 * first frames. */
static void begin_frames(exchanges *x, connection_end *end, const struct trace_event *event)
{
    span *s = end->current;
    take_early(x, end, true);
    if (s != NULL && s->protocol == NULL && !s->finished) {
        end_waiting(s);
        causes_answer(x->causes, s);
        forget_message(x, s);
        span_release(s);
        end->current = NULL;
    }
    finish_current(x, end, (int64_t)event->end_ns);
    end->frames = frames_new();
    end->streams = g_hash_table_new_full(NULL, NULL, NULL, release_span);
}

static void finish_stream_span(exchanges *x, span *s, int64_t now_ns)
{
    if (!s->replied)
        s->end_ns = MAX(s->end_ns, now_ns);
    finish_span(x, s, now_ns);
}

/*
 * Ends the requests of all streams, because their replies are missing or will not arrive. `status` is the status of a
 * request without a reply, or NULL.
 */
static void finish_streams(exchanges *x, connection_end *end, const char *status, int64_t now_ns)
{
    GHashTableIter i;
    gpointer value;
    if (end->streams == NULL)
        return;
    g_hash_table_iter_init(&i, end->streams);
    while (g_hash_table_iter_next(&i, NULL, &value)) {
        span *s = value;
        if (status != NULL && !s->replied) {
            g_strlcpy(s->reply.status, status, sizeof s->reply.status);
            s->end_ns = MAX(s->end_ns, now_ns);
            s->replied = true;
        }
        finish_stream_span(x, s, now_ns);
    }
    x->stream_count -= g_hash_table_size(end->streams);
    g_hash_table_remove_all(end->streams);
}

/* If the frame can begin a request, begins the request of its stream. Otherwise, returns NULL. */
static span *begin_stream(exchanges *x, connection_end *end, const struct trace_event *event, const stream_frame *frame)
{
    const hpack_headers *headers = &frame->headers;
    bool is_new = frame->has_headers && (frame->stream & 1) != 0 && frame->stream > end->last_stream;
    if (!is_new || (*headers->request.verb == '\0' && !headers->has_unknown))
        return NULL;
    end->last_stream = frame->stream;
    if (g_hash_table_size(end->streams) >= STREAMS_MAX || x->stream_count >= EXCHANGES_STREAMS_MAX) {
        x->counts.refused++;
        return NULL;
    }
    struct trace_event copy;
    memcpy(&copy, event, offsetof(struct trace_event, data));
    copy.sequence = frame->sequence;
    begin_span(x, end, &copy, &protocol_http2, &headers->request);
    span *s = end->current;
    end->current = NULL;
    s->is_multiplexed = true;
    s->has_unknown = headers->has_unknown && (*s->request.verb == '\0' || *s->request.object == '\0');
    x->stream_count++;
    g_hash_table_insert(end->streams, GUINT_TO_POINTER(frame->stream), s);
    return s;
}

/* Handles headers of a reply. Further headers follow if the status begins with 1. */
static void take_reply_headers(span *s, const hpack_headers *headers, bool ends_stream)
{
    /* The statuses of gRPC that mean a failure of the server: UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL,
     * UNAVAILABLE and DATA_LOSS. */
    enum { SERVER_FAILURES = 1 << 2 | 1 << 4 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15, STATUSES = 17 };
    protocol_reply *reply = &s->reply;
    if (*reply->status == '\0')
        g_strlcpy(reply->status, headers->status, sizeof reply->status);
    if (ends_stream)
        g_strlcpy(reply->grpc_status, headers->grpc_status, sizeof reply->grpc_status);
    unsigned long grpc_status = strtoul(reply->grpc_status, NULL, 10);
    reply->failed = *reply->status == '5' || (grpc_status < STATUSES && (SERVER_FAILURES >> grpc_status & 1) != 0);
    s->has_unknown |= headers->has_unknown && (*reply->status == '\0' || (ends_stream && *reply->grpc_status == '\0'));
}

static void take_stream_reply(exchanges *x, span *s, const struct trace_event *event, const stream_frame *frame)
{
    if (!s->is_server)
        s->ready_ns = (int64_t)event->ready_ns;
    if (!s->is_server && s->parent != NULL && !s->parent->finished)
        causes_receive(x->causes, s->parent, event);
    if (s->undecided)
        causes_receive_deferred(x->causes, s, event);
    if (s->is_server && !s->finished)
        causes_reply(x->causes, s, event);
    if (frame->has_headers && *frame->headers.status == '1' && !frame->ends_stream)
        return;
    if (frame->has_headers)
        take_reply_headers(s, &frame->headers, frame->ends_stream);
    if (!frame->resets) {
        s->replied = true;
        s->end_ns = MAX(s->begin_ns, (int64_t)event->begin_ns);
    }
}

/* Handles a frame that ends a stream early. A server may also send this frame after a whole reply. */
static void take_reset(span *s, const struct trace_event *event, const stream_frame *frame)
{
    enum { NO_ERROR = 0 };
    if (frame->error == NO_ERROR && s->replied)
        return;
    g_strlcpy(s->reply.status, "reset", sizeof s->reply.status);
    s->reply.failed = true;
    s->replied = true;
    s->end_ns = MAX(s->begin_ns, (int64_t)event->end_ns);
}

/* The arguments of take_stream. */
typedef struct stream_context {
    exchanges *x;
    connection_end *end;
    const struct trace_event *event;
} stream_context;

static void take_stream(void *user, const stream_frame *frame)
{
    const stream_context *c = user;
    connection_end *end = c->end;
    const struct trace_event *event = c->event;
    bool sends = event->kind == TRACE_SEND, begins = *frame->headers.request.verb != '\0';
    if (end->role == TRACE_ROLE_UNKNOWN && (begins || *frame->headers.status != '\0'))
        end->role = sends == begins ? TRACE_ROLE_CLIENT : TRACE_ROLE_SERVER;
    if (end->role == TRACE_ROLE_UNKNOWN)
        return;
    bool is_request = (end->role == TRACE_ROLE_CLIENT) == sends;
    span *s = g_hash_table_lookup(end->streams, GUINT_TO_POINTER(frame->stream));
    if (s == NULL && is_request)
        s = begin_stream(c->x, end, event, frame);
    if (s == NULL)
        return;
    if (!is_request)
        take_stream_reply(c->x, s, event, frame);
    else if (s->is_server && !s->finished)
        causes_receive(c->x->causes, s, event);
    if (frame->resets)
        take_reset(s, event, frame);
    if (frame->resets || (frame->ends_stream && !is_request)) {
        finish_stream_span(c->x, s, (int64_t)event->end_ns);
        c->x->stream_count--;
        g_hash_table_remove(end->streams, GUINT_TO_POINTER(frame->stream));
    }
}

static void take_frames(exchanges *x, connection_end *end, const struct trace_event *event)
{
    stream_context context = {.x = x, .end = end, .event = event};
    if (end->frames == NULL)
        begin_frames(x, end, event);
    if (event->kind == TRACE_RECEIVE)
        causes_receive_other(x->causes, event);
    if (end->role == TRACE_ROLE_UNKNOWN)
        end->role = event->role;
    if (frames_miss(end->frames, event)) {
        x->counts.gaps++;
        finish_streams(x, end, "unknown", (int64_t)event->end_ns);
    }
    frames_read(end->frames, event, take_stream, &context);
}

/* ---- connections ---- */

static span_address make_address(const struct trace_event *event, const __u8 *bytes, uint16_t port)
{
    span_address address = {.port = port, .is_unix = event->family == AF_UNIX};
    if (event->family == AF_INET) {
        address.bytes[10] = address.bytes[11] = 0xff;
        memcpy(address.bytes + 12, bytes, 4);
    } else {
        memcpy(address.bytes, bytes, sizeof address.bytes);
    }
    return address;
}

static bool is_same_address(const span_address *a, const span_address *b)
{
    return a->port == b->port && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static void close_end(exchanges *x, connection_end *end, int64_t now_ns)
{
    take_early(x, end, true);
    finish_current(x, end, now_ns);
    finish_streams(x, end, NULL, now_ns);
    g_hash_table_remove(x->ends, &end->socket);
}

/* Returns the end of the connection of an event. If the kernel has used the address of a closed socket again, closes
 * the old end. Adds an end if necessary. Returns NULL if there are too many ends. */
static connection_end *find_end(exchanges *x, const struct trace_event *event)
{
    span_address local = make_address(event, event->local, event->local_port),
                 peer = make_address(event, event->peer, event->peer_port);
    connection_end *end = g_hash_table_lookup(x->ends, &event->socket);
    if (end != NULL && end->local.port == 0 && event->kind != TRACE_CONNECT && is_same_address(&end->peer, &peer))
        end->local = local; /* now known; the event of connecting did not contain the local address */
    if (end != NULL && (!is_same_address(&end->local, &local) || !is_same_address(&end->peer, &peer) ||
                        event->kind == TRACE_CONNECT)) {
        close_end(x, end, (int64_t)event->end_ns);
        end = NULL;
    }
    if (end == NULL && g_hash_table_size(x->ends) < EXCHANGES_ENDS_MAX) {
        end = g_new0(connection_end, 1);
        end->socket = event->socket;
        end->local = local;
        end->peer = peer;
        g_hash_table_insert(x->ends, &end->socket, end);
    }
    if (end != NULL)
        end->seen_ns = (int64_t)event->end_ns;
    else
        x->counts.refused++;
    return end;
}

static void open_connection(exchanges *x, connection_end *end, const struct trace_event *event)
{
    span_cause cause;
    uint32_t candidates;
    span *opener = causes_find(x->causes, event, &cause, &candidates);
    end->role = TRACE_ROLE_CLIENT;
    if (opener == NULL)
        return;
    end->opener = span_hold(opener);
    end->opener_calls = opener->calls;
    opener->connecting++;
}

/* Handles an event in which the peer has closed the connection. For a client, this event ends the current reply. */
static void take_end(exchanges *x, connection_end *end, const struct trace_event *event)
{
    if (end->role == TRACE_ROLE_CLIENT && end->current != NULL && end->current->replied)
        finish_span(x, end->current, (int64_t)event->end_ns);
}

/* ---- datagrams ---- */

/*
 * Handles a DNS message. The exchanges of a socket are independent of each other. The socket, the peer and the
 * message's ID identify an exchange. The module joins the two ends of an exchange by the ports, the ID and the
 * question.
 */
static void take_datagram(exchanges *x, const struct trace_event *original)
{
    const protocol_bytes bytes = {
        .data = (const char *)original->data, .captured = original->captured, .size = original->size};
    uint16_t id;
    uint32_t question;
    bool is_reply;
    protocol_request request = {0};
    if (!protocol_dns_identify(&bytes, &id, &question, &is_reply))
        return;
    bool is_client = (original->kind == TRACE_SEND) != is_reply;
    struct {
        uint64_t socket;
        uint8_t peer[16];
        uint16_t port, id, is_client, unused;
    } key = {.socket = original->socket, .port = original->peer_port, .id = id, .is_client = is_client};
    struct trace_event event;
    memcpy(key.peer, original->peer, original->family == AF_INET ? 4 : sizeof key.peer);
    memcpy(&event, original, offsetof(struct trace_event, data));
    event.socket = hash_bytes(2, (const char *)&key, sizeof key);
    event.sequence = question;
    event.other = is_client ? (uint32_t)event.local_port << 16 | event.peer_port
                            : (uint32_t)event.peer_port << 16 | event.local_port;
    connection_end *end = find_end(x, &event);
    if (end == NULL)
        return;
    if (event.kind == TRACE_RECEIVE)
        causes_receive_other(x->causes, &event);
    end->is_datagram = true;
    end->role = is_client ? TRACE_ROLE_CLIENT : TRACE_ROLE_SERVER;
    if (is_reply) {
        take_reply(x, end, &event, &bytes);
        close_end(x, end, (int64_t)event.end_ns);
        return;
    }
    if (end->current == NULL &&
        protocol_dns_datagram.read_request(&bytes, &request)) /* not if the client has only sent the query again */
        begin_span(x, end, &event, &protocol_dns_datagram, &request);
    if (end->current != NULL && !is_client)
        causes_receive(x->causes, end->current, &event);
}

/* ---- events ---- */

void exchanges_put(exchanges *x, const struct trace_event *event)
{
    connection_end *end;
    switch ((enum trace_kind)event->kind) {
    case TRACE_PROCESS:
        if (event->captured >= sizeof(struct trace_process))
            learn_process(x, event);
        break;
    case TRACE_EXIT:
        x->last_process = NULL;
        g_hash_table_remove(x->processes, GUINT_TO_POINTER(event->pid));
        break;
    case TRACE_CLOSE:
        end = g_hash_table_lookup(x->ends, &event->socket);
        if (end != NULL && end->peer.port == event->peer_port)
            close_end(x, end, (int64_t)event->end_ns);
        break;
    case TRACE_CONNECT:
        if ((end = find_end(x, event)) != NULL)
            open_connection(x, end, event);
        break;
    case TRACE_WAIT:
        take_wait(x, event);
        break;
    case TRACE_PLAIN:
        take_plain(x, event);
        break;
    case TRACE_WAKE:
    case TRACE_SIGNAL:
        causes_wake(x->causes, event);
        break;
    case TRACE_SEND:
    case TRACE_RECEIVE:
        if (event->is_datagram) {
            take_datagram(x, event);
            break;
        }
        end = find_end(x, event);
        if (end != NULL && event->http2 != TRACE_NOT_HTTP2)
            take_frames(x, end, event);
        else if (end != NULL && event->size == 0)
            take_end(x, end, event);
        else if (end != NULL)
            take_bytes(x, end, event);
        break;
    }
}

/* ---- time ---- */

/* Ends replies after a pause, and forgets idle connections and calls. */
static void sweep(exchanges *x, int64_t now_ns)
{
    GHashTableIter i;
    gpointer value;
    int64_t idle_ns = now_ns - IDLE_NS;
    g_hash_table_iter_init(&i, x->ends);
    while (g_hash_table_iter_next(&i, NULL, &value)) {
        connection_end *end = value;
        take_early(x, end, true);
        bool pauses = end->seen_ns < now_ns - REPLY_PAUSE_NS && end->current != NULL && end->current->replied;
        if (pauses && !end->current->reply.counted && !end->current->reply.chunked)
            finish_span(x, end->current, now_ns);
        if (end->seen_ns < (end->is_datagram ? now_ns - DATAGRAM_NS : idle_ns)) {
            finish_current(x, end, now_ns);
            finish_streams(x, end, NULL, now_ns);
            g_hash_table_iter_remove(&i);
        }
    }
    causes_expire(x->causes, now_ns);
    x->swept_ns = now_ns;
}

void exchanges_advance(exchanges *x, int64_t now_ns)
{
    if (now_ns - x->swept_ns >= SWEEP_NS)
        sweep(x, now_ns);
    expire_messages(x, now_ns);
    span *s;
    while ((s = g_queue_peek_head(&x->finished)) != NULL && s->hold_ns + EXCHANGES_HOLD_NS <= now_ns)
        hand_out_or_hold(x, g_queue_pop_head(&x->finished), now_ns);
}

void exchanges_finish(exchanges *x, int64_t now_ns)
{
    GHashTableIter i;
    gpointer value;
    g_hash_table_iter_init(&i, x->ends);
    while (g_hash_table_iter_next(&i, NULL, &value)) {
        take_early(x, value, true);
        finish_current(x, value, now_ns);
        finish_streams(x, value, NULL, now_ns);
    }
    causes_finish(x->causes);
    for (span *s; (s = g_queue_pop_head(&x->finished)) != NULL;)
        hand_out(x, s);
}

bool exchanges_need_waits(const exchanges *x)
{
    return x->calls_for_others || x->received < SAMPLE_REQUESTS;
}

const exchange_counts *exchanges_counts(const exchanges *x)
{
    return &x->counts;
}
