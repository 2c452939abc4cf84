#include "config.h"

#include "convert/otlp_records.h"

#include "base/memory.h"
#include "base/text.h"
#include "convert/builder.h"
#include "convert/otlp.h"
#include "convert/otlp_encode.h"
#include "convert/otlp_message.h"

#include <stdlib.h>
#include <string.h>

enum {
    EXPANSION = 8, /* maximum ratio of the size of converted text to the size of its item */
    EXTRA = 4096,
    FIELD_EXTRA = 4, /* bytes that a text format adds to each field, such as quotes */
};

struct otlp_records {
    const otlp_known_spans *known; /* or NULL */
    otlp_limits limits;
    bool checking; /* the module only checks records and does not pass them on, because a span with an invalid part must
                      not become records */
    size_t text;   /* size of the names and values of the request's records so far, in bytes */
    otlp_input in; /* the input; in.builder points to `record` */
    builder record;
    builder around;        /* the fields of the resource and the scope */
    nl_string trace, span; /* IDs of the current span */
    sink *s;
    otlp_outcome outcome;
};

#define PICK(r, message, members) otlp_pick(&(r)->in, message, members, sizeof(members) / sizeof((members)[0]))
#define TEXT(literal) ((nl_string){literal, sizeof(literal) - 1})

/* ---- fields ---- */

static void add_to(builder *b, const nl_field *value, sink *s)
{
    nl_field *field = builder_add(b, value->name, s);
    nl_string name = field->name;
    *field = *value;
    field->name = name;
}

static bool set_member(otlp_records *r, builder *b, member m, const nl_field *value)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = nl_field_text(value, scratch);
    if (text.data == scratch && !otlp_keep(&r->in, text, &text))
        return false;
    return builder_set(b, m, text) || otlp_fail(&r->in, "invalid time");
}

static bool is_unset(const builder *b, member m)
{
    return (b->seen & 1u << m) == 0;
}

static void add_resource_field(void *user, const nl_field *value)
{
    otlp_records *r = user;
    builder *b = &r->around;
    if (nl_string_is(value->name, "host.name") && is_unset(b, MEMBER_HOST))
        set_member(r, b, MEMBER_HOST, value);
    else if (nl_string_is(value->name, "service.name") && is_unset(b, MEMBER_PROG))
        set_member(r, b, MEMBER_PROG, value);
    else
        add_to(b, value, r->s);
}

static bool add_resource_attribute(void *user, const otlp_value *attribute)
{
    otlp_records *r = user;
    return otlp_attribute(&r->in, NULL, attribute, add_resource_field, r);
}

static void add_scope_field(void *user, const nl_field *value)
{
    otlp_records *r = user;
    add_to(&r->around, value, r->s);
}

static bool add_scope_attribute(void *user, const otlp_value *attribute)
{
    otlp_records *r = user;
    return otlp_attribute(&r->in, "otel.scope", attribute, add_scope_field, r);
}

static void add_field(void *user, const nl_field *value)
{
    otlp_records *r = user;
    if (nl_string_is(value->name, OTLP_TIME_KEY))
        set_member(r, &r->record, MEMBER_TIME, value);
    else if (nl_string_is(value->name, OTLP_LEVEL_KEY))
        set_member(r, &r->record, MEMBER_LEVEL, value);
    else
        add_to(&r->record, value, r->s);
}

static bool add_attribute(void *user, const otlp_value *attribute)
{
    otlp_records *r = user;
    return otlp_attribute(&r->in, NULL, attribute, add_field, r);
}

static bool add_attributes(otlp_records *r, const otlp_value *list)
{
    return otlp_each(&r->in, list, add_attribute, r);
}

/* Adds a text field, unless the text is empty. `name` must be a valid name. */
static void add_text(builder *b, nl_string name, nl_string text)
{
    if (text.size == 0)
        return;
    nl_field *field = builder_add_good_name(b, name);
    field->type = NL_TYPE_STRING;
    field->string = text;
}

/* Adds an integer, unless it is 0. */
static void add_count(otlp_records *r, nl_string name, uint64_t count)
{
    if (count == 0)
        return;
    nl_field *field = builder_add_good_name(&r->record, name);
    field->type = NL_TYPE_INT;
    field->int_value = (int64_t)count;
}

/* Adds the kinds of the attributes that were added since the previous call. Returns false on failure. */
static bool add_kinds(otlp_records *r, builder *b)
{
    nl_string text;
    if (r->in.kinds.size == 0)
        return true;
    if (!otlp_keep(&r->in, (nl_string){r->in.kinds.data, r->in.kinds.size}, &text))
        return false;
    r->in.kinds.size = 0;
    add_text(b, TEXT(OTLP_KINDS), text);
    return true;
}

static bool add_number(otlp_records *r, nl_string name, const otlp_value *value,
                       bool (*convert)(otlp_input *in, const otlp_value *value, nl_field *field))
{
    if (value->text.data == NULL)
        return true;
    nl_field *field = builder_add_good_name(&r->record, name);
    field->type = NL_TYPE_STRING;
    return convert(&r->in, value, field);
}

static void set_text(builder *b, member m, nl_string text)
{
    builder_set(b, m, text);
}

static void set_level(otlp_records *r, nl_level level)
{
    r->record.record->level = level;
    r->record.record->level_text = (nl_string){NULL, 0};
    r->record.seen |= 1u << MEMBER_LEVEL;
}

/* Returns whether an item has a time. In protobuf, an absent time and the time 0 are the same. */
static bool has_time(const otlp_records *r, const otlp_value *value)
{
    return value->text.data != NULL && (r->in.json || value->number != 0);
}

static bool require_time(otlp_records *r, const otlp_value *value)
{
    return has_time(r, value) || otlp_fail(&r->in, "missing time");
}

static bool set_time(otlp_records *r, uint64_t time_ns)
{
    if (time_ns > INT64_MAX)
        return otlp_fail(&r->in, "invalid time");
    nl_record_set_time(r->record.record, (int64_t)time_ns);
    r->record.seen |= 1u << MEMBER_TIME;
    return true;
}

/*
 * Sets the time of a log record or data point. If the time is 0, uses limits.now_ns, if that is set. Returns false on
 * an error.
 */
static bool set_known_time(otlp_records *r, const otlp_value *value, uint64_t time_ns)
{
    if (time_ns == 0 && r->limits.now_ns != 0)
        return set_time(r, (uint64_t)r->limits.now_ns);
    return require_time(r, value) && set_time(r, time_ns);
}

static bool has_text_left(otlp_records *r)
{
    return r->limits.text_max == 0 || r->text <= r->limits.text_max ||
           otlp_fail(&r->in, "the records of the request are too large");
}

static size_t text_size(const builder *b)
{
    size_t size = b->record->host.size + b->record->prog.size + b->record->event.size;
    for (size_t i = 0; i < b->count; i++)
        size +=
            b->fields[i].name.size + FIELD_EXTRA + (b->fields[i].type == NL_TYPE_STRING ? b->fields[i].string.size : 8);
    return size;
}

/*
 * Passes the record to the sink, unless `checking` is true. Returns false if the item has an error, or if the record
 * has no time in the field that import_about names.
 */
static bool put_record(otlp_records *r)
{
    if (r->in.error != NULL || !add_kinds(r, &r->record))
        return false;
    if (!builder_find_time(&r->record, r->s))
        return otlp_fail(&r->in, "a record has no time in the field that --time-field names");
    if (r->checking)
        return true;
    r->text += text_size(&r->record);
    if (!has_text_left(r))
        return false;
    builder_put(&r->record, true, r->s);
    return true;
}

/* ---- items ---- */

/* Begins an item, which may become several records. Returns false if the item is too large. */
static bool begin_item(otlp_records *r, const otlp_value *item)
{
    r->in.error = NULL;
    r->in.builder = &r->record;
    builder_begin(&r->record, EXPANSION * item->text.size + EXTRA);
    return r->limits.item_max == 0 || item->text.size <= r->limits.item_max ||
           otlp_fail(&r->in, "longer than max-record-size");
}

/*
 * Begins a record of the item. The bytes that the builder has returned for the item stay valid. If `surroundings` is
 * true, the record contains the fields of the resource and the scope. Returns false if the request's records are too
 * large.
 */
static bool begin_record(otlp_records *r, bool surroundings)
{
    builder *b = &r->record;
    if (!has_text_left(r))
        return false;
    nl_record_clear(b->record);
    b->seen = 0;
    b->count = 0;
    r->in.kinds.size = 0;
    for (size_t i = 0; surroundings && i < r->around.count; i++)
        *builder_add_good_name(b, r->around.fields[i].name) = r->around.fields[i];
    if (!is_unset(&r->around, MEMBER_HOST))
        set_text(b, MEMBER_HOST, r->around.record->host);
    if (!is_unset(&r->around, MEMBER_PROG))
        set_text(b, MEMBER_PROG, r->around.record->prog);
    return true;
}

static bool end_item(otlp_records *r, uint64_t count)
{
    bool good = r->in.error == NULL;
    *(good ? &r->outcome.accepted : &r->outcome.rejected) += count;
    if (!good && r->outcome.error == NULL)
        r->outcome.error = r->in.error;
    r->in.error = NULL;
    return !r->s->stopped;
}

/* ---- logs ---- */

static nl_level level_of(uint64_t severity)
{
    return severity <= 8    ? NL_DEBUG
           : severity <= 12 ? NL_USAGE
           : severity <= 16 ? NL_WARNING
           : severity <= 20 ? NL_ERROR
                            : NL_EMERGENCY;
}

/* Sets the level from severityText if it is a level of NetLogger, or otherwise from severityNumber. */
static void set_severity(otlp_records *r, uint64_t number, nl_string text)
{
    bool known = text.size > 0 && nl_level_parse(text.data, text.size) != NL_LEVEL_NONE;
    if (known || number == 0 || number > 24) {
        if (text.data != NULL)
            set_text(&r->record, MEMBER_LEVEL, text);
    } else if (is_unset(&r->record, MEMBER_LEVEL)) {
        set_level(r, level_of(number));
        add_text(&r->record, TEXT("severity_text"), text);
    }
}

/*
 * Adds a field of the body. The value of the field `body` becomes the event if the record has no event, and is ignored
 * if it equals the event.
 */
static void take_body(void *user, const nl_field *value)
{
    otlp_records *r = user;
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string name = r->record.record->event;
    if (!nl_string_is(value->name, "body"))
        add_to(&r->record, value, r->s);
    else if (name.size == 0)
        set_member(r, &r->record, MEMBER_EVENT, value);
    else if (!nl_string_equals(nl_field_text(value, scratch), name))
        add_to(&r->record, value, r->s);
}

/*
 * Sets the event from eventName, and adds the fields of the body, unless the body only repeats the event, as in
 * NetLogger's own logs. Returns false on failure.
 */
static bool take_event(otlp_records *r, const otlp_value *event, const otlp_value *body)
{
    nl_string name;
    if (!otlp_text(&r->in, event, &name))
        return false;
    if (name.size > 0)
        set_text(&r->record, MEMBER_EVENT, name);
    return body->text.data == NULL || otlp_any(&r->in, TEXT("body"), body, take_body, r);
}

static bool read_log(otlp_records *r, const otlp_value *item)
{
    enum { TIME, OBSERVED, NUMBER, SEVERITY, EVENT, BODY, ATTRIBUTES, TRACE, SPAN, FLAGS };
    otlp_member m[] = {{.name = "timeUnixNano", .field = 1},
                       {.name = "observedTimeUnixNano", .field = 11},
                       {.name = "severityNumber", .field = 2},
                       {.name = "severityText", .field = 3},
                       {.name = "eventName", .field = 12},
                       {.name = "body", .field = 5},
                       {.name = "attributes", .field = 6, .repeated = true},
                       {.name = "traceId", .field = 9},
                       {.name = "spanId", .field = 10},
                       {.name = "flags", .field = 8}};
    uint64_t time_ns, observed_ns, severity, flags;
    nl_string text;
    if (!PICK(r, item, m) || !otlp_unsigned(&r->in, &m[TIME].value, &time_ns) ||
        !otlp_unsigned(&r->in, &m[OBSERVED].value, &observed_ns) ||
        !otlp_unsigned(&r->in, &m[NUMBER].value, &severity) || !otlp_text(&r->in, &m[SEVERITY].value, &text) ||
        !otlp_id(&r->in, &m[TRACE].value, &r->trace) || !otlp_id(&r->in, &m[SPAN].value, &r->span) ||
        !otlp_unsigned(&r->in, &m[FLAGS].value, &flags))
        return false;
    if (!begin_record(r, true))
        return false;
    add_text(&r->record, TEXT("TRACE.ID"), r->trace);
    add_text(&r->record, TEXT("SPAN.ID"), r->span);
    add_count(r, TEXT("TRACE.FLAGS"), flags);
    if (!take_event(r, &m[EVENT].value, &m[BODY].value) || !add_attributes(r, &m[ATTRIBUTES].value))
        return false;
    set_severity(r, severity, text);
    const otlp_value *member = time_ns != 0 ? &m[TIME].value : observed_ns != 0 ? &m[OBSERVED].value : &m[TIME].value;
    if (is_unset(&r->record, MEMBER_TIME) && !set_known_time(r, member, time_ns != 0 ? time_ns : observed_ns))
        return false;
    return put_record(r);
}

static bool take_log(void *user, const otlp_value *item)
{
    otlp_records *r = user;
    if (begin_item(r, item))
        read_log(r, item);
    return end_item(r, 1);
}

/* ---- spans: a record for the start, for each link, for each event, and for the end ---- */

static bool begin_span_record(otlp_records *r, bool surroundings, uint64_t time_ns, nl_string name, const char *suffix)
{
    size_t size = strlen(suffix);
    char *event = builder_bytes(&r->record, name.size + size);
    if (event == NULL)
        return otlp_fail(&r->in, "values are too long");
    if (name.size > 0)
        memcpy(event, name.data, name.size);
    memcpy(event + name.size, suffix, size);
    if (!begin_record(r, surroundings))
        return false;
    set_text(&r->record, MEMBER_EVENT, (nl_string){event, name.size + size});
    set_level(r, NL_USAGE);
    add_text(&r->record, TEXT("TRACE.ID"), r->trace);
    add_text(&r->record, TEXT("SPAN.ID"), r->span);
    return set_time(r, time_ns);
}

static bool take_span_event(void *user, const otlp_value *item)
{
    enum { TIME, NAME, ATTRIBUTES };
    otlp_records *r = user;
    otlp_member m[] = {{.name = "timeUnixNano", .field = 1},
                       {.name = "name", .field = 2},
                       {.name = "attributes", .field = 3, .repeated = true}};
    uint64_t time_ns;
    nl_string name;
    if (!PICK(r, item, m) || !otlp_unsigned(&r->in, &m[TIME].value, &time_ns) ||
        !otlp_text(&r->in, &m[NAME].value, &name) || !require_time(r, &m[TIME].value) ||
        !begin_span_record(r, false, time_ns, name, "") || !add_attributes(r, &m[ATTRIBUTES].value))
        return false;
    return put_record(r);
}

typedef struct span_parts {
    otlp_records *r;
    uint64_t start_ns, end_ns;
    bool ended;
    uint64_t dropped_attributes, dropped_events, dropped_links;
    nl_string name, parent;
    const otlp_value *links, *events, *status;
} span_parts;

static bool take_link(void *user, const otlp_value *item)
{
    enum { TRACE, SPAN, STATE, FLAGS, ATTRIBUTES };
    const span_parts *of = user;
    otlp_records *r = of->r;
    otlp_member m[] = {{.name = "traceId", .field = 1},
                       {.name = "spanId", .field = 2},
                       {.name = "traceState", .field = 3},
                       {.name = "flags", .field = 6},
                       {.name = "attributes", .field = 4, .repeated = true}};
    nl_string trace, span, state;
    uint64_t flags;
    if (!PICK(r, item, m) || !otlp_id(&r->in, &m[TRACE].value, &trace) || !otlp_id(&r->in, &m[SPAN].value, &span) ||
        !otlp_text(&r->in, &m[STATE].value, &state) || !otlp_unsigned(&r->in, &m[FLAGS].value, &flags) ||
        !begin_span_record(r, false, of->start_ns, of->name, ".link"))
        return false;
    add_text(&r->record, TEXT("LINK.TRACE"), trace);
    add_text(&r->record, TEXT("LINK.SPAN"), span);
    add_text(&r->record, TEXT("LINK.STATE"), state);
    add_count(r, TEXT("LINK.FLAGS"), flags);
    return add_attributes(r, &m[ATTRIBUTES].value) && put_record(r);
}

static nl_string kind_of(uint64_t kind)
{
    unsigned known = 0;
    while (known < kind && otlp_span_kinds[known] != NULL)
        known++;
    return nl_string_of(otlp_span_kinds[known] != NULL ? otlp_span_kinds[known] : "");
}

static bool put_span_end(span_parts *of)
{
    otlp_records *r = of->r;
    otlp_member m[] = {{.name = "message", .field = 2}, {.name = "code", .field = 3}};
    uint64_t code;
    nl_string message;
    if (!PICK(r, of->status, m) || !otlp_text(&r->in, &m[0].value, &message) ||
        !otlp_unsigned(&r->in, &m[1].value, &code) || !begin_span_record(r, false, of->end_ns, of->name, ".end"))
        return false;
    add_text(&r->record, TEXT("PARENT.ID"), of->parent);
    nl_field *field = builder_add_good_name(&r->record, TEXT("STATUS"));
    field->type = NL_TYPE_INT;
    field->int_value = code == 2 ? 2 : 0; /* "ok" and "unset" are successes */
    if (code == 1)
        add_text(&r->record, TEXT("STATUS.CODE"), TEXT("ok"));
    add_text(&r->record, TEXT("STATUS.MESSAGE"), message);
    add_count(r, TEXT("DROPPED.ATTRIBUTES"), of->dropped_attributes);
    add_count(r, TEXT("DROPPED.EVENTS"), of->dropped_events);
    add_count(r, TEXT("DROPPED.LINKS"), of->dropped_links);
    if (code == 2)
        set_level(r, NL_ERROR);
    return put_record(r);
}

/* Puts all records of a span except the first. Returns false on failure. */
static bool put_span_parts(span_parts *of)
{
    return otlp_each(&of->r->in, of->links, take_link, of) &&
           otlp_each(&of->r->in, of->events, take_span_event, of->r) && (!of->ended || put_span_end(of));
}

/* Returns false and sets the error if a part of the span is invalid. */
static bool check_span_parts(span_parts *of)
{
    otlp_records *r = of->r;
    const bool uses_field = r->s->about != NULL && r->s->about->time_field != NULL; /* as the time of each record */
    if (of->links->text.size == 0 && of->events->text.size == 0 && of->status->text.size == 0 && !uses_field)
        return true; /* the caller has checked the times */
    size_t used = r->record.bytes.size;
    r->checking = true;
    bool good = put_span_parts(of);
    r->checking = false;
    r->record.bytes.size = used;
    return good;
}

static bool read_span(otlp_records *r, const otlp_value *item)
{
    enum {
        TRACE,
        SPAN,
        STATE,
        PARENT,
        NAME,
        KIND,
        START,
        END,
        ATTRIBUTES,
        NO_ATTRIBUTES,
        EVENTS,
        NO_EVENTS,
        LINKS,
        NO_LINKS,
        STATUS,
        FLAGS
    };
    otlp_member m[] = {{.name = "traceId", .field = 1},
                       {.name = "spanId", .field = 2},
                       {.name = "traceState", .field = 3},
                       {.name = "parentSpanId", .field = 4},
                       {.name = "name", .field = 5},
                       {.name = "kind", .field = 6},
                       {.name = "startTimeUnixNano", .field = 7},
                       {.name = "endTimeUnixNano", .field = 8},
                       {.name = "attributes", .field = 9, .repeated = true},
                       {.name = "droppedAttributesCount", .field = 10},
                       {.name = "events", .field = 11, .repeated = true},
                       {.name = "droppedEventsCount", .field = 12},
                       {.name = "links", .field = 13, .repeated = true},
                       {.name = "droppedLinksCount", .field = 14},
                       {.name = "status", .field = 15},
                       {.name = "flags", .field = 16}};
    uint64_t start_ns, end_ns, kind, flags, no_attributes, no_events, no_links;
    nl_string parent, name, state;
    if (!PICK(r, item, m) || !otlp_id(&r->in, &m[TRACE].value, &r->trace) || !otlp_id(&r->in, &m[SPAN].value, &r->span))
        return false;
    if (r->known != NULL)
        r->known->expect(r->trace, r->span);
    if (!otlp_id(&r->in, &m[PARENT].value, &parent) || !otlp_text(&r->in, &m[NAME].value, &name) ||
        !otlp_text(&r->in, &m[STATE].value, &state) || !otlp_unsigned(&r->in, &m[KIND].value, &kind) ||
        !otlp_unsigned(&r->in, &m[START].value, &start_ns) || !otlp_unsigned(&r->in, &m[END].value, &end_ns) ||
        !otlp_unsigned(&r->in, &m[FLAGS].value, &flags) ||
        !otlp_unsigned(&r->in, &m[NO_ATTRIBUTES].value, &no_attributes) ||
        !otlp_unsigned(&r->in, &m[NO_EVENTS].value, &no_events) ||
        !otlp_unsigned(&r->in, &m[NO_LINKS].value, &no_links))
        return false;
    if (r->span.size == 0 || r->trace.size == 0)
        return otlp_fail(&r->in, "a span has no trace ID or no span ID");
    if (end_ns > INT64_MAX)
        return otlp_fail(&r->in, "invalid time");
    if (!require_time(r, &m[START].value))
        return false;
    if (r->known != NULL && r->known->has(r->trace, r->span))
        return true;
    /* An end time of 0 means that the span has not ended, unless the span also starts at 0. */
    bool ended = end_ns != 0 || (start_ns == 0 && has_time(r, &m[END].value));
    span_parts parts = {.r = r,
                        .start_ns = start_ns,
                        .end_ns = end_ns,
                        .ended = ended,
                        .dropped_attributes = no_attributes,
                        .dropped_events = no_events,
                        .dropped_links = no_links,
                        .name = name,
                        .parent = parent,
                        .links = &m[LINKS].value,
                        .events = &m[EVENTS].value,
                        .status = &m[STATUS].value};
    if (!check_span_parts(&parts) || !begin_span_record(r, true, start_ns, name, ".start"))
        return false;
    add_text(&r->record, TEXT("PARENT.ID"), parent);
    add_text(&r->record, TEXT("SPAN.KIND"), kind_of(kind));
    add_text(&r->record, TEXT("TRACE.STATE"), state);
    add_count(r, TEXT("TRACE.FLAGS"), flags);
    return add_attributes(r, &m[ATTRIBUTES].value) && put_record(r) && put_span_parts(&parts);
}

static bool take_span(void *user, const otlp_value *item)
{
    otlp_records *r = user;
    if (begin_item(r, item) && read_span(r, item) && r->in.error == NULL && r->known != NULL)
        r->known->add(r->trace, r->span);
    return end_item(r, 1);
}

/* ---- metrics: a record for each data point ---- */

/* The protobuf field numbers of a kind of data point; 0 means that the kind does not have the field. */
typedef struct point_kind {
    uint32_t attributes, as_double, as_int, count, sum, min, max, counts, bounds;
} point_kind;

typedef struct metric {
    otlp_records *r;
    const point_kind *kind;
    nl_string name, unit;
    uint64_t temporality;
    bool monotonic;
} metric;

static bool begin_point(const metric *m, const otlp_value *time, uint64_t time_ns, uint64_t since_ns)
{
    static const char *const temporalities[] = {"", "delta", "cumulative"};
    otlp_records *r = m->r;
    if (!begin_record(r, true))
        return false;
    set_text(&r->record, MEMBER_EVENT, m->name);
    set_level(r, NL_USAGE);
    if (!set_known_time(r, time, time_ns))
        return false;
    add_text(&r->record, TEXT("UNIT"), m->unit);
    if (m->temporality == 1 || m->temporality == 2) {
        const char *name = temporalities[m->temporality];
        add_text(&r->record, TEXT("TEMPORALITY"), nl_string_of(name));
        nl_field *field = builder_add_good_name(&r->record, TEXT("SINCE.NS"));
        field->type = NL_TYPE_UINT;
        field->uint_value = since_ns;
    }
    if (m->monotonic) {
        nl_field *field = builder_add_good_name(&r->record, TEXT("MONOTONIC"));
        field->type = NL_TYPE_BOOL;
        field->bool_value = true;
    }
    return true;
}

/* Adds the mean of a histogram, which nlv can draw as a loadline. Returns false on failure. */
static bool add_mean(otlp_records *r, const otlp_value *count, const otlp_value *sum)
{
    uint64_t number;
    nl_field total = {0};
    if (!otlp_unsigned(&r->in, count, &number))
        return false;
    if (number == 0 || sum->text.data == NULL)
        return true;
    if (!otlp_double_field(&r->in, sum, &total))
        return false;
    nl_field *field = builder_add_good_name(&r->record, TEXT("MEAN"));
    field->type = NL_TYPE_DOUBLE;
    field->double_value = total.double_value / (double)number;
    return true;
}

static bool add_numbers(otlp_records *r, nl_string name, const otlp_value *list, bool doubles)
{
    nl_string text;
    nl_buffer out = {0};
    if (list->text.data == NULL)
        return true;
    bool good =
        otlp_put_numbers(&r->in, list, doubles, &out) && otlp_keep(&r->in, (nl_string){out.data, out.size}, &text);
    nl_buffer_free(&out);
    if (good)
        add_text(&r->record, name, text);
    return good;
}

static bool read_point(const metric *of, const otlp_value *item)
{
    enum { SINCE, TIME, DOUBLE, INT, COUNT, SUM, MIN, MAX, COUNTS, BOUNDS, ATTRIBUTES };
    const point_kind *k = of->kind;
    otlp_records *r = of->r;
    otlp_member m[] = {{.name = "startTimeUnixNano", .field = 2},
                       {.name = "timeUnixNano", .field = 3},
                       {.name = "asDouble", .field = k->as_double},
                       {.name = "asInt", .field = k->as_int},
                       {.name = "count", .field = k->count},
                       {.name = "sum", .field = k->sum},
                       {.name = "min", .field = k->min},
                       {.name = "max", .field = k->max},
                       {.name = "bucketCounts", .field = k->counts, .repeated = true},
                       {.name = "explicitBounds", .field = k->bounds, .repeated = true},
                       {.name = "attributes", .field = k->attributes, .repeated = true}};
    uint64_t time_ns, since_ns;
    if (!PICK(r, item, m) || !otlp_unsigned(&r->in, &m[TIME].value, &time_ns) ||
        !otlp_unsigned(&r->in, &m[SINCE].value, &since_ns) || !begin_point(of, &m[TIME].value, time_ns, since_ns) ||
        !add_number(r, TEXT("VALUE"), &m[DOUBLE].value, otlp_double_field) ||
        !add_number(r, TEXT("VALUE"), &m[INT].value, otlp_integer_field) ||
        !add_number(r, TEXT("COUNT"), &m[COUNT].value, otlp_integer_field) ||
        !add_number(r, TEXT("SUM"), &m[SUM].value, otlp_double_field) || !add_mean(r, &m[COUNT].value, &m[SUM].value) ||
        !add_number(r, TEXT("MIN"), &m[MIN].value, otlp_double_field) ||
        !add_number(r, TEXT("MAX"), &m[MAX].value, otlp_double_field) ||
        !add_numbers(r, TEXT("BUCKETS"), &m[COUNTS].value, false) ||
        !add_numbers(r, TEXT("BOUNDS"), &m[BOUNDS].value, true) || !add_attributes(r, &m[ATTRIBUTES].value))
        return false;
    return put_record(r);
}

static bool take_point(void *user, const otlp_value *item)
{
    const metric *m = user;
    read_point(m, item);
    return end_item(m->r, 1);
}

static bool is_true(const otlp_records *r, const otlp_value *value)
{
    return r->in.json ? nl_string_is(value->text, "true") : value->number != 0;
}

static bool read_points(metric *m, const otlp_value *points)
{
    otlp_records *r = m->r;
    otlp_member list[] = {{.name = "dataPoints", .field = 1, .repeated = true},
                          {.name = "aggregationTemporality", .field = 2},
                          {.name = "isMonotonic", .field = 3}};
    if (!PICK(r, points, list) || !otlp_unsigned(&r->in, &list[1].value, &m->temporality))
        return false;
    m->monotonic = is_true(r, &list[2].value);
    return otlp_each(&r->in, &list[0].value, take_point, m);
}

static bool read_metric(otlp_records *r, const otlp_value *item)
{
    enum { NAME, UNIT, KINDS, KIND_COUNT = 5 };
    static const point_kind kinds[KIND_COUNT] = {
        {.attributes = 7, .as_double = 4, .as_int = 6},
        {.attributes = 7, .as_double = 4, .as_int = 6},
        {.attributes = 9, .count = 4, .sum = 5, .min = 11, .max = 12, .counts = 6, .bounds = 7},
        {.attributes = 1, .count = 4, .sum = 5, .min = 12, .max = 13},
        {.attributes = 7, .count = 4, .sum = 5}};
    otlp_member m[] = {{.name = "name", .field = 1},      {.name = "unit", .field = 3},
                       {.name = "gauge", .field = 5},     {.name = "sum", .field = 7},
                       {.name = "histogram", .field = 9}, {.name = "exponentialHistogram", .field = 10},
                       {.name = "summary", .field = 11}};
    metric of = {.r = r};
    if (!PICK(r, item, m) || !otlp_text(&r->in, &m[NAME].value, &of.name) ||
        !otlp_text(&r->in, &m[UNIT].value, &of.unit))
        return false;
    for (int i = 0; i < KIND_COUNT; i++) {
        of.kind = &kinds[i];
        if (m[KINDS + i].value.text.data != NULL)
            return read_points(&of, &m[KINDS + i].value);
    }
    return true;
}

static bool take_metric(void *user, const otlp_value *item)
{
    otlp_records *r = user;
    if (!begin_item(r, item) || !read_metric(r, item))
        end_item(r, r->in.error != NULL);
    return !r->s->stopped;
}

/* ---- scopes and requests ---- */

static const struct {
    const char *resources, *scopes, *items;
    bool (*take)(void *user, const otlp_value *item);
} signals[OTLP_SIGNAL_COUNT] = {
    [OTLP_TRACES] = {"resourceSpans", "scopeSpans", "spans", take_span},
    [OTLP_LOGS] = {"resourceLogs", "scopeLogs", "logRecords", take_log},
    [OTLP_METRICS] = {"resourceMetrics", "scopeMetrics", "metrics", take_metric},
};

typedef struct request {
    otlp_records *r;
    otlp_signal signal;
    otlp_value resource;
} request;

/*
 * Reads the fields of the resource and the scope, which the first record of each item contains. Returns false on
 * failure.
 */
static bool read_surroundings(otlp_records *r, const otlp_value *resource, const otlp_value *scope)
{
    otlp_member of_resource[] = {{.name = "attributes", .field = 1, .repeated = true}};
    otlp_member of_scope[] = {{.name = "name", .field = 1},
                              {.name = "version", .field = 2},
                              {.name = "attributes", .field = 3, .repeated = true}};
    nl_string name, version;
    size_t size = resource->text.size + scope->text.size;
    if (r->limits.item_max != 0 && size > r->limits.item_max)
        return otlp_fail(&r->in, "a resource is longer than max-record-size");
    builder_begin(&r->around, EXPANSION * size + EXTRA);
    r->in.builder = &r->around;
    r->in.kinds.size = 0;
    if (!PICK(r, resource, of_resource) || !otlp_each(&r->in, &of_resource[0].value, add_resource_attribute, r) ||
        !PICK(r, scope, of_scope) || !otlp_text(&r->in, &of_scope[0].value, &name) ||
        !otlp_text(&r->in, &of_scope[1].value, &version))
        return false;
    bool own = name.size == 0 || nl_string_is(name, OTLP_SCOPE);
    if (own && r->around.count == 0 && version.size == 0 && of_scope[2].value.text.data == NULL)
        return true;
    if (!add_kinds(r, &r->around))
        return false;
    nl_field *field = builder_add_good_name(&r->around, TEXT(OTLP_SCOPE_NAME));
    field->type = NL_TYPE_STRING;
    field->string = name.data != NULL ? name : TEXT("");
    add_text(&r->around, TEXT(OTLP_SCOPE_VERSION), version);
    return otlp_each(&r->in, &of_scope[2].value, add_scope_attribute, r) && add_kinds(r, &r->around);
}

static bool take_scope(void *user, const otlp_value *scope)
{
    const request *q = user;
    otlp_records *r = q->r;
    otlp_member m[] = {{.name = "scope", .field = 1}, {.name = signals[q->signal].items, .field = 2, .repeated = true}};
    r->in.builder = &r->record;
    builder_begin(&r->record, EXTRA);
    if (PICK(r, scope, m) && read_surroundings(r, &q->resource, &m[0].value))
        otlp_each(&r->in, &m[1].value, signals[q->signal].take, r);
    if (r->in.error != NULL)
        end_item(r, 1);
    return !r->s->stopped;
}

static bool take_resource(void *user, const otlp_value *resource)
{
    request *q = user;
    otlp_records *r = q->r;
    otlp_member m[] = {{.name = "resource", .field = 1},
                       {.name = signals[q->signal].scopes, .field = 2, .repeated = true}};
    r->in.builder = &r->record;
    if (PICK(r, resource, m)) {
        q->resource = m[0].value;
        otlp_each(&r->in, &m[1].value, take_scope, q);
    }
    if (r->in.error != NULL)
        end_item(r, 1);
    return !r->s->stopped;
}

otlp_outcome otlp_records_read(otlp_records *r, otlp_signal signal, bool json, nl_string text,
                               const otlp_limits *limits, sink *s)
{
    r->in = (otlp_input){.builder = &r->record, .json = json, .kinds = r->in.kinds};
    r->limits = *limits;
    r->s = s;
    r->outcome = (otlp_outcome){0};
    r->text = 0;
    builder_begin(&r->record, text.size + EXTRA);
    otlp_value whole = otlp_whole((nl_string){text.data != NULL ? text.data : "", text.size});
    otlp_member m[OTLP_SIGNAL_COUNT] = {0};
    bool found = false, other = false;
    for (otlp_signal i = 0; i < OTLP_SIGNAL_COUNT; i++)
        m[i] = (otlp_member){.name = signals[i].resources, .field = i == signal, .repeated = true};
    bool good = PICK(r, &whole, m);
    for (otlp_signal i = 0; i < OTLP_SIGNAL_COUNT && good; i++) {
        request q = {.r = r, .signal = i};
        if (m[i].value.text.data == NULL)
            continue;
        if (signal != i && signal != OTLP_SIGNAL_COUNT) {
            other = true;
            continue;
        }
        found = true;
        otlp_each(&r->in, &m[i].value, take_resource, &q);
    }
    if (good && !found && signal == OTLP_SIGNAL_COUNT)
        otlp_fail(&r->in, "contains no resourceLogs, resourceSpans or resourceMetrics");
    if (other && !found)
        otlp_fail(&r->in, "the path of the request is for another kind of data");
    if (r->in.error != NULL)
        end_item(r, 1);
    return r->outcome;
}

otlp_records *otlp_records_new(const otlp_known_spans *known)
{
    otlp_records *r = nl_memory_check(calloc(1, sizeof *r));
    r->known = known;
    return r;
}

void otlp_records_free(otlp_records *r)
{
    builder_free(&r->record);
    builder_free(&r->around);
    nl_buffer_free(&r->in.kinds);
    free(r);
}
