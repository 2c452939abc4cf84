#include "config.h"

#include "base/text.h"
#include "convert/otlp_put.h"

#include "base/time_internal.h"

#include <ctype.h>

/* ---- the parts of a record ---- */

/* Indexes of fields (see OTLP_SCOPE_NAME): where the scope begins, and where the item begins. */
typedef struct record_parts {
    size_t scope, item;
} record_parts;

static record_parts record_parts_of(const nl_record *record)
{
    static const nl_string prefix = {OTLP_SCOPE_PREFIX, sizeof OTLP_SCOPE_PREFIX - 1};
    const nl_field *fields = record->fields;
    size_t i = 0, count = record->field_count, scope;
    while (i < count && !nl_string_is(fields[i].name, OTLP_SCOPE_NAME))
        i++;
    if (i == count)
        return (record_parts){0};
    scope = i++;
    while (i < count && fields[i].name.size > prefix.size && memcmp(fields[i].name.data, prefix.data, prefix.size) == 0)
        i++;
    return (record_parts){scope, i < count && nl_string_is(fields[i].name, OTLP_KINDS) ? i + 1 : i};
}

/* Adds a field to those that become attributes. If the field is OTLP_KINDS, stores its value in f->kinds instead. */
static void choose_field(otlp_fields *f, const nl_field *field)
{
    if (!nl_string_is(field->name, OTLP_KINDS))
        otlp_fields_add(f, field);
    else if (field->type == NL_TYPE_STRING && field->string.size <= OTLP_KINDS_MAX)
        f->kinds = field->string;
}

/* Chooses the fields [begin, end) of a record, and forgets the previous choice. */
static void choose_fields(otlp_fields *f, const nl_record *record, size_t begin, size_t end)
{
    otlp_fields_clear(f);
    for (size_t i = begin; i < end; i++)
        choose_field(f, &record->fields[i]);
}

/* ---- sources ---- */

static void note_text(nl_buffer *source, nl_string text)
{
    size_t size = text.data != NULL ? text.size : SIZE_MAX;
    nl_buffer_append(source, &size, sizeof size);
    nl_buffer_append(source, text.data, text.size);
}

/* Sets e->next to bytes that are equal for records of the same source. */
static void note_source(otlp_encoder *e, const nl_record *record, record_parts parts)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    e->next.size = 0;
    note_text(&e->next, record->host);
    note_text(&e->next, record->prog);
    for (size_t i = 0; i < parts.item; i++) {
        const nl_field *field = &record->fields[i];
        char type = (char)field->type;
        note_text(&e->next, field->name);
        nl_buffer_append(&e->next, &type, 1);
        note_text(&e->next, nl_field_text(field, scratch));
    }
}

bool otlp_is_source(otlp_encoder *e, const nl_record *record)
{
    if (!e->open)
        return false;
    note_source(e, record, record_parts_of(record));
    return e->next.size == e->source.size && memcmp(e->next.data, e->source.data, e->next.size) == 0;
}

static void encode_resource(otlp_encoder *e, const nl_record *record, record_parts parts)
{
    choose_fields(&e->fields, record, 0, parts.scope);
    keys_begin(&e->keys, parts.item + 2);
    keys_count(&e->keys, (nl_string){"host.name", 9});
    keys_count(&e->keys, (nl_string){"service.name", 12});
    begin_message(e, NAME("resource"), OF_RESOURCE);
    begin_list(e, NAME("attributes"));
    if (record->host.data != NULL)
        otlp_put_attribute(e, RESOURCE_ATTRIBUTE, "host.name", record->host);
    if (record->prog.data != NULL)
        otlp_put_attribute(e, RESOURCE_ATTRIBUTE, "service.name", record->prog);
    otlp_put_fields(e, RESOURCE_ATTRIBUTE, &e->fields, 0);
    end_list(e);
    end_message(e);
}

static void encode_scope(otlp_encoder *e, const nl_record *record, record_parts parts)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string name = {OTLP_SCOPE, strlen(OTLP_SCOPE)};
    size_t i = parts.scope;
    begin_message(e, NAME("scope"), SCOPE);
    if (i < parts.item)
        name = nl_field_text(&record->fields[i++], scratch);
    encode_valid_text(e, NAME("name"), SCOPE_NAME, name);
    if (i < parts.item && nl_string_is(record->fields[i].name, OTLP_SCOPE_VERSION))
        encode_valid_text(e, NAME("version"), SCOPE_VERSION, nl_field_text(&record->fields[i++], scratch));
    choose_fields(&e->fields, record, i, parts.item);
    if (e->fields.count > 0) {
        begin_list(e, NAME("attributes"));
        otlp_put_fields(e, SCOPE_ATTRIBUTE, &e->fields, strlen(OTLP_SCOPE_PREFIX));
        end_list(e);
    }
    end_message(e);
}

void otlp_begin_source(otlp_encoder *e, bool spans, const nl_record *record)
{
    record_parts parts = record_parts_of(record);
    note_source(e, record, parts);
    nl_buffer before = e->source;
    e->source = e->next;
    e->next = before;
    e->open = true;
    e->comma = false;
    if (e->json)
        ENCODE_PUT(e->out, "{");
    begin_list(e, spans ? NAME("resourceSpans") : NAME("resourceLogs"));
    begin_element(e, REQUEST_RESOURCE);
    encode_resource(e, record, parts);
    begin_list(e, spans ? NAME("scopeSpans") : NAME("scopeLogs"));
    begin_element(e, OF_SCOPE);
    encode_scope(e, record, parts);
    begin_list(e, spans ? NAME("spans") : NAME("logRecords"));
}

void otlp_end_source(otlp_encoder *e)
{
    if (!e->open)
        return;
    e->open = false;
    end_list(e);
    end_message(e);
    end_list(e);
    end_message(e);
    end_list(e);
    if (e->json)
        ENCODE_PUT(e->out, "}");
}

/* ---- identifiers ---- */

otlp_id_kind otlp_id_kind_of(nl_string name)
{
    static const struct {
        const char *letters;
        otlp_id_kind kind;
    } names[] = {{"traceid", OTLP_ID_TRACE},
                 {"spanid", OTLP_ID_SPAN},
                 {"parentid", OTLP_ID_PARENT},
                 {"parentspanid", OTLP_ID_PARENT}};
    char letters[16];
    size_t count = 0;
    for (size_t i = 0; i < name.size; i++)
        if (isalnum((unsigned char)name.data[i])) {
            if (count == sizeof letters - 1)
                return OTLP_ID_NONE;
            letters[count++] = (char)tolower((unsigned char)name.data[i]);
        }
    letters[count] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(letters, names[i].letters) == 0)
            return names[i].kind;
    return OTLP_ID_NONE;
}

nl_string otlp_record_id(const nl_record *record, otlp_id_kind kind, char scratch[NL_FIELD_TEXT_SIZE])
{
    for (size_t i = 0; i < record->field_count; i++)
        if (otlp_id_kind_of(record->fields[i].name) == kind)
            return nl_field_text(&record->fields[i], scratch);
    return (nl_string){"", 0};
}

bool otlp_is_id(nl_string text, size_t digits)
{
    bool zero = true;
    for (size_t i = 0; i < text.size; i++) {
        if (!isxdigit((unsigned char)text.data[i]))
            return false;
        zero = zero && text.data[i] == '0';
    }
    return text.size == digits && !zero;
}

/* ---- log records ---- */

/* The SeverityNumber of each level. OTLP has one name for each range of four numbers. */
static const unsigned char severities[] = {
    [NL_EMERGENCY] = 24, [NL_ALERT] = 21, [NL_ERROR] = 17,  [NL_WARNING] = 13,   [NL_AUTH] = 10,
    [NL_SECURITY] = 14,  [NL_USAGE] = 9,  [NL_SYSTEM] = 11, [NL_IMPORTANT] = 12, [NL_DEBUG] = 5};

/*
 * Encodes the level of a log record. Returns whether the level also needs an attribute of NetLogger (OTLP_LEVEL_KEY).
 */
static bool encode_level(otlp_encoder *e, const nl_record *record)
{
    nl_string text = level_as_text(record);
    if (record->level != NL_LEVEL_NONE)
        encode_small(e, NAME("severityNumber"), LOG_SEVERITY_NUMBER, severities[record->level]);
    return text.data != NULL && (text.size == 0 || !encode_text(e, NAME("severityText"), LOG_SEVERITY_TEXT, text));
}

static void encode_event(otlp_encoder *e, nl_string event)
{
    if (event.data == NULL)
        return;
    if (event.size > 0)
        encode_text(e, NAME("eventName"), LOG_EVENT_NAME, event);
    begin_message(e, NAME("body"), LOG_BODY);
    otlp_put_any_text(e, event);
    end_message(e);
}

/*
 * Returns the record's first field of this kind. Returns NULL if the record has no such field, or the field is not a
 * valid identifier with this number of digits.
 */
static const nl_field *find_context(const nl_record *record, otlp_id_kind kind, size_t digits)
{
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        if (otlp_id_kind_of(field->name) == kind)
            return field->type == NL_TYPE_STRING && otlp_is_id(field->string, digits) ? field : NULL;
    }
    return NULL;
}

/* Sets *number to the value of a field with this name. Returns false for other fields, and for invalid numbers. */
static bool is_small(const nl_field *field, const char *name, uint32_t *number)
{
    int64_t value;
    if (!nl_string_is(field->name, name) || !nl_field_int(field, &value) || value < 0 || value > UINT32_MAX)
        return false;
    *number = (uint32_t)value;
    return true;
}

void otlp_encode_log(otlp_encoder *e, const nl_record *record)
{
    char time[NL_TIME_TEXT_SIZE];
    const nl_field *trace = e->contexts ? find_context(record, OTLP_ID_TRACE, OTLP_TRACE_DIGITS) : NULL;
    const nl_field *span = e->contexts ? find_context(record, OTLP_ID_SPAN, OTLP_SPAN_DIGITS) : NULL;
    uint32_t flags = 0;
    begin_element(e, SCOPE_ITEM);
    encode_time(e, NAME("timeUnixNano"), LOG_TIME, record->time_ns);
    bool own_level = encode_level(e, record);
    encode_event(e, record->event);
    if (trace != NULL)
        encode_id(e, NAME("traceId"), LOG_TRACE, trace->string);
    if (span != NULL)
        encode_id(e, NAME("spanId"), LOG_SPAN, span->string);
    otlp_fields_clear(&e->fields);
    for (size_t i = record_parts_of(record).item; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        if (field != trace && field != span && (trace == NULL || flags != 0 || !is_small(field, "TRACE.FLAGS", &flags)))
            choose_field(&e->fields, field);
    }
    if (flags != 0)
        encode_flags(e, NAME("flags"), LOG_FLAGS, flags);
    begin_list(e, NAME("attributes"));
    if (record->time_ns < 0)
        otlp_put_attribute(e, LOG_ATTRIBUTE, OTLP_TIME_KEY,
                           (nl_string){time, nl_time_format_iso(record->time_ns, time)});
    if (own_level)
        otlp_put_attribute(e, LOG_ATTRIBUTE, OTLP_LEVEL_KEY, level_as_text(record));
    keys_begin(&e->keys, record->field_count + 2);
    keys_count(&e->keys, nl_string_of(OTLP_TIME_KEY));
    keys_count(&e->keys, nl_string_of(OTLP_LEVEL_KEY));
    otlp_put_fields(e, LOG_ATTRIBUTE, &e->fields, 0);
    end_list(e);
    end_message(e);
}

/* ---- spans ---- */

bool otlp_has_field(const nl_record *record, const nl_field *field)
{
    char one[NL_FIELD_TEXT_SIZE], other[NL_FIELD_TEXT_SIZE];
    const nl_string text = nl_field_text(field, one);
    for (size_t i = 0; record != NULL && i < record->field_count; i++)
        if (nl_string_equals(record->fields[i].name, field->name) &&
            nl_string_equals(nl_field_text(&record->fields[i], other), text))
            return true;
    return false;
}

/*
 * Returns whether a field is the phase or the duration of a span in Chrome's traces. These fields repeat the times of
 * the OTLP span.
 */
static bool is_chrome_time(const nl_record *record, const nl_field *field)
{
    nl_field phase;
    bool is_phase = nl_string_is(field->name, "ph"), is_duration = nl_string_is(field->name, "dur");
    return (is_phase || is_duration) && nl_record_find(record, "ph", &phase) && phase.type == NL_TYPE_STRING &&
           phase.string.size == 1 && strchr("BEX", *phase.string.data) != NULL;
}

const char *const otlp_span_kinds[] = {"", "internal", "server", "client", "producer", "consumer", NULL};

unsigned otlp_span_kind_of(const nl_field *field)
{
    if (nl_string_is(field->name, "SPAN.KIND") && field->type == NL_TYPE_STRING)
        for (unsigned i = 1; otlp_span_kinds[i] != NULL; i++)
            if (nl_string_is(field->string, otlp_span_kinds[i]))
                return i;
    return 0;
}

/* Members of a span whose values are texts or numbers in fields of the span's records. */
typedef struct span_members {
    unsigned kind;
    nl_string state;
    uint32_t flags, dropped_attributes, dropped_events, dropped_links;
} span_members;

/* Notes the value of a field that becomes a member of the span. Returns false if the field becomes an attribute. */
static bool take_member(const otlp_span *span, const nl_field *field, span_members *m)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = nl_field_text(field, scratch);
    unsigned kind = otlp_span_kind_of(field);
    if (kind != 0) {
        m->kind = m->kind != 0 ? m->kind : kind;
        return true;
    }
    if (nl_string_is(field->name, "TRACE.STATE") && field->type == NL_TYPE_STRING && m->state.size == 0) {
        m->state = text;
        return true;
    }
    return is_small(field, "TRACE.FLAGS", &m->flags) || is_small(field, "DROPPED.ATTRIBUTES", &m->dropped_attributes) ||
           is_small(field, "DROPPED.EVENTS", &m->dropped_events) ||
           is_small(field, "DROPPED.LINKS", &m->dropped_links) ||
           (span->message.data != NULL && nl_string_is(field->name, "STATUS.MESSAGE")) ||
           (span->ok && nl_string_is(field->name, "STATUS.CODE") && nl_string_is(text, "ok")) ||
           (nl_string_is(field->name, "STATUS") && nl_string_is(text, span->failed ? "2" : "0"));
}

typedef struct link_members {
    nl_string trace, span, state;
    uint32_t flags;
} link_members;

/* Like take_member, for a link. */
static bool take_link_member(const nl_field *field, link_members *m)
{
    if (is_small(field, "LINK.FLAGS", &m->flags))
        return true;
    const struct {
        const char *name;
        nl_string *value;
        size_t digits; /* number of digits of an identifier, or 0 */
    } texts[] = {{"LINK.TRACE", &m->trace, OTLP_TRACE_DIGITS},
                 {"LINK.SPAN", &m->span, OTLP_SPAN_DIGITS},
                 {"LINK.STATE", &m->state, 0}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].value->size == 0 && field->type == NL_TYPE_STRING && nl_string_is(field->name, texts[i].name) &&
            (texts[i].digits == 0 || otlp_is_id(field->string, texts[i].digits))) {
            *texts[i].value = field->string;
            return true;
        }
    return false;
}

/*
 * Begins to choose the fields of a record that become attributes. Returns the index of the first field to consider.
 * `ids` notes the kinds of identifiers that were found.
 */
static size_t begin_choice(otlp_encoder *e, const nl_record *record, unsigned *ids)
{
    *ids = 0;
    otlp_fields_clear(&e->fields);
    return record_parts_of(record).item;
}

/*
 * Returns whether a field repeats another member of the span: the field is the first identifier of its kind, or a time
 * field of Chrome's traces.
 */
static bool is_repeated(const nl_record *record, const nl_field *field, unsigned *ids)
{
    otlp_id_kind kind = otlp_id_kind_of(field->name);
    if (kind != OTLP_ID_NONE && (*ids & 1u << kind) == 0) {
        *ids |= 1u << kind;
        return true;
    }
    return is_chrome_time(record, field);
}

/* Begins a list of attributes that have at most this number of fields. */
static void begin_attributes(otlp_encoder *e, size_t field_count)
{
    keys_begin(&e->keys, field_count + 1);
    begin_list(e, NAME("attributes"));
}

/*
 * Encodes the fields of a span's two records as attributes. If both records have an equal field, encodes it once. Sets
 * the span's other members.
 */
static void encode_span_attributes(otlp_encoder *e, const otlp_span *span, const nl_record *begin, const nl_record *end,
                                   span_members *m)
{
    const nl_record *records[] = {begin, end};
    unsigned ids;
    begin_attributes(e, (begin != NULL ? begin->field_count : 0) + (end != NULL ? end->field_count : 0));
    for (int k = 0; k < 2; k++) {
        if (records[k] == NULL)
            continue;
        for (size_t i = begin_choice(e, records[k], &ids); i < records[k]->field_count; i++) {
            const nl_field *field = &records[k]->fields[i];
            if (!is_repeated(records[k], field, &ids) && !take_member(span, field, m) &&
                (k == 0 || !otlp_has_field(begin, field)))
                choose_field(&e->fields, field);
        }
        otlp_put_fields(e, SPAN_ATTRIBUTE, &e->fields, 0);
    }
    end_list(e);
}

/*
 * Encodes the chosen fields and the level of a record in a span. Omits the level Usage, because the reader gives this
 * level to all records in a span.
 */
static void encode_point_attributes(otlp_encoder *e, unsigned list, const nl_record *record)
{
    begin_attributes(e, record->field_count + 1);
    if (record->level_text.data != NULL && record->level != NL_USAGE) {
        keys_count(&e->keys, nl_string_of(OTLP_LEVEL_KEY));
        otlp_put_attribute(e, list, OTLP_LEVEL_KEY, level_as_text(record));
    }
    otlp_put_fields(e, list, &e->fields, 0);
    end_list(e);
}

static void lose_time(otlp_encoder *e, int64_t time_ns)
{
    if (time_ns < 0 && e->s != NULL)
        sink_lose(e->s, LOSS_TIMES);
}

static void encode_count(otlp_encoder *e, const char *name, unsigned field, uint32_t count)
{
    if (count > 0)
        encode_small(e, name, field, count);
}

void otlp_span_set_status(otlp_span *span, const nl_record *end)
{
    nl_field field;
    if (nl_record_find(end, "STATUS.MESSAGE", &field) && field.type == NL_TYPE_STRING)
        span->message = field.string;
    span->ok = !span->failed && nl_record_find(end, "STATUS.CODE", &field) && field.type == NL_TYPE_STRING &&
               nl_string_is(field.string, "ok");
}

static void encode_status(otlp_encoder *e, const otlp_span *span)
{
    if (!span->failed && !span->ok && span->message.data == NULL)
        return;
    begin_message(e, NAME("status"), SPAN_STATUS);
    if (span->message.data != NULL)
        encode_valid_text(e, NAME("message"), STATUS_MESSAGE, span->message);
    encode_small(e, NAME("code"), STATUS_CODE, span->failed ? 2 : span->ok ? 1 : 0);
    end_message(e);
}

void otlp_begin_span(otlp_encoder *e, const otlp_span *span, const nl_record *begin, const nl_record *end)
{
    span_members m = {0};
    begin_element(e, SCOPE_ITEM);
    encode_id(e, NAME("traceId"), SPAN_TRACE, span->trace);
    encode_id(e, NAME("spanId"), SPAN_ID, span->span);
    if (span->parent.data != NULL)
        encode_id(e, NAME("parentSpanId"), SPAN_PARENT, span->parent);
    encode_valid_text(e, NAME("name"), SPAN_NAME, span->name);
    lose_time(e, span->begin_ns);
    encode_time(e, NAME("startTimeUnixNano"), SPAN_START, span->begin_ns);
    lose_time(e, span->end_ns);
    encode_time(e, NAME("endTimeUnixNano"), SPAN_END, span->end_ns);
    encode_span_attributes(e, span, begin, end, &m);
    encode_small(e, NAME("kind"), SPAN_KIND, m.kind != 0 ? m.kind : 1); /* internal */
    if (m.state.size > 0)
        encode_valid_text(e, NAME("traceState"), SPAN_STATE, m.state);
    if (m.flags != 0)
        encode_flags(e, NAME("flags"), SPAN_FLAGS, m.flags);
    encode_status(e, span);
    encode_count(e, NAME("droppedAttributesCount"), SPAN_DROPPED_ATTRIBUTES, m.dropped_attributes);
    encode_count(e, NAME("droppedEventsCount"), SPAN_DROPPED_EVENTS, m.dropped_events + span->dropped_events);
    encode_count(e, NAME("droppedLinksCount"), SPAN_DROPPED_LINKS, m.dropped_links);
    e->linking = false;
    begin_list(e, NAME("events"));
}

void otlp_encode_point(otlp_encoder *e, const nl_record *record)
{
    unsigned ids;
    begin_element(e, SPAN_EVENT);
    lose_time(e, record->time_ns);
    encode_time(e, NAME("timeUnixNano"), EVENT_TIME, record->time_ns);
    encode_valid_text(e, NAME("name"), EVENT_NAME, record->event);
    for (size_t i = begin_choice(e, record, &ids); i < record->field_count; i++)
        if (!is_repeated(record, &record->fields[i], &ids))
            choose_field(&e->fields, &record->fields[i]);
    encode_point_attributes(e, EVENT_ATTRIBUTE, record);
    end_message(e);
}

bool otlp_is_link(const nl_record *record, nl_string span_name)
{
    static const char suffix[] = ".link";
    nl_field trace, span;
    nl_string event = record->event;
    return event.size == span_name.size + strlen(suffix) && memcmp(event.data, span_name.data, span_name.size) == 0 &&
           memcmp(event.data + span_name.size, suffix, strlen(suffix)) == 0 &&
           nl_record_find(record, "LINK.TRACE", &trace) && trace.type == NL_TYPE_STRING &&
           otlp_is_id(trace.string, OTLP_TRACE_DIGITS) && nl_record_find(record, "LINK.SPAN", &span) &&
           span.type == NL_TYPE_STRING && otlp_is_id(span.string, OTLP_SPAN_DIGITS);
}

void otlp_encode_link(otlp_encoder *e, const nl_record *record)
{
    unsigned ids;
    link_members m = {0};
    if (!e->linking) {
        end_list(e);
        begin_list(e, NAME("links"));
        e->linking = true;
    }
    for (size_t i = begin_choice(e, record, &ids); i < record->field_count; i++)
        if (!take_link_member(&record->fields[i], &m) && !is_repeated(record, &record->fields[i], &ids))
            choose_field(&e->fields, &record->fields[i]);
    begin_element(e, SPAN_LINK);
    encode_id(e, NAME("traceId"), LINK_TRACE, m.trace);
    encode_id(e, NAME("spanId"), LINK_SPAN, m.span);
    if (m.state.size > 0)
        encode_valid_text(e, NAME("traceState"), LINK_STATE, m.state);
    encode_point_attributes(e, LINK_ATTRIBUTE, record);
    if (m.flags != 0)
        encode_flags(e, NAME("flags"), LINK_FLAGS, m.flags);
    end_message(e);
}

void otlp_end_span(otlp_encoder *e)
{
    end_list(e);
    end_message(e);
}

void otlp_encoder_free(otlp_encoder *e)
{
    keys_free(&e->keys);
    otlp_fields_free(&e->fields);
    nl_buffer_free(&e->text);
    nl_buffer_free(&e->source);
    nl_buffer_free(&e->next);
}
