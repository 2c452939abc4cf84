#include "config.h"

#include "events.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>

/* Maximum number of elements of an array whose elements become separate fields. The elements must be integers of 2, 4
 * or 8 bytes. Any other array becomes one field with the bytes of the array. */
enum { ELEMENTS_MAX = 16 };

/* ---- names ---- */

/* Returns whether every record has a field with this name. If so, the event's own field gets the prefix EV. */
static bool is_common_field(const char *name)
{
    static const char *const common[] = {"DATE", "HOST", "PROG", "LVL", "NL.EVNT", "CPU", "PID", "TID"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(name, common[i]) == 0)
            return true;
    return false;
}

static char *record_field_name(const char *kernel_name, int element)
{
    char *plain = nl_memory_check(strdup(kernel_name + strspn(kernel_name, "_")));
    for (char *at = plain; *at != '\0'; at++)
        *at = isalnum((unsigned char)*at) ? (char)toupper((unsigned char)*at) : '.';
    const char *prefix = is_common_field(plain) || !isalpha((unsigned char)*plain) ? "EV." : "";
    char *name =
        element < 0 ? program_format("%s%s", prefix, plain) : program_format("%s%s.%d", prefix, plain, element);
    free(plain);
    return name;
}

/* ---- kinds ---- */

static bool number_kind(const struct tep_format_field *field, unsigned size, field_kind *kind)
{
    bool is_signed = field->flags & TEP_FIELD_IS_SIGNED;
    if (size == 1 && (strcmp(field->type, "bool") == 0 || strcmp(field->type, "_Bool") == 0))
        *kind = FIELD_BOOL;
    else if (size == 1)
        *kind = is_signed ? FIELD_INT8 : FIELD_UINT8;
    else if (size == 2)
        *kind = is_signed ? FIELD_INT16 : FIELD_UINT16;
    else if (size == 4)
        *kind = is_signed ? FIELD_INT32 : FIELD_UINT32;
    else if (size == 8)
        *kind = is_signed ? FIELD_INT64 : FIELD_UINT64;
    else
        return false;
    return true;
}

static void events_add(kernel_event *event, const struct tep_format_field *field, int element, field_kind kind,
                       unsigned offset, unsigned size)
{
    event->fields = nl_memory_check(reallocarray(event->fields, event->field_count + 1, sizeof *event->fields));
    event_field *added = &event->fields[event->field_count++];
    *added = (event_field){.name = record_field_name(field->name, element),
                           .kernel_name = nl_memory_check(strdup(field->name)),
                           .type = nl_memory_check(strdup(field->type)),
                           .kind = kind,
                           .relative = field->flags & TEP_FIELD_IS_RELATIVE,
                           .element = element >= 0,
                           .offset = offset,
                           .size = size};
    if (offset + size > event->fixed_size)
        event->fixed_size = offset + size;
}

static void add_array(kernel_event *event, const struct tep_format_field *field)
{
    unsigned offset = (unsigned)field->offset, each = field->elementsize;
    unsigned count = each > 0 ? (unsigned)field->size / each : 0;
    field_kind kind;
    if (each > 1 && count <= ELEMENTS_MAX && number_kind(field, each, &kind))
        for (unsigned i = 0; i < count; i++)
            events_add(event, field, (int)i, kind, offset + i * each, each);
    else
        events_add(event, field, -1, FIELD_BYTES, offset, (unsigned)field->size);
}

/* For a tracer's field with the address of a function, returns the field's name in records. Returns NULL for other
 * fields. */
static const char *function_name(const kernel_event *event, const struct tep_format_field *field)
{
    static const char *const names[][2] = {
        {"ip", "FUNCTION"}, {"parent_ip", "CALLER"}, {"func", "FUNCTION"}, {"retaddr", "CALLER"}};
    if (strcmp(event->system, "ftrace") != 0 || strncmp(event->event, "func", 4) != 0 || field->size != 8)
        return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(field->name, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

static void add_function(kernel_event *event, const struct tep_format_field *field, const char *name)
{
    events_add(event, field, -1, FIELD_FUNCTION, (unsigned)field->offset, (unsigned)field->size);
    char **added = &event->fields[event->field_count - 1].name;
    free(*added);
    *added = nl_memory_check(strdup(name));
}

/* Returns whether a field is text. libtraceevent also marks as strings any bytes that a variant of %p prints, such as a
 * socket's address. */
static bool is_text(const struct tep_format_field *field)
{
    return (field->flags & TEP_FIELD_IS_STRING) != 0 && strstr(field->type, "char") != NULL &&
           strstr(field->type, "unsigned char") == NULL;
}

static void events_add_field(kernel_event *event, const struct tep_format_field *field)
{
    const char *function = function_name(event, field);
    unsigned offset = (unsigned)field->offset, size = (unsigned)field->size;
    bool text = is_text(field), dynamic = field->flags & TEP_FIELD_IS_DYNAMIC;
    field_kind kind;
    if (function != NULL)
        add_function(event, field, function);
    else if (size == 0)
        return; /* ignore a flexible array at the end, whose length is unknown */
    else if (dynamic)
        events_add(event, field, -1, text ? FIELD_DYNAMIC_TEXT : FIELD_DYNAMIC_BYTES, offset, size);
    else if (text && field->flags & TEP_FIELD_IS_ARRAY)
        events_add(event, field, -1, FIELD_TEXT, offset, size);
    else if (field->flags & TEP_FIELD_IS_ARRAY)
        add_array(event, field);
    else if (number_kind(field, size, &kind))
        events_add(event, field, -1, kind, offset, size);
    else
        events_add(event, field, -1, FIELD_BYTES, offset, size);
}

const event_field *kernel_event_field(const kernel_event *event, nl_string name)
{
    for (size_t i = 0; i < event->field_count; i++)
        if (strlen(event->fields[i].name) == name.size && memcmp(event->fields[i].name, name.data, name.size) == 0)
            return &event->fields[i];
    return NULL;
}

/* ---- names of threads ---- */

static const event_field *find_kernel_field(const kernel_event *event, const char *prefix, const char *last)
{
    for (size_t i = 0; i < event->field_count; i++) {
        const char *name = event->fields[i].kernel_name;
        if (strncmp(name, prefix, strlen(prefix)) == 0 && strcmp(name + strlen(prefix), last) == 0)
            return &event->fields[i];
    }
    return NULL;
}

static void find_namings(kernel_event *event)
{
    static const char *const whose[] = {"", "prev_", "next_", "child_"};
    for (size_t i = 0; i < EVENT_NAMINGS_MAX; i++) {
        const event_field *pid = find_kernel_field(event, whose[i], "pid"),
                          *comm = find_kernel_field(event, whose[i], "comm");
        if (pid == NULL || comm == NULL || pid->kind != FIELD_INT32 || comm->kind != FIELD_TEXT)
            continue;
        event->namings[event->naming_count++] = (event_naming){pid->offset, comm->offset, comm->size};
    }
}

/* ---- reading ---- */

/* Replaces the print format with an empty format, because the print format is slow to parse, and nlkernel does not need
 * it. Returns the new size in bytes. */
static size_t events_remove_print_format(char *text, size_t size)
{
    static const char start[] = "\nprint fmt: ", none[] = "\"\"\n";
    char *at = strstr(text, start);
    if (at == NULL || size - (size_t)(at - text) < strlen(start) + strlen(none))
        return size;
    memcpy(at + strlen(start), none, sizeof none);
    return (size_t)(at - text) + strlen(start) + strlen(none);
}

bool kernel_event_parse(kernel_event *out, char *text, size_t size)
{
    struct tep_handle *tep = nl_memory_check(tep_alloc());
    tep_set_loglevel(TEP_LOG_NONE);
    struct tep_event *event = NULL;
    tep_parse_format(tep, &event, text, events_remove_print_format(text, size), out->system);
    bool good = event != NULL && event->id > 0 && event->id < 65536;
    if (good) {
        out->id = event->id;
        for (struct tep_format_field *field = event->format.fields; field != NULL; field = field->next)
            events_add_field(out, field);
        out->fixed_size = out->fixed_size > 8 ? out->fixed_size : 8;
        find_namings(out);
    } else {
        nl_error_set(NL_ERROR_INVALID, "%s:%s: invalid description", out->system, out->event);
    }
    tep_free(tep);
    return good;
}

void kernel_event_name(kernel_event *out, const char *system, const char *event)
{
    *out = (kernel_event){
        .system = program_copy(system), .event = program_copy(event), .name = program_format("%s.%s", system, event)};
}

bool kernel_event_read(const tracing *t, const char *system, const char *event, kernel_event *out)
{
    kernel_event_name(out, system, event);
    char *path = tracing_path(t, "events/%s/%s/format", system, event);
    size_t size;
    char *text = tracing_read(path, &size);
    bool good = text != NULL && kernel_event_parse(out, text, size);
    free(text);
    free(path);
    if (!good)
        kernel_event_free(out);
    return good;
}

void kernel_event_free(kernel_event *event)
{
    for (size_t i = 0; i < event->field_count; i++) {
        free(event->fields[i].name);
        free(event->fields[i].kernel_name);
        free(event->fields[i].type);
    }
    free(event->fields);
    free(event->kernel_filter);
    free(event->system);
    free(event->event);
    free(event->name);
    *event = (kernel_event){0};
}

void kernel_events_index(kernel_events *events)
{
    for (size_t i = 0; i < events->count; i++)
        if ((size_t)events->list[i].id >= events->id_count)
            events->id_count = (size_t)events->list[i].id + 1;
    events->by_id = nl_memory_check(calloc(events->id_count + 1, sizeof *events->by_id));
    for (size_t i = 0; i < events->count; i++) {
        events->list[i].place = (unsigned)i;
        events->by_id[events->list[i].id] = &events->list[i];
    }
}

void kernel_events_free(kernel_events *events)
{
    for (size_t i = 0; i < events->count; i++)
        kernel_event_free(&events->list[i]);
    free(events->list);
    free(events->by_id);
    *events = (kernel_events){0};
}
