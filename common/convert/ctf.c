/*
 * Reads CTF 1.8 traces of LTTng and barectf with libbabeltrace2. A trace is a directory with a file named "metadata".
 * The input may also be a directory of such directories, which are read in the order of their names.
 *
 * An event becomes a record. NL.EVNT is the event's name, LVL its level, HOST the hostname of the trace, and PROG the
 * procname of the context. The record's fields are the CPU from the packet context, and the fields of the event and its
 * contexts. The members of a structure get the names OUTER.INNER. An array is text such as [1,2]. An enumeration with
 * exactly one label is its label; any other enumeration is its value. Discarded events become a NetLogger.Lost record,
 * whose COUNT is their number.
 */
#include "config.h"

#include "convert/builder.h"
#include "base/error.h"
#include "convert/lines.h"
#include "base/library.h"
#include "base/text.h"

#include <babeltrace2/babeltrace.h>
#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    DIRECTORY_DEPTH_MAX = 16,
    FIELD_DEPTH_MAX = 32,
    RECORD_TEXT_SIZE = 1 << 16, /* number of bytes for the names and arrays of a record */
};

typedef struct ctf_reader {
    sink *s;
    builder builder;
    nl_buffer text; /* text of an array */
    bt_message_iterator *messages;
    const char *path;
    bool failed;
} ctf_reader;

/* The functions of libbabeltrace2. */
#define BABELTRACE_FUNCTIONS(FUNCTION)                                                                                 \
    FUNCTION(bt_, clock_class_origin_is_unix_epoch)                                                                    \
    FUNCTION(bt_, clock_snapshot_borrow_clock_class_const)                                                             \
    FUNCTION(bt_, clock_snapshot_get_ns_from_origin)                                                                   \
    FUNCTION(bt_, component_filter_borrow_input_port_by_index_const)                                                   \
    FUNCTION(bt_, component_filter_borrow_output_port_by_index_const)                                                  \
    FUNCTION(bt_, component_sink_borrow_input_port_by_index_const)                                                     \
    FUNCTION(bt_, component_source_borrow_output_port_by_index_const)                                                  \
    FUNCTION(bt_, component_source_get_output_port_count)                                                              \
    FUNCTION(bt_, current_thread_clear_error)                                                                          \
    FUNCTION(bt_, current_thread_take_error)                                                                           \
    FUNCTION(bt_, error_borrow_cause_by_index)                                                                         \
    FUNCTION(bt_, error_cause_get_message)                                                                             \
    FUNCTION(bt_, error_get_cause_count)                                                                               \
    FUNCTION(bt_, error_release)                                                                                       \
    FUNCTION(bt_, event_borrow_class_const)                                                                            \
    FUNCTION(bt_, event_borrow_common_context_field_const)                                                             \
    FUNCTION(bt_, event_borrow_packet_const)                                                                           \
    FUNCTION(bt_, event_borrow_payload_field_const)                                                                    \
    FUNCTION(bt_, event_borrow_specific_context_field_const)                                                           \
    FUNCTION(bt_, event_borrow_stream_const)                                                                           \
    FUNCTION(bt_, event_class_get_log_level)                                                                           \
    FUNCTION(bt_, event_class_get_name)                                                                                \
    FUNCTION(bt_, field_array_borrow_element_field_by_index_const)                                                     \
    FUNCTION(bt_, field_array_get_length)                                                                              \
    FUNCTION(bt_, field_bit_array_get_value_as_integer)                                                                \
    FUNCTION(bt_, field_bool_get_value)                                                                                \
    FUNCTION(bt_, field_borrow_class_const)                                                                            \
    FUNCTION(bt_, field_class_structure_borrow_member_by_index_const)                                                  \
    FUNCTION(bt_, field_class_structure_get_member_count)                                                              \
    FUNCTION(bt_, field_class_structure_member_get_name)                                                               \
    FUNCTION(bt_, field_enumeration_signed_get_mapping_labels)                                                         \
    FUNCTION(bt_, field_enumeration_unsigned_get_mapping_labels)                                                       \
    FUNCTION(bt_, field_get_class_type)                                                                                \
    FUNCTION(bt_, field_integer_signed_get_value)                                                                      \
    FUNCTION(bt_, field_integer_unsigned_get_value)                                                                    \
    FUNCTION(bt_, field_option_borrow_field_const)                                                                     \
    FUNCTION(bt_, field_real_double_precision_get_value)                                                               \
    FUNCTION(bt_, field_real_single_precision_get_value)                                                               \
    FUNCTION(bt_, field_string_get_length)                                                                             \
    FUNCTION(bt_, field_string_get_value)                                                                              \
    FUNCTION(bt_, field_structure_borrow_member_field_by_index_const)                                                  \
    FUNCTION(bt_, field_structure_borrow_member_field_by_name_const)                                                   \
    FUNCTION(bt_, field_variant_borrow_selected_option_field_const)                                                    \
    FUNCTION(bt_, graph_add_filter_component)                                                                          \
    FUNCTION(bt_, graph_add_simple_sink_component)                                                                     \
    FUNCTION(bt_, graph_add_source_component)                                                                          \
    FUNCTION(bt_, graph_connect_ports)                                                                                 \
    FUNCTION(bt_, graph_create)                                                                                        \
    FUNCTION(bt_, graph_put_ref)                                                                                       \
    FUNCTION(bt_, graph_run)                                                                                           \
    FUNCTION(bt_, message_discarded_events_borrow_beginning_default_clock_snapshot_const)                              \
    FUNCTION(bt_, message_discarded_events_borrow_stream_const)                                                        \
    FUNCTION(bt_, message_discarded_events_get_count)                                                                  \
    FUNCTION(bt_, message_event_borrow_default_clock_snapshot_const)                                                   \
    FUNCTION(bt_, message_event_borrow_event_const)                                                                    \
    FUNCTION(bt_, message_get_type)                                                                                    \
    FUNCTION(bt_, message_iterator_next)                                                                               \
    FUNCTION(bt_, message_put_ref)                                                                                     \
    FUNCTION(bt_, packet_borrow_context_field_const)                                                                   \
    FUNCTION(bt_, plugin_borrow_filter_component_class_by_name_const)                                                  \
    FUNCTION(bt_, plugin_borrow_source_component_class_by_name_const)                                                  \
    FUNCTION(bt_, plugin_find)                                                                                         \
    FUNCTION(bt_, plugin_put_ref)                                                                                      \
    FUNCTION(bt_, stream_borrow_class_const)                                                                           \
    FUNCTION(bt_, stream_borrow_trace_const)                                                                           \
    FUNCTION(bt_, stream_class_borrow_default_clock_class_const)                                                       \
    FUNCTION(bt_, stream_class_discarded_events_have_default_clock_snapshots)                                          \
    FUNCTION(bt_, stream_class_supports_packets)                                                                       \
    FUNCTION(bt_, trace_borrow_environment_entry_value_by_name_const)                                                  \
    FUNCTION(bt_, value_array_append_string_element)                                                                   \
    FUNCTION(bt_, value_get_type)                                                                                      \
    FUNCTION(bt_, value_map_create)                                                                                    \
    FUNCTION(bt_, value_map_insert_empty_array_entry)                                                                  \
    FUNCTION(bt_, value_put_ref)                                                                                       \
    FUNCTION(bt_, value_string_get)

NL_LIBRARY_DEFINE(bt, BABELTRACE_LIBRARY, BABELTRACE_FUNCTIONS);

/* ---- values ---- */

/* Returns the label of an enumeration, or NULL if the enumeration does not have exactly one label. */
static const char *label_of(const bt_field *field, bool is_signed)
{
    bt_field_class_enumeration_mapping_label_array labels;
    uint64_t count = 0;
    bool found = (is_signed ? bt.field_enumeration_signed_get_mapping_labels(field, &labels, &count)
                            : bt.field_enumeration_unsigned_get_mapping_labels(field, &labels, &count)) ==
                 BT_FIELD_ENUMERATION_GET_MAPPING_LABELS_STATUS_OK;
    return found && count == 1 ? labels[0] : NULL;
}

/* Stores an unsigned number as a signed integer if it fits. */
static void set_unsigned(nl_field *value, uint64_t number)
{
    value->type = number <= INT64_MAX ? NL_TYPE_INT : NL_TYPE_UINT;
    value->uint_value = number;
}

/* Reads a field with one value. Returns false if the field has members or elements. */
static bool plain_value(const bt_field *field, nl_field *value)
{
    bt_field_class_type type = bt.field_get_class_type(field);
    const char *label = NULL;
    if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_ENUMERATION))
        label = label_of(field, bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER));
    if (label != NULL) {
        value->type = NL_TYPE_STRING;
        value->string = nl_string_of(label);
    } else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
        set_unsigned(value, bt.field_integer_unsigned_get_value(field));
    } else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
        value->type = NL_TYPE_INT;
        value->int_value = bt.field_integer_signed_get_value(field);
    } else if (type == BT_FIELD_CLASS_TYPE_BOOL) {
        value->type = NL_TYPE_BOOL;
        value->bool_value = bt.field_bool_get_value(field);
    } else if (type == BT_FIELD_CLASS_TYPE_BIT_ARRAY) {
        set_unsigned(value, bt.field_bit_array_get_value_as_integer(field));
    } else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_REAL)) {
        value->type = NL_TYPE_DOUBLE;
        value->double_value = type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL
                                  ? (double)bt.field_real_single_precision_get_value(field)
                                  : bt.field_real_double_precision_get_value(field);
    } else if (type == BT_FIELD_CLASS_TYPE_STRING) {
        value->type = NL_TYPE_STRING;
        value->string = (nl_string){bt.field_string_get_value(field), bt.field_string_get_length(field)};
    } else {
        return false;
    }
    return true;
}

/*
 * Returns the content of a variant or option, or NULL if the option is empty. For other types, returns the field
 * itself.
 */
static const bt_field *held(const bt_field *field)
{
    bt_field_class_type type = bt.field_get_class_type(field);
    if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_VARIANT))
        return bt.field_variant_borrow_selected_option_field_const(field);
    if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_OPTION))
        return bt.field_option_borrow_field_const(field);
    return field;
}

static uint64_t member_count(const bt_field *field)
{
    return bt.field_class_structure_get_member_count(bt.field_borrow_class_const(field));
}

static nl_string member_name(const bt_field *field, uint64_t i)
{
    const bt_field_class *class = bt.field_borrow_class_const(field);
    const char *name =
        bt.field_class_structure_member_get_name(bt.field_class_structure_borrow_member_by_index_const(class, i));
    return nl_string_of(name);
}

static void ctf_put(nl_buffer *out, nl_string text)
{
    nl_buffer_append(out, text.data, text.size);
}

/* Appends a value as text, such as 5, [1,2] or {a=1,b=2}. */
static void ctf_put_text(nl_buffer *out, const bt_field *field, int depth)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_field value = {0};
    if (field == NULL || (field = held(field)) == NULL || depth == FIELD_DEPTH_MAX)
        return;
    if (plain_value(field, &value)) {
        ctf_put(out, nl_field_text(&value, scratch));
    } else if (bt.field_get_class_type(field) == BT_FIELD_CLASS_TYPE_STRUCTURE) {
        for (uint64_t i = 0, count = member_count(field); i < count; i++) {
            nl_buffer_append(out, i == 0 ? "{" : ",", 1);
            ctf_put(out, member_name(field, i));
            nl_buffer_append(out, "=", 1);
            ctf_put_text(out, bt.field_structure_borrow_member_field_by_index_const(field, i), depth + 1);
        }
        nl_buffer_append(out, "}", 1);
    } else {
        nl_buffer_append(out, "[", 1);
        for (uint64_t i = 0, count = bt.field_array_get_length(field); i < count; i++) {
            if (i > 0)
                nl_buffer_append(out, ",", 1);
            ctf_put_text(out, bt.field_array_borrow_element_field_by_index_const(field, i), depth + 1);
        }
        nl_buffer_append(out, "]", 1);
    }
}

/* ---- fields ---- */

static void add_members(ctf_reader *r, nl_string outer, const bt_field *structure, int depth);

/* Builds the name OUTER.INNER, or INNER if there is no outer name. */
static nl_string ctf_join(ctf_reader *r, nl_string outer, nl_string inner)
{
    if (outer.size == 0)
        return inner;
    char *bytes = builder_bytes(&r->builder, outer.size + 1 + inner.size);
    if (bytes == NULL)
        return inner;
    memcpy(bytes, outer.data, outer.size);
    bytes[outer.size] = '.';
    memcpy(bytes + outer.size + 1, inner.data, inner.size);
    return (nl_string){bytes, outer.size + 1 + inner.size};
}

static void add_array(ctf_reader *r, nl_string name, const bt_field *field, int depth)
{
    r->text.size = 0;
    ctf_put_text(&r->text, field, depth);
    char *bytes = builder_bytes(&r->builder, r->text.size);
    if (bytes == NULL) {
        sink_lose(r->s, LOSS_FIELDS);
        return;
    }
    memcpy(bytes, r->text.data, r->text.size);
    builder_add_text(&r->builder, name, (nl_string){bytes, r->text.size}, r->s);
}

static void ctf_add_field(ctf_reader *r, nl_string name, const bt_field *field, int depth)
{
    nl_field value = {0};
    if (field == NULL || (field = held(field)) == NULL || depth == FIELD_DEPTH_MAX)
        return;
    bool plain = plain_value(field, &value);
    if (plain && nl_string_is(name, "procname") && value.type == NL_TYPE_STRING &&
        r->builder.record->prog.data == NULL) {
        r->builder.record->prog = value.string;
    } else if (plain) {
        nl_field *added = builder_add(&r->builder, name, r->s);
        value.name = added->name;
        *added = value;
    } else if (bt.field_get_class_type(field) == BT_FIELD_CLASS_TYPE_STRUCTURE) {
        add_members(r, name, field, depth + 1);
    } else {
        add_array(r, name, field, depth);
    }
}

/* Adds the members of a structure, which may be NULL. */
static void add_members(ctf_reader *r, nl_string outer, const bt_field *structure, int depth)
{
    for (uint64_t i = 0, count = structure != NULL ? member_count(structure) : 0; i < count; i++)
        ctf_add_field(r, ctf_join(r, outer, member_name(structure, i)),
                      bt.field_structure_borrow_member_field_by_index_const(structure, i), depth);
}

/* Adds the number of the CPU. Omits the other members of the context, which describe the packet, not the event. */
static void add_packet(ctf_reader *r, const bt_event *event)
{
    static const char name[] = "cpu_id";
    if (!bt.stream_class_supports_packets(bt.stream_borrow_class_const(bt.event_borrow_stream_const(event))))
        return;
    const bt_field *context = bt.packet_borrow_context_field_const(bt.event_borrow_packet_const(event));
    const bt_field *cpu = context != NULL ? bt.field_structure_borrow_member_field_by_name_const(context, name) : NULL;
    if (cpu != NULL)
        ctf_add_field(r, (nl_string){name, sizeof name - 1}, cpu, 0);
}

/* ---- records ---- */

static nl_level level_of(const bt_event_class *class)
{
    static const nl_level levels[] = {
        [BT_EVENT_CLASS_LOG_LEVEL_EMERGENCY] = NL_EMERGENCY, [BT_EVENT_CLASS_LOG_LEVEL_ALERT] = NL_ALERT,
        [BT_EVENT_CLASS_LOG_LEVEL_CRITICAL] = NL_ERROR,      [BT_EVENT_CLASS_LOG_LEVEL_ERROR] = NL_ERROR,
        [BT_EVENT_CLASS_LOG_LEVEL_WARNING] = NL_WARNING,     [BT_EVENT_CLASS_LOG_LEVEL_NOTICE] = NL_IMPORTANT,
        [BT_EVENT_CLASS_LOG_LEVEL_INFO] = NL_USAGE,
    };
    bt_event_class_log_level level;
    if (bt.event_class_get_log_level(class, &level) != BT_PROPERTY_AVAILABILITY_AVAILABLE)
        return NL_SYSTEM;
    return (size_t)level < sizeof levels / sizeof levels[0] ? levels[level] : NL_DEBUG;
}

static void ctf_put_record(ctf_reader *r)
{
    if (!builder_finish(&r->builder, true, r->s))
        sink_malformed(r->s, 0, 0, nl_error_message(), r->path, strlen(r->path));
}

static void set_host(ctf_reader *r, const bt_stream *stream)
{
    const bt_value *host =
        bt.trace_borrow_environment_entry_value_by_name_const(bt.stream_borrow_trace_const(stream), "hostname");
    if (host == NULL || bt.value_get_type(host) != BT_VALUE_TYPE_STRING)
        return;
    const char *text = bt.value_string_get(host);
    r->builder.record->host = nl_string_of(text);
}

/*
 * Begins a record. If `time` is NULL, because the trace has no clock, the record gets the time base_ns (see
 * import_about). If the time is invalid, reports the problem and returns false.
 */
static bool begin_record(ctf_reader *r, const bt_clock_snapshot *time, const bt_stream *stream)
{
    int64_t time_ns = 0;
    builder_begin(&r->builder, RECORD_TEXT_SIZE);
    if (time != NULL &&
        bt.clock_snapshot_get_ns_from_origin(time, &time_ns) != BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK) {
        bt.current_thread_clear_error();
        sink_malformed(r->s, 0, 0, "an event's time is out of range", r->path, strlen(r->path));
        return false;
    }
    if (time == NULL || !bt.clock_class_origin_is_unix_epoch(bt.clock_snapshot_borrow_clock_class_const(time))) {
        const import_about *about = r->s->about;
        int64_t base_ns = about != NULL && about->has_base ? about->base_ns : 0;
        r->s->undated = r->s->undated || base_ns == 0;
        if (__builtin_add_overflow(time_ns, base_ns, &time_ns))
            time_ns = INT64_MAX;
    }
    nl_record_set_time(r->builder.record, time_ns);
    r->builder.seen |= 1u << MEMBER_TIME;
    set_host(r, stream);
    return true;
}

static void put_event(ctf_reader *r, const bt_message *message)
{
    static const nl_string top = {"", 0};
    const bt_event *event = bt.message_event_borrow_event_const(message);
    const bt_event_class *class = bt.event_borrow_class_const(event);
    const bt_stream *stream = bt.event_borrow_stream_const(event);
    bool has_clock = bt.stream_class_borrow_default_clock_class_const(bt.stream_borrow_class_const(stream)) != NULL;
    if (!begin_record(r, has_clock ? bt.message_event_borrow_default_clock_snapshot_const(message) : NULL, stream))
        return;
    const char *name = bt.event_class_get_name(class);
    r->builder.record->level = level_of(class);
    if (name != NULL)
        r->builder.record->event = nl_string_of(name);
    add_packet(r, event);
    add_members(r, top, bt.event_borrow_common_context_field_const(event), 0);
    add_members(r, top, bt.event_borrow_specific_context_field_const(event), 0);
    add_members(r, top, bt.event_borrow_payload_field_const(event), 0);
    ctf_put_record(r);
}

static void put_loss(ctf_reader *r, const bt_message *message)
{
    static const char event[] = "NetLogger.Lost", name[] = "COUNT";
    const bt_stream *stream = bt.message_discarded_events_borrow_stream_const(message);
    uint64_t count = 0;
    bool known = bt.message_discarded_events_get_count(message, &count) == BT_PROPERTY_AVAILABILITY_AVAILABLE;
    bool has_time = bt.stream_class_discarded_events_have_default_clock_snapshots(bt.stream_borrow_class_const(stream));
    if (!begin_record(
            r, has_time ? bt.message_discarded_events_borrow_beginning_default_clock_snapshot_const(message) : NULL,
            stream))
        return;
    r->builder.record->level = NL_WARNING;
    r->builder.record->event = (nl_string){event, sizeof event - 1};
    if (known) {
        nl_field *field = builder_add(&r->builder, (nl_string){name, sizeof name - 1}, r->s);
        field->type = NL_TYPE_UINT;
        field->uint_value = count;
    }
    ctf_put_record(r);
}

/* ---- traces ---- */

static bt_graph_simple_sink_component_initialize_func_status on_begin(bt_message_iterator *messages, void *user)
{
    ((ctf_reader *)user)->messages = messages;
    return BT_GRAPH_SIMPLE_SINK_COMPONENT_INITIALIZE_FUNC_STATUS_OK;
}

/* Converts the next messages. Returns an iterator's status as a sink's status, because both have the same values. */
static bt_graph_simple_sink_component_consume_func_status on_messages(bt_message_iterator *messages, void *user)
{
    ctf_reader *r = user;
    bt_message_array_const batch;
    uint64_t count;
    bt_message_iterator_next_status status = bt.message_iterator_next(messages, &batch, &count);
    if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK)
        return (bt_graph_simple_sink_component_consume_func_status)status;
    for (uint64_t i = 0; i < count; i++) {
        bt_message_type type = bt.message_get_type(batch[i]);
        if (type == BT_MESSAGE_TYPE_EVENT && !r->s->stopped)
            put_event(r, batch[i]);
        else if (type == BT_MESSAGE_TYPE_DISCARDED_EVENTS && !r->s->stopped)
            put_loss(r, batch[i]);
        bt.message_put_ref(batch[i]);
    }
    sink_drain(r->s);
    return r->s->stopped ? BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_END
                         : BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_OK;
}

/* Returns whether the metadata of a trace is a JSON text sequence (RFC 7464), as in CTF 2. */
static bool is_ctf2(const char *directory)
{
    enum { RECORD_SEPARATOR = 0x1e };
    char path[4096];
    FILE *file = (size_t)snprintf(path, sizeof path, "%s/metadata", directory) < sizeof path ? fopen(path, "re") : NULL;
    if (file == NULL)
        return false;
    bool found = getc(file) == RECORD_SEPARATOR;
    fclose(file);
    return found;
}

/* Reports how to convert a CTF 2 trace, or otherwise the first cause in libbabeltrace2's error. */
static void ctf_report_error(ctf_reader *r)
{
    const bt_error *error = bt.current_thread_take_error();
    const char *message = "unreadable trace";
    if (is_ctf2(r->path))
        message = "libbabeltrace2 cannot read this CTF 2 trace; convert it with babeltrace2 2.1 to CTF 1.8 "
                  "(--component=sink.ctf.fs --params='ctf-version=\"1\"')";
    else if (error != NULL && bt.error_get_cause_count(error) > 0)
        message = bt.error_cause_get_message(bt.error_borrow_cause_by_index(error, 0));
    sink_malformed(r->s, 0, 0, message, r->path, strlen(r->path));
    if (error != NULL)
        bt.error_release(error);
}

typedef struct plugins {
    const bt_plugin *ctf, *utils;
} plugins;

static bool add_source(bt_graph *graph, const plugins *p, const char *path, const bt_component_source **source)
{
    bt_value *parameters = bt.value_map_create(), *inputs;
    bool good =
        parameters != NULL &&
        bt.value_map_insert_empty_array_entry(parameters, "inputs", &inputs) == BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
        bt.value_array_append_string_element(inputs, path) == BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK &&
        bt.graph_add_source_component(graph, bt.plugin_borrow_source_component_class_by_name_const(p->ctf, "fs"),
                                      "trace", parameters, BT_LOGGING_LEVEL_NONE,
                                      source) == BT_GRAPH_ADD_COMPONENT_STATUS_OK;
    bt.value_put_ref(parameters);
    return good;
}

/*
 * Connects all streams of the trace to the reader through a muxer, which orders their events by time. Returns false on
 * failure.
 */
static bool connect(bt_graph *graph, const plugins *p, ctf_reader *r, const bt_component_source *source)
{
    const bt_component_filter *muxer;
    const bt_component_sink *end;
    if (bt.graph_add_filter_component(graph, bt.plugin_borrow_filter_component_class_by_name_const(p->utils, "muxer"),
                                      "muxer", NULL, BT_LOGGING_LEVEL_NONE,
                                      &muxer) != BT_GRAPH_ADD_COMPONENT_STATUS_OK ||
        bt.graph_add_simple_sink_component(graph, "records", on_begin, on_messages, NULL, r, &end) !=
            BT_GRAPH_ADD_COMPONENT_STATUS_OK)
        return false;
    for (uint64_t i = 0; i < bt.component_source_get_output_port_count(source); i++)
        if (bt.graph_connect_ports(graph, bt.component_source_borrow_output_port_by_index_const(source, i),
                                   bt.component_filter_borrow_input_port_by_index_const(muxer, i),
                                   NULL) != BT_GRAPH_CONNECT_PORTS_STATUS_OK)
            return false;
    return bt.graph_connect_ports(graph, bt.component_filter_borrow_output_port_by_index_const(muxer, 0),
                                  bt.component_sink_borrow_input_port_by_index_const(end, 0),
                                  NULL) == BT_GRAPH_CONNECT_PORTS_STATUS_OK;
}

static void read_trace(ctf_reader *r, const plugins *p, const char *path)
{
    r->path = path;
    const bt_component_source *source;
    bt_graph *graph = bt.graph_create(0);
    if (graph == NULL || !add_source(graph, p, path, &source) || !connect(graph, p, r, source) ||
        bt.graph_run(graph) != BT_GRAPH_RUN_STATUS_OK)
        ctf_report_error(r);
    bt.graph_put_ref(graph);
}

static bool has_metadata(const char *directory)
{
    char path[4096];
    struct stat what;
    return (size_t)snprintf(path, sizeof path, "%s/metadata", directory) < sizeof path && stat(path, &what) == 0 &&
           S_ISREG(what.st_mode);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/*
 * Calls `take` for each trace in a directory and its subdirectories. Returns the number of traces. If `take` is NULL,
 * stops at the first trace.
 */
static size_t each_trace(const char *directory, int depth, void (*take)(void *user, const char *path), void *user)
{
    if (has_metadata(directory)) {
        if (take != NULL)
            take(user, directory);
        return 1;
    }
    struct dirent **entries;
    size_t found = 0;
    int count = depth < DIRECTORY_DEPTH_MAX ? scandir(directory, &entries, is_visible, alphasort) : -1;
    for (int i = 0; i < count; i++) {
        char path[4096];
        bool fits = (size_t)snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name) < sizeof path;
        if (fits && (take != NULL || found == 0) && entries[i]->d_type == DT_DIR)
            found += each_trace(path, depth + 1, take, user);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return found;
}

typedef struct traces {
    ctf_reader *reader;
    plugins plugins;
    bool has_ended; /* libbabeltrace2 failed, and must not be called again */
} traces;

/* ---- libbabeltrace2 aborts, or divides by zero, for some damaged traces ---- */

static _Thread_local sigjmp_buf before_end;
static _Thread_local volatile sig_atomic_t is_guarded;

static void on_guarded_signal(int number)
{
    if (is_guarded)
        siglongjmp(before_end, 1);
    signal(number, SIG_DFL);
    raise(number);
}

/* Reads a trace. Returns false if libbabeltrace2 failed, which leaks its memory. */
static bool read_trace_guarded(traces *t, const char *path)
{
    if (sigsetjmp(before_end, 1) != 0) {
        is_guarded = 0;
        return false;
    }
    is_guarded = 1;
    read_trace(t->reader, &t->plugins, path);
    is_guarded = 0;
    return true;
}

static void ctf_read_trace(void *user, const char *path)
{
    traces *t = user;
    struct sigaction guard = {.sa_handler = on_guarded_signal}, before[2];
    if (t->reader->s->stopped)
        return;
    if (!t->has_ended) {
        sigaction(SIGABRT, &guard, &before[0]);
        sigaction(SIGFPE, &guard, &before[1]);
        t->has_ended = !read_trace_guarded(t, path);
        sigaction(SIGABRT, &before[0], NULL);
        sigaction(SIGFPE, &before[1], NULL);
        if (!t->has_ended)
            return;
        sink_malformed(t->reader->s, 0, 0, "libbabeltrace2 failed while it read the trace, which may be damaged", path,
                       strlen(path));
    } else {
        sink_malformed(t->reader->s, 0, 0, "not read, because libbabeltrace2 failed on an earlier trace", path,
                       strlen(path));
    }
}

static bool find_plugin(const char *name, const bt_plugin **plugin)
{
    return bt.plugin_find(name, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, plugin) == BT_PLUGIN_FIND_STATUS_OK ||
           nl_error_false(NL_ERROR_UNSUPPORTED, "cannot find the babeltrace2 plugin \"%s\"", name);
}

static bool read_path(const char *path, sink *s)
{
    ctf_reader r = {.s = s};
    traces t = {.reader = &r};
    size_t found = 0;
    if (!nl_library_load(&bt_library))
        return false;
    bool good = find_plugin("ctf", &t.plugins.ctf) && find_plugin("utils", &t.plugins.utils);
    if (good && (found = each_trace(path, 0, ctf_read_trace, &t)) == 0)
        nl_error_set(NL_ERROR_NOT_FOUND, "%s: not a CTF trace: no directory contains a metadata file", path);
    if (!t.has_ended) {
        bt.plugin_put_ref(t.plugins.ctf);
        bt.plugin_put_ref(t.plugins.utils);
    }
    builder_free(&r.builder);
    nl_buffer_free(&r.text);
    return found > 0;
}

static bool detect_path(const char *path)
{
    return each_trace(path, 0, NULL, NULL) > 0;
}

const importer_kind ctf_importer = {
    .name = "ctf",
    .what = "a directory with CTF 1.8 traces from LTTng or barectf",
    .in_order = true,
    .read_path = read_path,
    .detect_path = detect_path,
};
