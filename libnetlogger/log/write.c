/*
 * Implements nl_write and similar functions. Like NL_EVENT, these functions put the values of a call into the ring. The
 * parsed format (a plan) or the event kind determines the names and types of the values.
 */
#include "config.h"

#include "log/log_internal.h"

#include "base/error.h"
#include "base/memory.h"
#include "record/text.h"
#include "log/event_kind.h"
#include "log/payload.h"
#include "log/scratch.h"
#include "log/site.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_EVENT = 16 << 10 /* size of an event that any ring accepts */ };

static bool is_off(const nl_log *log, nl_level level)
{
    return log == NULL || (int)level > __atomic_load_n(&log->gate.threshold, __ATOMIC_RELAXED);
}

static nl_status no_space(size_t size)
{
    return nl_error_set(NL_ERROR_LIMIT, "the event is lost: the log's ring has no space for %zu bytes", size);
}

/* Returns the status of a logged event: NL_OK, or NL_MALFORMED if its longest value was truncated. */
static nl_status logged(size_t longest)
{
    if (longest <= NL_PAYLOAD_STRING_MAX)
        return NL_OK;
    nl_error_set(NL_ERROR_INVALID, "the event is logged, but a value of %zu bytes was truncated to %d bytes", longest,
                 NL_PAYLOAD_STRING_MAX);
    return NL_MALFORMED;
}

/* Like nl_private_begin, but also rejects events that are larger than NL_EVENT_MAX or a quarter of the ring. */
static char *write_begin(nl_log *log, nl_event_site *site, size_t size, nl_ring_producer **ring)
{
    if (size <= SMALL_EVENT)
        return nl_private_begin(&log->gate, site, size, ring);
    *ring = nl_producer_prepare(log, (nl_level)site->level, size);
    if (*ring == NULL)
        return NULL;
    __atomic_store_n(&(*ring)->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    char *at = (*ring)->data + ((*ring)->head & (*ring)->mask);
    nl_event_header header = {(uint32_t)size, site->id, (*ring)->called};
    memcpy(at, &header, sizeof header);
    return at + sizeof header;
}

static nl_status put_record(nl_log *log, const nl_record *record)
{
    if (nl_inside == 0 && nl_sites_is_off(record->event))
        return NL_OFF;
    nl_event_site site = {.id = NL_SITE_RECORD, .level = (unsigned char)record->level};
    size_t size = sizeof(nl_event_header) + nl_payload_size(record);
    nl_ring_producer *ring;
    char *at = write_begin(log, &site, size, &ring);
    if (at == NULL)
        return no_space(size);
    nl_payload_put(at, record);
    nl_private_commit(ring, size);
    return logged(nl_payload_longest(record));
}

nl_status nl_write_put_record(nl_log *log, const nl_record *record)
{
    int saved = errno;
    nl_status status = put_record(log, record);
    errno = saved;
    return status;
}

static nl_string cut(nl_string string)
{
    string.size = string.size < NL_PAYLOAD_STRING_MAX ? string.size : NL_PAYLOAD_STRING_MAX;
    return string;
}

/*
 * Returns the size of the event in the ring, in bytes, including its header. If a string is longer than *longest bytes
 * before truncation, sets *longest to the size of the longest string.
 */
static size_t typed_size(const nl_event_site *site, const nl_field *fields, size_t *longest)
{
    size_t size = sizeof(nl_event_header);
    for (size_t i = 0; i < site->field_count; i++) {
        if (site->types[i] == NL_RAW_STRING) {
            size_t whole = fields[i].string.size;
            *longest = whole > *longest ? whole : *longest;
            size += sizeof(uint32_t) + cut(fields[i].string).size;
        } else {
            size += nl_raw_size(site->types[i]);
        }
    }
    return size;
}

static void put_values(char *at, const nl_event_site *site, const nl_field *fields)
{
    for (size_t i = 0; i < site->field_count; i++) {
        uint32_t low;
        nl_string string;
        switch (site->types[i]) {
        case NL_RAW_STRING:
            string = cut(fields[i].string);
            at = nl_private_put_string(at, &string, 0);
            break;
        case NL_RAW_INT32:
        case NL_RAW_UINT32:
            low = (uint32_t)fields[i].uint_value;
            at = nl_private_put_scalar(at, &low, sizeof low);
            break;
        case NL_RAW_BOOL:
            at = nl_private_put_scalar(at, &fields[i].bool_value, sizeof fields[i].bool_value);
            break;
        default:
            at = nl_private_put_scalar(at, &fields[i].uint_value, sizeof fields[i].uint_value);
        }
    }
}

/* Puts an event of a site into the ring. Returns NL_AGAIN if memory for registering the site runs out. */
static nl_status put_typed(nl_log *log, nl_event_site *site, const nl_field *fields)
{
    if (!nl_producer_know_site(site))
        return NL_AGAIN;
    if (__atomic_load_n(&site->off, __ATOMIC_RELAXED))
        return NL_OFF;
    size_t longest = 0, size = typed_size(site, fields, &longest);
    nl_ring_producer *ring;
    char *at = write_begin(log, site, size, &ring);
    if (at != NULL) {
        put_values(at, site, fields);
        nl_private_commit(ring, size);
        return logged(longest);
    }
    return __atomic_load_n(&site->off, __ATOMIC_RELAXED) ? NL_OFF : no_space(size);
}

static nl_status write_refuse(nl_log *log)
{
    nl_producer_refuse(log);
    return nl_error_set(NL_ERROR_BUSY,
                        "the event is lost: a signal handler logged it while its thread was logging another event");
}

/* Returns whether the event has only the members that a call of nl_write sets. */
static bool is_bare(const nl_record *head)
{
    return head->time_ns == 0 && head->host.data == NULL && head->prog.data == NULL && head->field_count == 0 &&
           head->level_text.data == NULL;
}

static nl_member member_of(const nl_plan_field *field)
{
    return nl_text_member(&nl_ulm, field->name, field->name_size);
}

/* Returns whether a field of the format has the name of a record's member, and therefore sets the member. */
static bool has_member_name(const nl_plan *plan)
{
    for (size_t i = 0; i < plan->field_count; i++) {
        nl_member member = member_of(&plan->fields[i]);
        if (member == NL_MEMBER_LEVEL || member == NL_MEMBER_HOST || member == NL_MEMBER_PROG)
            return true;
    }
    return false;
}

/*
 * Moves the level, host and program from the format's fields to the record's members. The format's fields follow the
 * first `before` fields.
 */
static void write_move_members(nl_record *record, nl_field *fields, size_t before, const nl_plan *plan,
                               char scratch[NL_MEMBER_COUNT][NL_FIELD_TEXT_SIZE])
{
    record->field_count = before;
    for (size_t i = 0; i < plan->field_count; i++) {
        nl_field field = fields[before + i];
        nl_member member = member_of(&plan->fields[i]);
        nl_string text = nl_field_text(&field, scratch[member < NL_MEMBER_COUNT ? member : NL_MEMBER_TIME]);
        if (member == NL_MEMBER_LEVEL) {
            record->level = nl_level_parse(text.data, text.size);
            record->level_text = record->level == NL_LEVEL_NONE ? text : (nl_string){0};
        } else if (member == NL_MEMBER_HOST) {
            record->host = text;
        } else if (member == NL_MEMBER_PROG) {
            record->prog = text;
        } else {
            fields[record->field_count++] = field;
        }
    }
}

/*
 * Writes an event whose format has been parsed into a plan. head, which may be NULL, has the record's members and the
 * fields that precede the fields of the format. `error` is the errno value for %m. Returns the same values as nl_write.
 */
static nl_status write_by_plan(nl_log *log, nl_format_site *site, const nl_record *head, nl_scratch *s, int error,
                               va_list *arguments)
{
    const bool says = head != NULL && has_member_name(&site->plan);
    if (head != NULL && !says && is_off(log, head->level))
        return NL_OFF;
    if (head != NULL && is_bare(head) && !says)
        head = NULL;
    size_t before = head != NULL ? head->field_count : 0;
    if (!nl_scratch_want_fields(s, before + site->plan.field_count) ||
        nl_plan_take(&site->plan, s->fields + before, &s->bytes, error, arguments) != NL_OK)
        return NL_FAILED;
    nl_status status = site->is_typed && head == NULL ? put_typed(log, &site->site, s->fields) : NL_AGAIN;
    if (status != NL_AGAIN)
        return status;
    nl_record record = head != NULL ? *head : (nl_record){.level = site->level};
    if (before > 0)
        memcpy(s->fields, head->fields, before * sizeof *s->fields);
    record.event = (nl_string){site->event, site->event_size};
    record.fields = s->fields;
    record.field_count = before + site->plan.field_count;
    char scratch[NL_MEMBER_COUNT][NL_FIELD_TEXT_SIZE];
    if (says)
        write_move_members(&record, s->fields, before, &site->plan, scratch);
    return says && is_off(log, record.level) ? NL_OFF : put_record(log, &record);
}

/*
 * Writes an event. `function` is the name of the function that the program called, for messages. See write_by_plan for
 * head. Returns the same values as nl_write, but NL_AGAIN if the format is invalid and head is not NULL.
 */
static nl_status write_event(const char *function, nl_log *log, nl_level level, const char *event,
                             const nl_record *head, const char *format, va_list arguments)
{
    if (event == NULL)
        return nl_error_call(function, "event is NULL");
    if (level < NL_LEVEL_NONE || level > NL_DEBUG)
        return nl_error_call(function, "invalid level");
    if (log == NULL || (head == NULL && is_off(log, level)))
        return NL_OFF;
    if (nl_scratch_used.by_write || nl_inside > 0)
        return write_refuse(log);
    int saved = errno;
    nl_scratch_used.by_write = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    const unsigned failures = nl_memory_failures;
    nl_scratch *s = nl_scratch_own();
    nl_format_site *site = s != NULL ? nl_format_site_find(&s->cache, level, event, format) : NULL;
    nl_status status = nl_memory_failures == failures ? NL_AGAIN : NL_FAILED;
    if (site != NULL) {
        va_list rest;
        va_copy(rest, arguments);
        status = write_by_plan(log, site, head, s, saved, &rest);
        va_end(rest);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    nl_scratch_used.by_write = false;
    if (status == NL_FAILED && nl_memory_failures != failures)
        nl_producer_lose(log);
    if (status == NL_AGAIN && head == NULL)
        status = NL_FAILED;
    if (status == NL_FAILED || status == NL_MALFORMED)
        nl_error_prepend("write %s", event);
    errno = saved;
    return status;
}

nl_status nl_vwrite(nl_log *log, nl_level level, const char *event, const char *format, va_list arguments)
{
    return write_event(__func__, log, level, event, NULL, format, arguments);
}

nl_status nl_vwrite_after(nl_log *log, const nl_record *head, const char *event, const char *format, va_list arguments)
{
    return write_event(__func__, log, head->level, event, head, format, arguments);
}

nl_status nl_write(nl_log *log, nl_level level, const char *event, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    nl_status status = write_event(__func__, log, level, event, NULL, format, arguments);
    va_end(arguments);
    return status;
}

nl_status nl_write_record(nl_log *log, const nl_record *record)
{
    if (log == NULL)
        return NL_OFF;
    NL_REQUIRE(record != NULL, "record is NULL", NL_FAILED);
    if (is_off(log, record->level))
        return NL_OFF;
    if (record->flags & NL_RECORD_INCOMPLETE) {
        nl_producer_lose(log);
        return nl_memory_failed();
    }
    return nl_write_put_record(log, record);
}

/* Writes an event without a site as a whole record. Returns the same values as nl_event_write. */
static nl_status put_whole(nl_log *log, const nl_event_kind *kind, const nl_field *values)
{
    for (size_t i = 0; i < kind->field_count; i++)
        if (values[i].type > NL_TYPE_BOOL)
            return nl_error_call("nl_event_write", "a value has an invalid type");
    nl_record record = {.level = kind->level, .event = kind->event, .field_count = kind->field_count};
    nl_field *fields = reallocarray(NULL, kind->field_count + 1, sizeof *fields);
    if (fields == NULL) {
        nl_producer_lose(log);
        return nl_memory_failed();
    }
    for (size_t i = 0; i < kind->field_count; i++) {
        fields[i] = values[i];
        fields[i].name = kind->names[i];
        if (fields[i].type == NL_TYPE_STRING && fields[i].string.data == NULL)
            fields[i].string = (nl_string){"", 0};
    }
    record.fields = fields;
    nl_status status = put_record(log, &record);
    free(fields);
    return status;
}

nl_status nl_event_write(nl_log *log, nl_event_kind *kind, const nl_field *values)
{
    if (log == NULL)
        return NL_OFF;
    NL_REQUIRE(kind != NULL, "kind is NULL", NL_FAILED);
    if (is_off(log, kind->level))
        return NL_OFF;
    int saved = errno;
    nl_event_site *site = nl_event_kind_site(kind, values);
    nl_status status = site != NULL ? put_typed(log, site, values) : NL_AGAIN;
    if (status == NL_AGAIN)
        status = nl_inside > 0 ? write_refuse(log) : put_whole(log, kind, values);
    if (status == NL_FAILED || status == NL_MALFORMED)
        nl_error_prepend("write %.*s", (int)kind->event.size, kind->event.data);
    errno = saved;
    return status;
}

bool nl_is_on(const nl_log *log, nl_level level)
{
    return !is_off(log, level);
}
