#include "config.h"

#include "serve/jaeger_trace.h"

#include "base/text.h"
#include "record/bytes.h"

#include <glib.h>
#include <string.h>

enum { EXACT_DIGITS_MAX = 15 /* JavaScript's numbers represent all integers with so many digits */ };

int64_t jaeger_trace_start(const stream_request *r)
{
    int64_t start_ns = r->spans[0].begin_ns;
    for (size_t i = 1; i < r->span_count; i++)
        start_ns = MIN(start_ns, r->spans[i].begin_ns);
    return start_ns;
}

static bool is_whole_request(const stream_span *span)
{
    return span->made && span->begin == STREAM_NONE;
}

const char *jaeger_operation(const stream_span *span)
{
    return is_whole_request(span) ? "request" : span->name;
}

nl_string jaeger_service(const nl_record *record)
{
    return record->prog.size > 0 ? record->prog : nl_string_of("unknown");
}

const char *jaeger_span_kind(const nl_record *record)
{
    nl_field field;
    return otlp_span_kinds[nl_record_find(record, "SPAN.KIND", &field) ? otlp_span_kind_of(&field) : 0];
}

/* ---- searching ---- */

static bool has_tag(const nl_record *record, const jaeger_tag *tag)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    for (size_t i = 0; i < record->field_count; i++)
        if (nl_string_is(record->fields[i].name, tag->name) &&
            nl_string_is(nl_field_text(&record->fields[i], scratch), tag->value))
            return true;
    return false;
}

static bool span_has_tag(request_stream *s, const stream_span *span, const jaeger_tag *tag)
{
    if (strcmp(tag->name, "error") == 0)
        return span->failed == (strcmp(tag->value, "true") == 0);
    if (strcmp(tag->name, "span.kind") == 0)
        return strcmp(jaeger_span_kind(request_stream_span_record(s, span)), tag->value) == 0;
    return (span->begin != STREAM_NONE && has_tag(request_stream_record(s, span->begin, 0), tag)) ||
           (span->end != STREAM_NONE && has_tag(request_stream_record(s, span->end, 0), tag));
}

static bool span_matches(const jaeger_search *q, request_stream *s, const stream_span *span)
{
    const int64_t duration_ns = span->end_ns - span->begin_ns;
    if (duration_ns < q->shortest_ns || duration_ns > q->longest_ns ||
        (q->operation != NULL && strcmp(q->operation, jaeger_operation(span)) != 0) ||
        (q->service != NULL && !nl_string_is(jaeger_service(request_stream_span_record(s, span)), q->service)))
        return false;
    for (size_t i = 0; i < q->tag_count; i++)
        if (!span_has_tag(s, span, &q->tags[i]))
            return false;
    return true;
}

bool jaeger_search_matches(const jaeger_search *q, request_stream *s, const stream_request *r)
{
    for (size_t i = 0; i < r->span_count; i++)
        if (span_matches(q, s, &r->spans[i]))
            return true;
    return false;
}

/* ---- the trace ---- */

static json_object *text_of(nl_string text)
{
    char *copy = g_strndup(text.data, text.size);
    json_object *o = json_text(copy);
    g_free(copy);
    return o;
}

static void add_tag(json_object *tags, nl_string name, const char *type, json_object *value)
{
    json_object *tag = json_object_new_object();
    json_object_object_add(tag, "key", text_of(name));
    json_add_text(tag, "type", type);
    json_object_object_add(tag, "value", value);
    json_object_array_add(tags, tag);
}

static void add_field(json_object *tags, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    const nl_string text = nl_field_text(field, scratch);
    if (field->type == NL_TYPE_BOOL) {
        add_tag(tags, field->name, "bool", json_object_new_boolean(nl_string_is(text, "true")));
    } else if (!json_is_number(text) || text.size > EXACT_DIGITS_MAX) {
        add_tag(tags, field->name, "string", text_of(text));
    } else {
        char *number = g_strndup(text.data, text.size);
        if (strpbrk(number, ".eE") != NULL)
            add_tag(tags, field->name, "float64", json_object_new_double_s(g_ascii_strtod(number, NULL), number));
        else
            add_tag(tags, field->name, "int64", json_object_new_int64(g_ascii_strtoll(number, NULL, 10)));
        g_free(number);
    }
}

/* Returns whether a further tag with texts of this size fits into the answer. */
static bool take_tag(jaeger_space *space, size_t size)
{
    if (space->tags == 0 || space->bytes < size) {
        space->is_cut = true;
        return false;
    }
    space->tags--;
    space->bytes -= size;
    return true;
}

/* Adds the fields of a record, except identifiers and fields that `earlier` (or NULL) has with the same value. */
static void add_fields(json_object *tags, const nl_record *record, const nl_record *earlier, jaeger_space *space)
{
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        if (otlp_id_kind_of(field->name) == OTLP_ID_NONE && !nl_string_is(field->name, "SPAN.KIND") &&
            !otlp_has_field(earlier, field) &&
            take_tag(space, field->name.size + (field->type == NL_TYPE_STRING ? field->string.size : 0)))
            add_field(tags, field);
    }
}

static json_object *tags_of(request_stream *s, const stream_span *span, jaeger_space *space)
{
    json_object *tags = json_object_new_array();
    const nl_record *begin = span->begin != STREAM_NONE ? request_stream_record(s, span->begin, 0) : NULL;
    const nl_record *end =
        span->end != STREAM_NONE && span->end != span->begin ? request_stream_record(s, span->end, 1) : NULL;
    const char *kind = begin != NULL ? jaeger_span_kind(begin) : end != NULL ? jaeger_span_kind(end) : "";
    if (*kind != '\0')
        add_tag(tags, nl_string_of("span.kind"), "string", json_text(kind));
    if (span->failed)
        add_tag(tags, nl_string_of("error"), "bool", json_object_new_boolean(true));
    if (is_whole_request(span))
        add_tag(tags, nl_string_of("request"), "string", json_text(span->name));
    if (begin != NULL)
        add_fields(tags, begin, NULL, space);
    if (end != NULL)
        add_fields(tags, end, begin, space);
    return tags;
}

/* Returns the points of a span, which Jaeger calls logs. */
static json_object *logs_of(request_stream *s, const stream_request *r, const stream_span *span, jaeger_space *space)
{
    json_object *logs = json_object_new_array();
    for (size_t i = 0; i < span->point_count && take_tag(space, 0); i++) {
        const nl_record *record = request_stream_record(s, r->points[span->first_point + i], 0);
        json_object *log = json_object_new_object(), *fields = json_object_new_array();
        json_add_int(log, "timestamp", record->time_ns / 1000);
        add_tag(fields, nl_string_of("event"), "string", text_of(record->event));
        add_fields(fields, record, NULL, space);
        json_object_object_add(log, "fields", fields);
        json_object_array_add(logs, log);
    }
    return logs;
}

/* Returns the key of the process (host and program) of a record. Adds the process if it is new. */
static char *find_process(json_object *processes, GHashTable *keys, const nl_record *record)
{
    char *place = g_strdup_printf("%.*s %.*s", (int)record->host.size, record->host.size > 0 ? record->host.data : "",
                                  (int)record->prog.size, record->prog.size > 0 ? record->prog.data : "");
    char *key = g_hash_table_lookup(keys, place);
    if (key != NULL) {
        g_free(place);
        return key;
    }
    key = g_strdup_printf("p%u", g_hash_table_size(keys) + 1);
    g_hash_table_insert(keys, place, key);
    json_object *process = json_object_new_object(), *tags = json_object_new_array();
    json_object_object_add(process, "serviceName", text_of(jaeger_service(record)));
    if (record->host.size > 0)
        add_tag(tags, nl_string_of("hostname"), "string", text_of(record->host));
    json_object_object_add(process, "tags", tags);
    json_object_object_add(processes, key, process);
    return key;
}

static json_object *span_new(request_stream *s, const stream_request *r, size_t i, const char *trace,
                             const span_id *ids, jaeger_space *space)
{
    const stream_span *span = &r->spans[i];
    char scratch[NL_FIELD_TEXT_SIZE];
    json_object *o = json_object_new_object(), *references = json_object_new_array();
    json_add_text(o, "traceID", trace);
    json_add_text(o, "spanID", ids[i].text);
    json_add_text(o, "operationName", jaeger_operation(span));
    const nl_string parent = span_ids_parent(s, r, i, ids, scratch);
    if (parent.data != NULL) {
        json_object *reference = json_object_new_object();
        json_add_text(reference, "refType", "CHILD_OF");
        json_add_text(reference, "traceID", trace);
        json_object_object_add(reference, "spanID", text_of(parent));
        json_object_array_add(references, reference);
    }
    json_object_object_add(o, "references", references);
    json_add_int(o, "startTime", span->begin_ns / 1000);
    json_add_int(o, "duration", (span->end_ns - span->begin_ns) / 1000);
    json_object_object_add(o, "tags", tags_of(s, span, space));
    json_object_object_add(o, "logs", logs_of(s, r, span, space));
    return o;
}

json_object *jaeger_trace_new(request_stream *s, const stream_request *r, const char *trace, const span_id *ids,
                              jaeger_space *space)
{
    json_object *o = json_object_new_object(), *spans = json_object_new_array(), *processes = json_object_new_object();
    GHashTable *keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    const size_t count = MIN(r->span_count, space->spans);
    space->is_cut = space->is_cut || count < r->span_count;
    space->spans -= count;
    for (size_t i = 0; i < count; i++) {
        json_object *span = span_new(s, r, i, trace, ids, space);
        json_add_text(span, "processID", find_process(processes, keys, request_stream_span_record(s, &r->spans[i])));
        json_object_array_add(spans, span);
    }
    g_hash_table_destroy(keys);
    json_add_text(o, "traceID", trace);
    json_object_object_add(o, "spans", spans);
    json_object_object_add(o, "processes", processes);
    return o;
}
