/* Spans and their parents from the socket calls of processes: threads, event loops, lost bytes, several orders. */
#include "config.h"

#include "trace/exchanges.h"
#include "trace/key_table.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <glib.h>
#include <string.h>

enum { THREAD = 10, OTHER_THREAD = 11, SPANS_MAX = 16 };

/* A copy of each span that was handed out, by its path or verb. */
typedef struct found_span {
    char name[40], parent[40], trace[33], program[16], status[40];
    bool is_server, replied, failed, has_unknown;
    span_cause cause;
    int64_t begin_ns, end_ns;
    int64_t tls_us; /* the value of TLS.HANDSHAKE, or 0 */
} found_span;

typedef struct world {
    exchanges *exchanges;
    found_span found[SPANS_MAX];
    int count;
    int64_t now_ns;
    uint32_t idles, polls;
    int64_t ready_ns;          /* when the data of the next call arrived; 0: unknown */
    bool hides_data;           /* the kernel does not see the data of calls */
    bool is_in_tls;            /* a TLS library makes the calls */
    bool ignores_waits;        /* the kernel does not count waits */
    bool ignores_starts;       /* the kernel does not know when calls begin */
    uint32_t process;          /* the process of all threads; 0: each thread is a process */
    uint32_t other[3];         /* the position in the other direction, indexed by role */
    __u8 http2;                /* the value of http2 in the events of the next frames */
    bool is_one_call;          /* the next frames arrive with one call */
    uint16_t port_translation; /* added to the client's port, as the server sees it */
} world;

static const char *name_of(const span *s)
{
    if (s->wait != NULL)
        return s->wait;
    return *s->request.object != '\0' ? s->request.object : s->request.verb;
}

static void keep(void *user, span *s)
{
    world *w = user;
    nl_record *record = nl_record_new();
    assert_true(w->count < SPANS_MAX);
    found_span *f = &w->found[w->count++];
    span_make_record(s, s->end_ns, "host", record);
    g_strlcpy(f->name, name_of(s), sizeof f->name);
    g_strlcpy(f->parent, s->parent != NULL ? name_of(s->parent) : "", sizeof f->parent);
    g_strlcpy(f->trace, s->trace_id, sizeof f->trace);
    g_strlcpy(f->program, s->program, sizeof f->program);
    g_snprintf(f->status, sizeof f->status, "%s %s", s->reply.status, s->reply.grpc_status);
    f->failed = s->reply.failed;
    f->has_unknown = s->has_unknown;
    f->is_server = s->is_server;
    f->replied = s->replied;
    f->cause = s->cause;
    f->begin_ns = s->begin_ns;
    f->end_ns = s->end_ns;
    nl_field tls;
    if (nl_record_find(record, "TLS.HANDSHAKE", &tls))
        assert_true(nl_field_int(&tls, &f->tls_us));
    nl_record_free(record);
}

static world new_world(void)
{
    return (world){.now_ns = 1000000000};
}

static void begin(world *w)
{
    w->exchanges = exchanges_new(keep, w, NULL);
}

static void end(world *w)
{
    exchanges_finish(w->exchanges, w->now_ns);
    exchanges_free(w->exchanges);
}

/* Sends or receives text on a connection, whose number is the client's port. Each call takes 1 microsecond. */
static void put(world *w, enum trace_kind kind, enum trace_role role, int connection, int thread, uint32_t sequence,
                const char *text)
{
    struct trace_event e = {.kind = (__u8)kind,
                            .role = (__u8)role,
                            .family = 2,
                            .socket = (__u64)connection * 2 + role,
                            .pid = w->process != 0 ? w->process : (__u32)thread,
                            .tid = (__u32)thread,
                            .sequence = ((__u32)connection << 16) + sequence,
                            .other = ((__u32)connection << 16) + w->other[role],
                            .size = (__u32)strlen(text),
                            .captured = w->hides_data ? 0 : (__u16)strlen(text),
                            .idles = w->idles,
                            .polls = w->polls,
                            .is_in_tls = w->is_in_tls,
                            .ready_ns = (__u64)w->ready_ns,
                            .counts_waits = !w->ignores_waits};
    e.local_port = role == TRACE_ROLE_CLIENT ? (__u16)connection : 80;
    e.peer_port = role == TRACE_ROLE_CLIENT ? 80 : (__u16)(connection + w->port_translation);
    memcpy(e.data, text, strlen(text));
    e.begin_ns = (__u64)w->now_ns;
    e.end_ns = (__u64)(w->now_ns += 1000);
    if (kind != TRACE_SEND || w->ignores_starts)
        e.begin_ns = e.end_ns;
    exchanges_put(w->exchanges, &e);
}

static void arrive(world *w, int connection, int thread, const char *path)
{
    char *text = g_strdup_printf("GET /%s HTTP/1.1\r\n\r\n", path);
    put(w, TRACE_RECEIVE, TRACE_ROLE_SERVER, connection, thread, 1000, text);
    g_free(text);
}

static void call(world *w, int connection, int thread, const char *path)
{
    char *text = g_strdup_printf("GET /%s HTTP/1.1\r\n\r\n", path);
    put(w, TRACE_SEND, TRACE_ROLE_CLIENT, connection, thread, 1000, text);
    g_free(text);
}

#define REPLY_TEXT "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void answer(world *w, int connection, int thread)
{
    put(w, TRACE_SEND, TRACE_ROLE_SERVER, connection, thread, 5000, REPLY_TEXT);
}

static void return_reply(world *w, int connection, int thread)
{
    put(w, TRACE_RECEIVE, TRACE_ROLE_CLIENT, connection, thread, 5000, REPLY_TEXT);
}

static const found_span *find(const world *w, const char *name, bool is_server)
{
    for (int i = 0; i < w->count; i++)
        if (strcmp(w->found[i].name, name) == 0 && w->found[i].is_server == is_server)
            return &w->found[i];
    fail_msg("no span %s", name);
    return NULL;
}

static void expect_cause(const world *w, const char *name, bool is_server, const char *parent, span_cause cause)
{
    const found_span *s = find(w, name, is_server);
    assert_string_equal(s->parent, parent);
    assert_int_equal(s->cause, cause);
}

static void test_thread(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    arrive(&w, 2, OTHER_THREAD, "b");
    call(&w, 3, THREAD, "c");
    arrive(&w, 3, 20, "c"); /* the other end, in another process */
    call(&w, 4, OTHER_THREAD, "d");
    answer(&w, 3, 20);
    return_reply(&w, 3, THREAD);
    answer(&w, 1, THREAD);
    call(&w, 5, THREAD, "e"); /* after the reply: not for the request */
    end(&w);
    expect_cause(&w, "/c", false, "/a", SPAN_CAUSE_THREAD);
    expect_cause(&w, "/c", true, "/c", SPAN_CAUSE_MESSAGE);
    expect_cause(&w, "/d", false, "/b", SPAN_CAUSE_THREAD);
    expect_cause(&w, "/e", false, "", SPAN_CAUSE_NONE);
    assert_string_equal(find(&w, "/c", true)->trace, find(&w, "/a", true)->trace);
    assert_string_not_equal(find(&w, "/d", false)->trace, find(&w, "/a", true)->trace);
    assert_true(find(&w, "/c", true)->begin_ns >= find(&w, "/c", false)->begin_ns);
    assert_true(find(&w, "/c", true)->end_ns <= find(&w, "/c", false)->end_ns);
    assert_false(find(&w, "/d", false)->replied);
}

/* The kernel may report the arrival of a message before its sending. */
static void test_either_order(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    arrive(&w, 3, 20, "c");
    answer(&w, 3, 20);
    call(&w, 3, THREAD, "c");
    return_reply(&w, 3, THREAD);
    end(&w);
    expect_cause(&w, "/c", true, "/c", SPAN_CAUSE_MESSAGE);
}

/*
 * Each of the two keys alone is sufficient to join the ends. In one case, the addresses differ; in the other case, the
 * client has sent a request before it has read a reply.
 */
static void test_keys(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    w.port_translation = 1000;
    call(&w, 3, THREAD, "a");
    arrive(&w, 3, 20, "a");
    w.port_translation = 0;
    w.other[TRACE_ROLE_SERVER] = 40;
    call(&w, 4, OTHER_THREAD, "b");
    arrive(&w, 4, 21, "b");
    w.port_translation = 1000;
    call(&w, 5, 12, "c");
    arrive(&w, 5, 22, "c");
    end(&w);
    expect_cause(&w, "/a", true, "/a", SPAN_CAUSE_MESSAGE);
    expect_cause(&w, "/b", true, "/b", SPAN_CAUSE_MESSAGE);
    expect_cause(&w, "/c", true, "", SPAN_CAUSE_NONE);
}

/* The thread handles each event at once, as nginx does. */
static void test_event_loop(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    call(&w, 11, THREAD, "x");
    w.idles++;
    arrive(&w, 2, THREAD, "b"); /* two events of one wait */
    call(&w, 12, THREAD, "y");
    arrive(&w, 3, THREAD, "c");
    call(&w, 13, THREAD, "z");
    w.idles++;
    return_reply(&w, 12, THREAD);
    call(&w, 14, THREAD, "y2"); /* the next call for b */
    end(&w);
    expect_cause(&w, "/x", false, "/a", SPAN_CAUSE_THREAD);
    expect_cause(&w, "/y", false, "/b", SPAN_CAUSE_HANDLER);
    expect_cause(&w, "/z", false, "/c", SPAN_CAUSE_HANDLER);
    expect_cause(&w, "/y2", false, "/b", SPAN_CAUSE_HANDLER);
}

/* While waits are not counted, other requests of the thread make each call ambiguous. */
static void test_uncounted_waits(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    call(&w, 11, THREAD, "x");
    w.ignores_waits = true;
    arrive(&w, 2, THREAD, "b");
    call(&w, 12, THREAD, "y");
    w.ignores_waits = false;
    return_reply(&w, 12, THREAD);
    call(&w, 13, THREAD, "z");
    arrive(&w, 3, THREAD, "c");
    w.ignores_waits = true;
    call(&w, 14, THREAD, "u");
    end(&w);
    expect_cause(&w, "/y", false, "", SPAN_CAUSE_AMBIGUOUS);
    expect_cause(&w, "/z", false, "", SPAN_CAUSE_AMBIGUOUS);
    expect_cause(&w, "/u", false, "", SPAN_CAUSE_AMBIGUOUS);
}

/* The kernel does not see the data of io_uring. The end of the request without data gets the name of the other end. */
static void test_hidden_data(void **state)
{
    (void)state;
    for (int hides_server = 0; hides_server < 2; hides_server++) {
        world w = new_world();
        begin(&w);
        w.hides_data = !hides_server;
        call(&w, 3, THREAD, "c");
        w.hides_data = hides_server;
        arrive(&w, 3, 20, "c");
        answer(&w, 3, 20);
        w.hides_data = !hides_server;
        return_reply(&w, 3, THREAD);
        end(&w);
        expect_cause(&w, "/c", true, "/c", SPAN_CAUSE_MESSAGE);
        assert_int_equal(w.count, 2);
    }
}

/* Waits are counted until most servers would have sent a call, and again after the first call. */
static void test_need_of_waits(void **state)
{
    enum { REQUESTS = 1000 };
    (void)state;
    world w = new_world();
    begin(&w);
    for (int i = 0; i < REQUESTS; i++) {
        assert_true(exchanges_need_waits(w.exchanges));
        put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 1, THREAD, 1000, "GET /a HTTP/1.1\r\n\r\n");
        put(&w, TRACE_SEND, TRACE_ROLE_SERVER, 1, THREAD, 5000, REPLY_TEXT);
        exchanges_advance(w.exchanges, w.now_ns += NL_NS_PER_SECOND);
        w.count = 0;
    }
    call(&w, 2, OTHER_THREAD, "b"); /* of a process that receives no requests */
    assert_false(exchanges_need_waits(w.exchanges));
    call(&w, 3, THREAD, "c");
    assert_true(exchanges_need_waits(w.exchanges));
    end(&w);
}

/* If the start of the sending is unknown, no span begins before or ends after the span of its call. */
static void test_unknown_starts(void **state)
{
    (void)state;
    world w = new_world();
    w.ignores_starts = true;
    begin(&w);
    arrive(&w, 3, 20, "c"); /* the server reads the request before the client's call returns */
    call(&w, 3, THREAD, "c");
    return_reply(&w, 3, THREAD);
    answer(&w, 3, 20);
    end(&w);
    const found_span *call = find(&w, "/c", false), *request = find(&w, "/c", true);
    assert_int_equal(call->begin_ns, request->begin_ns);
    assert_int_equal(call->end_ns, request->end_ns);
}

/* The event of connecting does not contain the local address. */
static void test_connect_without_local_address(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    call(&w, 11, THREAD, "x");
    w.idles++;
    arrive(&w, 2, THREAD, "b");
    struct trace_event connect = {.kind = TRACE_CONNECT,
                                  .role = TRACE_ROLE_CLIENT,
                                  .family = 2,
                                  .pid = THREAD,
                                  .tid = THREAD,
                                  .socket = 12 * 2 + TRACE_ROLE_CLIENT,
                                  .peer_port = 80,
                                  .idles = w.idles,
                                  .counts_waits = true};
    exchanges_put(w.exchanges, &connect);
    w.idles++;
    call(&w, 12, THREAD, "y");
    end(&w);
    expect_cause(&w, "/y", false, "/b", SPAN_CAUSE_CONNECTION);
}

/* The server opens the connection in one turn of the loop, and sends in a later turn. */
static void test_new_connection(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    call(&w, 11, THREAD, "x");
    w.idles++;
    arrive(&w, 2, THREAD, "b");
    put(&w, TRACE_CONNECT, TRACE_ROLE_CLIENT, 12, THREAD, 0, "");
    w.idles++;
    arrive(&w, 3, THREAD, "c");
    put(&w, TRACE_CONNECT, TRACE_ROLE_CLIENT, 13, THREAD, 0, "");
    w.idles++;
    call(&w, 12, THREAD, "y");
    end(&w);
    expect_cause(&w, "/y", false, "/b", SPAN_CAUSE_CONNECTION);
}

/* While "a" waits for a new connection, "b" arrives. The first call on the connection may belong to either request. */
static void test_call_on_awaited_connection(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    put(&w, TRACE_CONNECT, TRACE_ROLE_CLIENT, 11, THREAD, 0, "");
    w.idles++;
    arrive(&w, 2, THREAD, "b");
    call(&w, 11, THREAD, "x");
    end(&w);
    expect_cause(&w, "/x", false, "", SPAN_CAUSE_AMBIGUOUS);
}

/* A request waits in the process for a connection of a pool, and gets the connection that another request has used. */
static void test_pool(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    call(&w, 11, THREAD, "x");
    w.idles++;
    arrive(&w, 2, THREAD, "b");
    w.idles++;
    return_reply(&w, 11, THREAD);
    put(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 11, THREAD, 1020, "GET /y HTTP/1.1\r\n\r\n"); /* of b */
    end(&w);
    expect_cause(&w, "/y", false, "", SPAN_CAUSE_AMBIGUOUS);
}

/* The thread receives from all connections, polls, and then handles the received data, as asyncio does. */
static void test_ambiguous(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    arrive(&w, 2, THREAD, "b");
    w.polls++;
    call(&w, 11, THREAD, "x");
    call(&w, 12, THREAD, "y");
    w.idles++;
    call(&w, 13, THREAD, "z"); /* after a timer */
    end(&w);
    expect_cause(&w, "/x", false, "", SPAN_CAUSE_AMBIGUOUS);
    expect_cause(&w, "/y", false, "", SPAN_CAUSE_AMBIGUOUS);
    expect_cause(&w, "/z", false, "", SPAN_CAUSE_AMBIGUOUS);
    assert_string_not_equal(find(&w, "/x", false)->trace, find(&w, "/a", true)->trace);
}

/* A connection was open before the trace began, in the middle of a reply. The trace also lacks some bytes. */
static void test_lost_bytes(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    put(&w, TRACE_SEND, TRACE_ROLE_SERVER, 1, THREAD, 4000, "the end of something");
    arrive(&w, 1, THREAD, "a");
    put(&w, TRACE_SEND, TRACE_ROLE_SERVER, 1, THREAD, 9000, REPLY_TEXT);
    put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 1, THREAD, 7000, "GET /b HTTP/1.1\r\n\r\n");
    put(&w, TRACE_SEND, TRACE_ROLE_SERVER, 1, THREAD, 9000 + (uint32_t)strlen(REPLY_TEXT), REPLY_TEXT);
    exchanges_advance(w.exchanges, w.now_ns + NL_NS_PER_SECOND);
    assert_int_equal(exchanges_counts(w.exchanges)->gaps, 2);
    assert_int_equal(w.count, 2);
    end(&w);
    assert_int_equal(w.count, 2);
    assert_true(find(&w, "/b", true)->replied);
}

/* The peer sends a reply in parts, and only its close shows the end. Another peer closes without a reply. */
static void test_close(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    put(&w, TRACE_SEND, TRACE_ROLE_SERVER, 1, THREAD, 5000, "HTTP/1.0 200 OK\r\n\r\n");
    put(&w, TRACE_SEND, TRACE_ROLE_SERVER, 1, THREAD, 5019, "more");
    int64_t last_ns = w.now_ns - 1000;
    put(&w, TRACE_CLOSE, TRACE_ROLE_SERVER, 1, THREAD, 0, "");
    arrive(&w, 2, THREAD, "b");
    put(&w, TRACE_CLOSE, TRACE_ROLE_SERVER, 2, THREAD, 0, "");
    end(&w);
    assert_int_equal(find(&w, "/a", true)->end_ns, last_ns);
    assert_false(find(&w, "/b", true)->replied);
}

static void report_process(world *w, enum trace_kind kind, int pid, const char *program)
{
    struct trace_process about = {0};
    struct trace_event e = {.kind = (__u8)kind, .pid = (__u32)pid, .captured = sizeof about};
    g_strlcpy(about.program, program, sizeof about.program);
    memcpy(e.data, &about, sizeof about);
    exchanges_put(w->exchanges, &e);
}

/*
 * The module keeps the name of a process that is idle for a day. After the process has ended, the module forgets the
 * name.
 */
static void test_process_name(void **state)
{
    enum { DAY_S = 86400 };
    (void)state;
    world w = new_world();
    begin(&w);
    report_process(&w, TRACE_PROCESS, THREAD, "server");
    exchanges_advance(w.exchanges, w.now_ns += DAY_S * NL_NS_PER_SECOND);
    arrive(&w, 1, THREAD, "a");
    report_process(&w, TRACE_EXIT, THREAD, "");
    arrive(&w, 2, THREAD, "b");
    report_process(&w, TRACE_PROCESS, THREAD, "next");
    arrive(&w, 3, THREAD, "c");
    end(&w);
    assert_string_equal(find(&w, "/a", true)->program, "server");
    assert_string_equal(find(&w, "/b", true)->program, "pid-10");
    assert_string_equal(find(&w, "/c", true)->program, "next");
}

static void test_traceparent_names_trace(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 1, THREAD, 1000,
        "GET /a HTTP/1.1\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n");
    call(&w, 3, THREAD, "c");
    end(&w);
    assert_string_equal(find(&w, "/a", true)->trace, "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(find(&w, "/c", false)->trace, "0af7651916cd43dd8448eb211c80319c");
}

static void wait_in_kernel(world *w, int thread, enum trace_wait wait, int64_t begin_ns, int64_t end_ns)
{
    struct trace_event e = {.kind = TRACE_WAIT,
                            .pid = w->process != 0 ? w->process : (__u32)thread,
                            .tid = (__u32)thread,
                            .other = wait,
                            .begin_ns = (__u64)begin_ns,
                            .end_ns = (__u64)end_ns};
    exchanges_put(w->exchanges, &e);
}

/* A thread waits before, during and after its request, and while it has two requests. */
static void test_waits(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    int64_t before_ns = w.now_ns;
    wait_in_kernel(&w, THREAD, TRACE_WAIT_LOCK, before_ns - 1000, before_ns);
    arrive(&w, 1, THREAD, "a");
    wait_in_kernel(&w, THREAD, TRACE_WAIT_DISK, before_ns + 2000, before_ns + 3000);
    w.now_ns += 10000;
    answer(&w, 1, THREAD);
    wait_in_kernel(&w, THREAD, TRACE_WAIT_LOCK, w.now_ns, w.now_ns + 1000);
    arrive(&w, 2, THREAD, "b");
    arrive(&w, 3, THREAD, "c");
    wait_in_kernel(&w, THREAD, TRACE_WAIT_LOCK, w.now_ns, w.now_ns + 1000);
    end(&w);
    assert_int_equal(w.count, 4);
    const found_span *wait = find(&w, "disk", false);
    assert_string_equal(wait->parent, "/a");
    assert_string_equal(wait->trace, find(&w, "/a", true)->trace);
    assert_int_equal(wait->begin_ns, before_ns + 2000);
    assert_int_equal(wait->end_ns, before_ns + 3000);
}

/*
 * The reply wakes a thread, which then waits for a processor. The server's call returns later. The server's span ends
 * before the wait, although the start of the sending is unknown. A wait ends with its request.
 */
static void test_wait_for_processor(void **state)
{
    (void)state;
    world w = new_world();
    w.ignores_starts = true;
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    call(&w, 3, THREAD, "c");
    arrive(&w, 3, 20, "c");
    int64_t woken_ns = w.now_ns + 500;
    wait_in_kernel(&w, 20, TRACE_WAIT_FUTEX, woken_ns - 100, woken_ns + 100);
    wait_in_kernel(&w, 20, TRACE_WAIT_LOCK, woken_ns + 100, woken_ns + 200);
    answer(&w, 3, 20);
    wait_in_kernel(&w, THREAD, TRACE_WAIT_PROCESSOR, woken_ns, w.now_ns + 2000);
    wait_in_kernel(&w, THREAD, TRACE_WAIT_LOCK, woken_ns - 50, woken_ns); /* the thread then waits for data again */
    w.now_ns += 3000;
    w.ready_ns = woken_ns;
    return_reply(&w, 3, THREAD);
    w.ready_ns = 0;
    answer(&w, 1, THREAD);
    end(&w);
    const found_span *wait = find(&w, "processor", false);
    assert_string_equal(wait->parent, "/c");
    assert_int_equal(wait->begin_ns, woken_ns);
    assert_int_equal(find(&w, "/c", true)->end_ns, woken_ns);
    assert_int_equal(find(&w, "futex", false)->end_ns, woken_ns);
    assert_int_equal(w.count, 5);
}

/* A TLS library has encrypted or decrypted text, which it has sent or received on a connection. */
static void show_plain(world *w, enum trace_kind direction, enum trace_role role, int connection, int thread,
                       const char *text)
{
    struct trace_event e = {.kind = TRACE_PLAIN,
                            .socket = (__u64)connection * 2 + role,
                            .pid = (__u32)thread,
                            .tid = (__u32)thread,
                            .other = direction,
                            .size = (__u32)strlen(text),
                            .captured = (__u16)strlen(text),
                            .counts_waits = true,
                            .begin_ns = (__u64)w->now_ns,
                            .end_ns = (__u64)w->now_ns};
    memcpy(e.data, text, strlen(text));
    exchanges_put(w->exchanges, &e);
}

/*
 * A client ends the handshake and sends a request at once. The server begins its reply to the handshake. Then the
 * client sends another request, and closes the connection, which is not a request.
 */
static void test_tls(void **state)
{
    static const char handshake[] = "\x14\x03\x03handshake", secret[] = "\x17\x03\x03secret";
    enum { SERVER_THREAD = 20, CLIENT_BEGIN = 1000, SERVER_BEGIN = 5000 };
    uint32_t sent = CLIENT_BEGIN + sizeof handshake - 1, returned = SERVER_BEGIN + sizeof secret - 1;
    (void)state;
    world w = new_world();
    begin(&w);
    put(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 3, THREAD, CLIENT_BEGIN, handshake);
    put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 3, SERVER_THREAD, CLIENT_BEGIN, handshake);
    put(&w, TRACE_SEND, TRACE_ROLE_SERVER, 3, SERVER_THREAD, SERVER_BEGIN, secret);
    for (int i = 0; i < 2; i++) {
        const char *text = i == 0 ? "GET /a HTTP/1.1\r\n\r\n" : "GET /b HTTP/1.1\r\n\r\n";
        w.is_in_tls = true;
        put(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 3, THREAD, sent, secret);
        show_plain(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 3, THREAD, text);
        put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 3, SERVER_THREAD, sent, secret);
        show_plain(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 3, SERVER_THREAD, text);
        put(&w, TRACE_SEND, TRACE_ROLE_SERVER, 3, SERVER_THREAD, returned, secret);
        show_plain(&w, TRACE_SEND, TRACE_ROLE_SERVER, 3, SERVER_THREAD, REPLY_TEXT);
        put(&w, TRACE_RECEIVE, TRACE_ROLE_CLIENT, 3, THREAD, returned, secret);
        show_plain(&w, TRACE_RECEIVE, TRACE_ROLE_CLIENT, 3, THREAD, REPLY_TEXT);
        sent += sizeof secret - 1;
        returned += sizeof secret - 1;
    }
    put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 3, SERVER_THREAD, sent, secret);
    end(&w);
    expect_cause(&w, "/a", true, "/a", SPAN_CAUSE_MESSAGE);
    expect_cause(&w, "/b", true, "/b", SPAN_CAUSE_MESSAGE);
    assert_string_equal(find(&w, "/b", true)->status, "200 ");
    assert_string_equal(find(&w, "/b", false)->status, "200 ");
    assert_int_equal(w.count, 6); /* with both ends of the handshake */
}

/*
 * A handshake of TLS takes 40 ms for the client, and 30 ms for the server, which receives the first message 10 ms
 * later. Only the first request has the duration. A connection whose first bytes are not of a handshake has none.
 */
static void test_duration_of_tls_handshake(void **state)
{
    static const char hello[] = "\x16\x03\x01hello", finished[] = "\x14\x03\x03finished",
                      secret[] = "\x17\x03\x03secret";
    (void)state;
    for (int begins = 0; begins < 2; begins++) {
        world w = new_world();
        begin(&w);
        uint32_t sent = 1000, returned = 5000;
        if (begins) {
            put(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 3, THREAD, sent, hello);
            w.now_ns += 9999000;
            put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 3, OTHER_THREAD, sent, hello);
            put(&w, TRACE_SEND, TRACE_ROLE_SERVER, 3, OTHER_THREAD, returned, hello);
            sent += sizeof hello - 1;
            returned += sizeof hello - 1;
            put(&w, TRACE_RECEIVE, TRACE_ROLE_CLIENT, 3, THREAD, 5000, hello);
            put(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 3, THREAD, sent, finished);
            put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 3, OTHER_THREAD, sent, finished);
            sent += sizeof finished - 1;
            w.now_ns = 1000000000 + 40000000;
        }
        for (int i = 0; i < 2; i++) {
            const char *text = i == 0 ? "GET /a HTTP/1.1\r\n\r\n" : "GET /b HTTP/1.1\r\n\r\n";
            w.is_in_tls = true;
            put(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 3, THREAD, sent, secret);
            show_plain(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 3, THREAD, text);
            put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 3, OTHER_THREAD, sent, secret);
            show_plain(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 3, OTHER_THREAD, text);
            put(&w, TRACE_SEND, TRACE_ROLE_SERVER, 3, OTHER_THREAD, returned, secret);
            show_plain(&w, TRACE_SEND, TRACE_ROLE_SERVER, 3, OTHER_THREAD, REPLY_TEXT);
            put(&w, TRACE_RECEIVE, TRACE_ROLE_CLIENT, 3, THREAD, returned, secret);
            show_plain(&w, TRACE_RECEIVE, TRACE_ROLE_CLIENT, 3, THREAD, REPLY_TEXT);
            sent += sizeof secret - 1;
            returned += sizeof secret - 1;
        }
        end(&w);
        assert_int_equal(find(&w, "/a", false)->tls_us, begins ? 40000 : 0);
        assert_in_range(find(&w, "/a", true)->tls_us, begins ? 29900 : 0, begins ? 30100 : 0);
        assert_int_equal(find(&w, "/b", false)->tls_us, 0);
        assert_int_equal(find(&w, "/b", true)->tls_us, 0);
    }
}

static void put_in_trace(world *w, enum trace_kind kind, enum trace_role role, int connection, const char *path,
                         int trace)
{
    char *text = g_strdup_printf("GET /%s HTTP/1.1\r\ntraceparent: 00-%032x-00000000000000aa-01\r\n\r\n", path, trace);
    put(w, kind, role, connection, THREAD, 1000, text);
    g_free(text);
}

/* A program begins a trace itself, and sends the header traceparent with its call. */
static void test_traceparent_of_call(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    call(&w, 12, THREAD, "y");
    return_reply(&w, 12, THREAD);
    put_in_trace(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 11, "x", 7);
    put(&w, TRACE_RECEIVE, TRACE_ROLE_CLIENT, 11, THREAD, 5000, REPLY_TEXT);
    answer(&w, 1, THREAD);
    end(&w);
    const char *trace = "00000000000000000000000000000007";
    assert_string_equal(find(&w, "/a", true)->trace, trace);
    assert_string_equal(find(&w, "/x", false)->trace, trace);
    assert_string_equal(find(&w, "/y", false)->trace, trace);
}

/* A program passes on the header traceparent. A request without this header makes other calls ambiguous again. */
static void test_traceparent_names_request(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    put_in_trace(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 1, "a", 1);
    put_in_trace(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 2, "b", 2);
    w.polls++;
    put_in_trace(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 11, "x", 2);
    put_in_trace(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 12, "y", 1);
    put_in_trace(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 3, "c", 2);
    w.polls++;
    put_in_trace(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 13, "z", 2); /* a call for b or c */
    arrive(&w, 4, THREAD, "d");
    w.polls++;
    put_in_trace(&w, TRACE_SEND, TRACE_ROLE_CLIENT, 14, "u", 1);
    end(&w);
    expect_cause(&w, "/x", false, "/b", SPAN_CAUSE_CONTEXT);
    expect_cause(&w, "/y", false, "/a", SPAN_CAUSE_CONTEXT);
    expect_cause(&w, "/z", false, "", SPAN_CAUSE_AMBIGUOUS);
    expect_cause(&w, "/u", false, "", SPAN_CAUSE_AMBIGUOUS);
}

static void wake(world *w, enum trace_kind kind, int thread, int wakee, __u64 channel)
{
    struct trace_event e = {.kind = (__u8)kind,
                            .pid = w->process,
                            .tid = (__u32)thread,
                            .other = (__u32)wakee,
                            .socket = channel,
                            .begin_ns = (__u64)w->now_ns,
                            .end_ns = (__u64)w->now_ns};
    exchanges_put(w->exchanges, &e);
}

enum { WORKER = 21, OTHER_WORKER = 22, QUEUE = 0x1001, LOCK = 0x2001, LOOP = 0x3000 };

/* Two workers of a pool send their replies themselves, in another order than the requests arrived. */
static void test_pool_replies(void **state)
{
    (void)state;
    world w = new_world();
    w.process = 5;
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    arrive(&w, 2, THREAD, "b");
    call(&w, 3, WORKER, "c");
    call(&w, 4, OTHER_WORKER, "d");
    return_reply(&w, 3, WORKER);
    return_reply(&w, 4, OTHER_WORKER);
    answer(&w, 2, WORKER);
    answer(&w, 1, OTHER_WORKER);
    call(&w, 5, WORKER, "e"); /* for no request */
    return_reply(&w, 5, WORKER);
    end(&w);
    expect_cause(&w, "/c", false, "/b", SPAN_CAUSE_REPLY);
    expect_cause(&w, "/d", false, "/a", SPAN_CAUSE_REPLY);
    expect_cause(&w, "/e", false, "", SPAN_CAUSE_NONE);
    assert_string_equal(find(&w, "/c", false)->trace, find(&w, "/b", true)->trace);
}

/* A thread that sends calls at the same time may work on several requests, although it replies to one. */
static void test_overlapping_calls(void **state)
{
    (void)state;
    world w = new_world();
    w.process = 5;
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    call(&w, 3, WORKER, "c");
    call(&w, 4, WORKER, "d");
    return_reply(&w, 3, WORKER);
    return_reply(&w, 4, WORKER);
    answer(&w, 1, WORKER);
    end(&w);
    expect_cause(&w, "/c", false, "", SPAN_CAUSE_AMBIGUOUS);
    expect_cause(&w, "/d", false, "", SPAN_CAUSE_AMBIGUOUS);
}

/* A call that was sent before the request arrived does not belong to it. */
static void test_earlier_call(void **state)
{
    (void)state;
    world w = new_world();
    w.process = 5;
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    call(&w, 3, WORKER, "c");
    return_reply(&w, 3, WORKER);
    arrive(&w, 2, THREAD, "b");
    answer(&w, 2, WORKER);
    end(&w);
    expect_cause(&w, "/c", false, "", SPAN_CAUSE_AMBIGUOUS);
}

/* The receiver replies. */
static void test_pool_returns(void **state)
{
    (void)state;
    world w = new_world();
    w.process = 5;
    begin(&w);
    arrive(&w, 1, THREAD, "a");
    wake(&w, TRACE_WAKE, THREAD, WORKER, QUEUE);
    call(&w, 3, WORKER, "c");
    return_reply(&w, 3, WORKER);
    wake(&w, TRACE_WAKE, WORKER, THREAD, LOOP);
    answer(&w, 1, THREAD);
    /* With two requests at once, the second worker may have taken the first request. */
    w.idles++;
    put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 1, THREAD, 1000 + strlen("GET /a HTTP/1.1\r\n\r\n"),
        "GET /e HTTP/1.1\r\n\r\n");
    wake(&w, TRACE_WAKE, THREAD, WORKER, QUEUE);
    w.idles++;
    arrive(&w, 2, THREAD, "f");
    wake(&w, TRACE_WAKE, THREAD, OTHER_WORKER, QUEUE);
    call(&w, 4, WORKER, "g");
    return_reply(&w, 4, WORKER);
    call(&w, 5, OTHER_WORKER, "h");
    return_reply(&w, 5, OTHER_WORKER);
    wake(&w, TRACE_SIGNAL, WORKER, 0, LOOP);
    wake(&w, TRACE_SIGNAL, OTHER_WORKER, 0, LOOP);
    answer(&w, 2, THREAD);
    end(&w);
    expect_cause(&w, "/c", false, "/a", SPAN_CAUSE_WAKEUP);
    expect_cause(&w, "/g", false, "", SPAN_CAUSE_AMBIGUOUS);
    expect_cause(&w, "/h", false, "", SPAN_CAUSE_AMBIGUOUS);
}

/* A lock also wakes threads, but passes no request to them. */
static void test_lock(void **state)
{
    (void)state;
    world w = new_world();
    w.process = 5;
    begin(&w);
    wake(&w, TRACE_WAKE, WORKER, THREAD, LOCK);
    arrive(&w, 1, THREAD, "a");
    wake(&w, TRACE_WAKE, THREAD, WORKER, LOCK);
    call(&w, 3, WORKER, "c");
    return_reply(&w, 3, WORKER);
    wake(&w, TRACE_WAKE, WORKER, THREAD, LOOP);
    answer(&w, 1, THREAD);
    end(&w);
    expect_cause(&w, "/c", false, "", SPAN_CAUSE_NONE);
}

/* The event of a reply is written after that of the next request, which another thread receives. */
static void test_late_reply(void **state)
{
    (void)state;
    world w = new_world();
    w.process = 5;
    begin(&w);
    w.other[TRACE_ROLE_SERVER] = 5000;
    arrive(&w, 1, THREAD, "a");
    w.other[TRACE_ROLE_SERVER] += strlen(REPLY_TEXT);
    put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 1, THREAD, 1000 + strlen("GET /a HTTP/1.1\r\n\r\n"),
        "GET /b HTTP/1.1\r\n\r\n");
    answer(&w, 1, WORKER);
    put(&w, TRACE_SEND, TRACE_ROLE_SERVER, 1, WORKER, 5000 + strlen(REPLY_TEXT), REPLY_TEXT);
    end(&w);
    assert_int_equal(w.count, 2);
    assert_true(find(&w, "/a", true)->replied);
    assert_true(find(&w, "/b", true)->replied);
}

/* ---- HTTP/2 ---- */

/* Puts one frame with a header block on a connection. `sequence` is the frame's position. */
static void put_frame(world *w, enum trace_role role, bool sends, int connection, int thread, int type, int flags,
                      int stream, const char *payload)
{
    struct trace_event e = {.kind = sends ? TRACE_SEND : TRACE_RECEIVE,
                            .role = (__u8)role,
                            .family = 2,
                            .http2 = w->http2,
                            .socket = (__u64)connection * 2 + role,
                            .pid = w->process != 0 ? w->process : (__u32)thread,
                            .tid = (__u32)thread,
                            .other = (__u32)connection,
                            .size = 1,
                            .idles = w->idles,
                            .counts_waits = true,
                            .begin_ns = (__u64)w->now_ns};
    bool is_captured = type != TRACE_FRAME_DATA;
    struct trace_frame frame = {
        .sequence = (__u32)(connection * 1000 + stream),
        .head = {[2] = (__u8)strlen(payload), [3] = (__u8)type, [4] = (__u8)flags, [8] = (__u8)stream}};
    e.local_port = role == TRACE_ROLE_CLIENT ? (__u16)connection : 80;
    e.peer_port = role == TRACE_ROLE_CLIENT ? 80 : (__u16)connection;
    e.captured = (__u16)(sizeof frame + (is_captured ? strlen(payload) : 0));
    memcpy(e.data, &frame, sizeof frame);
    memcpy(e.data + sizeof frame, payload, e.captured - sizeof frame);
    e.end_ns = w->is_one_call ? e.begin_ns : (__u64)(w->now_ns += 1000);
    exchanges_put(w->exchanges, &e);
}

enum { END_STREAM = 1, END_HEADERS = 4, WHOLE = END_STREAM | END_HEADERS };

static void arrive_stream(world *w, int connection, int thread, int stream, const char *headers)
{
    put_frame(w, TRACE_ROLE_SERVER, false, connection, thread, TRACE_FRAME_HEADERS, WHOLE, stream, headers);
}

static void call_stream(world *w, int connection, int thread, int stream, const char *headers)
{
    put_frame(w, TRACE_ROLE_CLIENT, true, connection, thread, TRACE_FRAME_HEADERS, WHOLE, stream, headers);
}

static void answer_stream(world *w, int connection, int thread, int stream, const char *headers)
{
    put_frame(w, TRACE_ROLE_SERVER, true, connection, thread, TRACE_FRAME_HEADERS, WHOLE, stream, headers);
}

static void return_stream(world *w, int connection, int thread, int stream, const char *headers)
{
    put_frame(w, TRACE_ROLE_CLIENT, false, connection, thread, TRACE_FRAME_HEADERS, WHOLE, stream, headers);
}

/*
 * The replies of the streams of one connection arrive in another order. A server calls another server on a stream of
 * another connection.
 */
static void test_streams(void **state)
{
    (void)state;
    world w = new_world();
    w.http2 = TRACE_FRAMES;
    begin(&w);
    arrive_stream(&w, 1, THREAD, 1, "\x82\x04\x02/a");
    call_stream(&w, 3, THREAD, 1, "\x82\x04\x02/x");
    arrive_stream(&w, 3, 20, 1, "\x82\x04\x02/x");
    w.idles++;
    arrive_stream(&w, 1, THREAD, 3, "\x82\x04\x02/b");
    call_stream(&w, 3, THREAD, 3, "\x82\x04\x02/y");
    arrive_stream(&w, 3, 20, 3, "\x82\x04\x02/y");
    answer_stream(&w, 3, 20, 3, "\x88");
    return_stream(&w, 3, THREAD, 3, "\x88");
    answer_stream(&w, 1, THREAD, 3, "\x88");
    put_frame(&w, TRACE_ROLE_SERVER, true, 3, 20, TRACE_FRAME_HEADERS, END_HEADERS, 1,
              "\x48\x03"
              "103");
    put_frame(&w, TRACE_ROLE_SERVER, true, 3, 20, TRACE_FRAME_HEADERS, END_HEADERS, 1, "\x88");
    put_frame(&w, TRACE_ROLE_SERVER, true, 3, 20, TRACE_FRAME_DATA, 0, 1, "data");
    answer_stream(&w, 3, 20, 1,
                  "\x40\x0bgrpc-status\x02"
                  "14");
    put_frame(&w, TRACE_ROLE_CLIENT, false, 3, THREAD, TRACE_FRAME_HEADERS, END_HEADERS, 1, "\x88");
    return_stream(&w, 3, THREAD, 1,
                  "\x40\x0bgrpc-status\x02"
                  "14");
    answer_stream(&w, 1, THREAD, 1, "\x8e");
    end(&w);
    assert_int_equal(w.count, 6);
    expect_cause(&w, "/x", false, "/a", SPAN_CAUSE_THREAD);
    expect_cause(&w, "/y", false, "/b", SPAN_CAUSE_HANDLER);
    expect_cause(&w, "/x", true, "/x", SPAN_CAUSE_MESSAGE);
    expect_cause(&w, "/y", true, "/y", SPAN_CAUSE_MESSAGE);
    assert_string_equal(find(&w, "/x", true)->status, "200 14");
    assert_string_equal(find(&w, "/y", false)->status, "200 ");
    assert_string_equal(find(&w, "/a", true)->status, "500 ");
    assert_true(find(&w, "/x", true)->failed);
    assert_false(find(&w, "/b", true)->failed);
    assert_true(find(&w, "/x", true)->end_ns > find(&w, "/y", true)->end_ns);
}

/* One call receives two requests. The module does not know which of them the next call is for. */
static void test_streams_of_one_call(void **state)
{
    (void)state;
    world w = new_world();
    w.http2 = TRACE_FRAMES;
    begin(&w);
    w.is_one_call = true;
    arrive_stream(&w, 1, THREAD, 1, "\x82\x04\x02/a");
    arrive_stream(&w, 1, THREAD, 3, "\x82\x04\x02/b");
    w.is_one_call = false;
    call_stream(&w, 3, THREAD, 1, "\x82\x04\x02/x");
    end(&w);
    expect_cause(&w, "/x", false, "", SPAN_CAUSE_AMBIGUOUS);
}

/* Two requests wait for calls, and one call receives the beginnings of both replies. Either may be the cause of the
 * next call. */
static void test_replies_of_one_call(void **state)
{
    (void)state;
    world w = new_world();
    w.http2 = TRACE_FRAMES;
    begin(&w);
    arrive_stream(&w, 1, THREAD, 1, "\x82\x04\x02/a");
    call_stream(&w, 3, THREAD, 1, "\x82\x04\x02/x");
    w.idles++;
    arrive_stream(&w, 1, THREAD, 3, "\x82\x04\x02/b");
    call_stream(&w, 3, THREAD, 3, "\x82\x04\x02/y");
    w.idles++;
    w.is_one_call = true;
    put_frame(&w, TRACE_ROLE_CLIENT, false, 3, THREAD, TRACE_FRAME_HEADERS, END_HEADERS, 1, "\x88");
    put_frame(&w, TRACE_ROLE_CLIENT, false, 3, THREAD, TRACE_FRAME_HEADERS, END_HEADERS, 3, "\x88");
    w.is_one_call = false;
    call_stream(&w, 3, THREAD, 5, "\x82\x04\x02/z");
    end(&w);
    expect_cause(&w, "/y", false, "/b", SPAN_CAUSE_HANDLER);
    expect_cause(&w, "/z", false, "", SPAN_CAUSE_AMBIGUOUS);
}

/* A thread of a pool writes the replies of other threads to a connection with several requests. */
static void test_pool_of_streams(void **state)
{
    (void)state;
    world w = new_world();
    w.http2 = TRACE_FRAMES;
    w.process = 5;
    begin(&w);
    arrive_stream(&w, 1, THREAD, 1, "\x82\x04\x02/a");
    call(&w, 3, WORKER, "c");
    return_reply(&w, 3, WORKER);
    answer_stream(&w, 1, WORKER, 1, "\x88");
    arrive_stream(&w, 1, THREAD, 3, "\x82\x04\x02/b");
    arrive_stream(&w, 1, THREAD, 5, "\x82\x04\x02/d");
    call(&w, 4, WORKER, "e");
    return_reply(&w, 4, WORKER);
    answer_stream(&w, 1, WORKER, 3, "\x88");
    end(&w);
    expect_cause(&w, "/c", false, "/a", SPAN_CAUSE_REPLY);
    expect_cause(&w, "/e", false, "", SPAN_CAUSE_AMBIGUOUS);
}

/* A connection began before the trace, and frames are missing later. Names are then unknown, and requests end. */
static void test_missing_frames(void **state)
{
    (void)state;
    world w = new_world();
    begin(&w);
    put(&w, TRACE_RECEIVE, TRACE_ROLE_SERVER, 1, THREAD, 0, "no request"); /* a frame before HTTP/2 was recognized */
    w.http2 = TRACE_FRAMES_AFTER_GAP;
    arrive_stream(&w, 1, THREAD, 7, "\x83\xbe");
    put_frame(&w, TRACE_ROLE_SERVER, true, 1, THREAD, TRACE_FRAME_HEADERS, END_HEADERS, 7, "\x88");
    w.http2 = TRACE_FRAMES;
    arrive_stream(&w, 1, THREAD, 9, "\x83\x44\x02/a");
    arrive_stream(&w, 1, THREAD, 11, "\x82\xbe");
    w.http2 = TRACE_FRAMES_AFTER_GAP;
    arrive_stream(&w, 1, THREAD, 13, "\x82\xbe");
    assert_int_equal(exchanges_counts(w.exchanges)->gaps, 1);
    exchanges_advance(w.exchanges, w.now_ns + NL_NS_PER_SECOND);
    assert_int_equal(w.count, 3);
    assert_string_equal(find(&w, "POST", true)->status, "200 ");
    assert_true(find(&w, "POST", true)->has_unknown);
    assert_false(find(&w, "/a", true)->has_unknown);
    assert_string_equal(find(&w, "/a", true)->status, "unknown ");
    exchanges_finish(w.exchanges, w.now_ns);
    assert_int_equal(w.count, 4);
    assert_int_equal(exchanges_counts(w.exchanges)->unnamed, 2);
    assert_true(find(&w, "GET", true)->has_unknown);
    assert_false(find(&w, "GET", true)->replied);
    exchanges_free(w.exchanges);
}

static void test_reset(void **state)
{
    (void)state;
    world w = new_world();
    w.http2 = TRACE_FRAMES;
    begin(&w);
    arrive_stream(&w, 1, THREAD, 1, "\x82\x04\x02/a");
    put_frame(&w, TRACE_ROLE_SERVER, false, 1, THREAD, TRACE_FRAME_RESET, 0, 1, "\x08\x08\x08\x08");
    answer_stream(&w, 1, THREAD, 1, "\x88");           /* crosses the reset */
    arrive_stream(&w, 1, THREAD, 1, "\x82\x04\x02/b"); /* a stream does not begin again */
    arrive_stream(&w, 1, THREAD, 2, "\x82\x04\x02/b"); /* clients begin streams with odd numbers */
    end(&w);
    assert_int_equal(w.count, 1);
    assert_string_equal(find(&w, "/a", true)->status, "reset ");
    assert_true(find(&w, "/a", true)->failed);
}

/* A peer begins streams without end. */
static void test_many_streams(void **state)
{
    enum { STREAMS = 127 * 2 };
    (void)state;
    world w = new_world();
    w.http2 = TRACE_FRAMES;
    begin(&w);
    for (int connection = 1; exchanges_counts(w.exchanges)->refused == 0; connection++) {
        assert_true(connection * STREAMS / 2 <= EXCHANGES_STREAMS_MAX + STREAMS);
        for (int stream = 1; stream < STREAMS; stream += 2)
            arrive_stream(&w, connection, THREAD, stream, "\x82\x84");
    }
    exchanges_free(w.exchanges);
}

/* Random operations. Many keys have the same position, and the table grows and shrinks. */
static void test_key_table(void **state)
{
    enum { KEYS = 600, OPERATIONS = 20000, SEED = 1 };
    (void)state;
    span *expected[KEYS] = {0}, spans[2] = {0};
    key_table *table = key_table_new();
    GRand *random = g_rand_new_with_seed(SEED);
    for (int i = 0; i < OPERATIONS; i++) {
        int limit = i < OPERATIONS / 2 ? KEYS : KEYS / 20, n = g_rand_int_range(random, 0, KEYS);
        uint64_t key = (uint64_t)n % 7 + ((uint64_t)n << 20);
        span *s = &spans[g_rand_int_range(random, 0, 2)];
        assert_ptr_equal(key_table_find(table, key), expected[n]);
        if (g_rand_int_range(random, 0, KEYS) < limit && g_rand_boolean(random)) {
            key_table_put(table, key, s);
            expected[n] = s;
        } else {
            key_table_remove(table, key, s);
            expected[n] = expected[n] == s ? NULL : expected[n];
        }
    }
    g_rand_free(random);
    key_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_streams_of_one_call),
        cmocka_unit_test(test_replies_of_one_call),
        cmocka_unit_test(test_pool_of_streams),
        cmocka_unit_test(test_missing_frames),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_many_streams),
        cmocka_unit_test(test_pool_replies),
        cmocka_unit_test(test_overlapping_calls),
        cmocka_unit_test(test_earlier_call),
        cmocka_unit_test(test_pool_returns),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_late_reply),
        cmocka_unit_test(test_thread),
        cmocka_unit_test(test_either_order),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_event_loop),
        cmocka_unit_test(test_uncounted_waits),
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_duration_of_tls_handshake),
        cmocka_unit_test(test_hidden_data),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_wait_for_processor),
        cmocka_unit_test(test_need_of_waits),
        cmocka_unit_test(test_unknown_starts),
        cmocka_unit_test(test_connect_without_local_address),
        cmocka_unit_test(test_new_connection),
        cmocka_unit_test(test_call_on_awaited_connection),
        cmocka_unit_test(test_traceparent_names_request),
        cmocka_unit_test(test_traceparent_of_call),
        cmocka_unit_test(test_key_table),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_ambiguous),
        cmocka_unit_test(test_lost_bytes),
        cmocka_unit_test(test_process_name),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_traceparent_names_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
