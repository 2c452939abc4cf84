#include "config.h"

#include "trace/span.h"

#include "base/hash_bytes.h"

#include <arpa/inet.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 256, CHUNK_SPANS = 64 };

/* A list of unused spans, linked by the member `parent`. The module reuses spans, because they are short-lived, and
 * malloc is slow with many objects of this size. */
static span *free_spans;

static void span_free(span *s)
{
    s->parent = free_spans;
    free_spans = s;
}

span *span_new(void)
{
    if (free_spans == NULL) {
        span *chunk = g_new(span, CHUNK_SPANS);
        for (size_t i = CHUNK_SPANS; i-- > 0;)
            span_free(&chunk[i]);
    }
    span *s = free_spans;
    free_spans = s->parent;
    memset(s, 0, sizeof *s);
    s->references = 1;
    return s;
}

span *span_hold(span *s)
{
    s->references++;
    return s;
}

void span_release(span *s)
{
    while (s != NULL && --s->references == 0) {
        span *parent = s->parent;
        span_free(s);
        s = parent;
    }
}

/* Returns s or its nearest ancestor with a trace ID or without a parent, or the ancestor at depth DEPTH_MAX. */
static span *find_root(span *s)
{
    for (int depth = 0; s->parent != NULL && *s->trace_id == '\0' && depth < DEPTH_MAX; depth++)
        s = s->parent;
    return s;
}

void span_set_parent(span *s, span *parent, span_cause cause)
{
    const span *root = find_root(parent);
    if (s->parent != NULL || root == s ||
        (*s->trace_id != '\0' && *root->trace_id != '\0' && strcmp(s->trace_id, root->trace_id) != 0))
        return;
    s->parent = span_hold(parent);
    s->cause = cause;
}

void span_set_trace(span *s, const char *trace_id)
{
    span *root = find_root(s);
    if (*root->trace_id == '\0' && *root->request.trace_id == '\0')
        g_strlcpy(root->trace_id, trace_id, sizeof root->trace_id);
}

bool span_is_undecided(const span *s)
{
    for (int depth = 0; s != NULL && *s->trace_id == '\0' && depth < DEPTH_MAX; depth++, s = s->parent)
        if (s->undecided)
            return true;
    return false;
}

/* Returns an ID that is not 0. The ID depends only on the message and the purpose, so that nlkernel on the peer's host
 * computes the same ID. */
static uint64_t make_id(uint64_t message, uint64_t purpose)
{
    uint64_t words[2] = {message, purpose}, id = hash_bytes(0, (const char *)words, sizeof words);
    return id != 0 ? id : 1;
}

/* Writes 16 hexadecimal digits. Returns the end. */
static char *put_hex(char *to, uint64_t value)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *to++ = "0123456789abcdef"[value >> shift & 15];
    return to;
}

static char *put_decimal(char *to, unsigned value)
{
    char digits[10];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    while (count > 0)
        *to++ = digits[--count];
    return to;
}

static void find_trace_id(span *s, int64_t end_ns)
{
    enum { TRACE_HIGH = 2, TRACE_LOW = 3 };
    span *root = find_root(s);
    if (*root->trace_id == '\0' && *root->request.trace_id != '\0') {
        memcpy(root->trace_id, root->request.trace_id, sizeof root->trace_id);
    } else if (*root->trace_id == '\0') {
        uint64_t second = (uint64_t)(end_ns - s->end_ns + root->begin_ns) / 1000000000;
        put_hex(put_hex(root->trace_id, make_id(root->keys[0], TRACE_HIGH)),
                make_id(root->keys[0] ^ second, TRACE_LOW));
    }
    for (span *at = s; at != root; at = at->parent)
        memcpy(at->trace_id, root->trace_id, sizeof at->trace_id);
}

static void add_text(nl_record *record, const char *name, const char *text)
{
    if (*text != '\0')
        nl_record_add_string(record, name, text, strlen(text));
}

static void add_id(nl_record *record, const char *name, const span *s, bool of_server)
{
    char text[16];
    put_hex(text, make_id(s->keys[0], of_server));
    nl_record_add_string(record, name, text, sizeof text);
}

static void add_address(nl_record *record, const char *name, const span_address *address)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[INET6_ADDRSTRLEN + 10], *at = text;
    if (address->is_unix) {
        uint64_t number;
        memcpy(&number, address->bytes, sizeof number);
        int length = snprintf(text, sizeof text, "unix:%" PRIu64, number);
        nl_record_add_string(record, name, text, (size_t)length);
        return;
    }
    if (memcmp(address->bytes, mapped, sizeof mapped) == 0) {
        for (size_t i = sizeof mapped; i < sizeof address->bytes; i++) {
            at = put_decimal(at, address->bytes[i]);
            *at++ = i + 1 < sizeof address->bytes ? '.' : ':';
        }
    } else {
        *at++ = '[';
        inet_ntop(AF_INET6, address->bytes, at, INET6_ADDRSTRLEN);
        at += strlen(at);
        *at++ = ']';
        *at++ = ':';
    }
    at = put_decimal(at, address->port);
    nl_record_add_string(record, name, text, (size_t)(at - text));
}

/* Sets the event's name. The name of a wait consists of the name of the thread's request and the kind of wait. */
static void set_name(const span *s, nl_record *record)
{
    char name[PROTOCOL_VERB_SIZE + PROTOCOL_OBJECT_SIZE + 40], *at = name;
    const protocol *p = s->protocol;
    at = g_stpcpy(at, p != NULL ? p->name : "tcp");
    *at++ = '.';
    at = g_stpcpy(at, *s->request.verb != '\0' ? s->request.verb : "exchange");
    if (p != NULL && p->names_object && *s->request.object != '\0') {
        *at++ = '.';
        at = g_stpcpy(at, s->request.object);
    }
    if (s->wait != NULL) {
        *at++ = '.';
        at = g_stpcpy(at, s->wait);
    } else if (!s->is_server) {
        at = g_stpcpy(at, ".call");
    }
    nl_record_set_event(record, name, (size_t)(at - name));
}

void span_make_record(span *s, int64_t end_ns, const char *host, nl_record *record)
{
    static const char *const causes[SPAN_CAUSE_COUNT] = {
        "", "message", "thread", "handler", "connection", "traceparent", "reply", "wakeup", "ambiguous"};
    find_trace_id(s, end_ns);
    if (s->host != NULL)
        host = s->host;
    nl_record_clear(record);
    nl_record_set_time(record, end_ns);
    nl_record_set_host(record, host, strlen(host));
    nl_record_set_prog(record, s->program, strnlen(s->program, sizeof s->program));
    nl_record_set_level(record, s->reply.failed ? NL_ERROR : s->replied ? NL_USAGE : NL_WARNING);
    set_name(s, record);
    add_text(record, "TRACE.ID", s->trace_id);
    add_id(record, "SPAN.ID", s, s->is_server);
    if (s->parent != NULL)
        add_id(record, "PARENT.ID", s->parent, s->parent->is_server);
    else if (strcmp(s->trace_id, s->request.trace_id) == 0)
        add_text(record, "PARENT.ID", s->request.parent_id);
    if (s->parent == NULL && s->is_server)
        add_id(record, "CALL.ID", s, false);
    nl_record_add_uint(record, "DUR.NS", (uint64_t)(s->end_ns - s->begin_ns));
    add_text(record, "EDGE", causes[s->cause]);
    if (s->cause == SPAN_CAUSE_AMBIGUOUS)
        nl_record_add_uint(record, "CANDIDATES", s->candidates);
    nl_record_add_uint(record, "PID", s->pid);
    nl_record_add_uint(record, "TID", s->tid);
    if (s->protocol != NULL)
        add_text(record, s->protocol->object_field, s->request.object);
    add_text(record, "STATUS", s->replied ? s->reply.status : "unanswered");
    add_text(record, "GRPC.STATUS", s->reply.grpc_status);
    if (s->has_unknown)
        add_text(record, "HEADERS", "unknown");
    if (s->tls_ns > 0)
        nl_record_add_uint(record, "TLS.HANDSHAKE", (uint64_t)s->tls_ns / 1000);
    if (s->wait == NULL) {
        add_address(record, "LOCAL", &s->local);
        add_address(record, "PEER", &s->peer);
    }
}
