#include "config.h"

#include "requests/request_reader.h"

#include "base/hash_bytes.h"
#include "clocks/name_table.h"
#include "requests/drawing.h"

#include <ctype.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

enum { IDS_MAX = 8, LETTERS_MAX = 16, HOSTS_MAX = 1 << 16 };

typedef enum field_use {
    USE_NONE,
    USE_TRACE,
    USE_SPAN,
    USE_PARENT,
    USE_DURATION,
    USE_START,
    USE_PHASE,
    USE_THREAD,
    USE_STATUS,
    USE_COUNT,
} field_use;

/* The letters of a field's name, in lower case and without separators. */
static const struct {
    const char *letters;
    field_use use;
} uses[] = {
    {"traceid", USE_TRACE},     {"spanid", USE_SPAN},       {"parentid", USE_PARENT}, {"parentspanid", USE_PARENT},
    {"dur", USE_DURATION},      {"duration", USE_DURATION}, {"start", USE_START},     {"ph", USE_PHASE},
    {"tid", USE_THREAD},        {"thread", USE_THREAD},     {"threadid", USE_THREAD}, {"status", USE_STATUS},
    {"statuscode", USE_STATUS},
};

struct request_reader {
    const char *const *ids;
    nl_fraction fraction;
    event_names *names;
    name_table hosts, programs, places;
    clock_bounds *clocks;
    uint64_t seed;
    uint32_t order;
};

request_reader *request_reader_new(const char *const *ids, nl_fraction fraction)
{
    request_reader *r = g_new0(request_reader, 1);
    r->ids = ids;
    r->fraction = fraction;
    r->names = event_names_new();
    r->clocks = clock_bounds_new();
    r->seed = (uint64_t)g_random_int() << 32 | g_random_int();
    return r;
}

void request_reader_free(request_reader *r)
{
    if (r == NULL)
        return;
    event_names_free(r->names);
    clock_bounds_free(r->clocks);
    name_table_free(&r->hosts);
    name_table_free(&r->programs);
    name_table_free(&r->places);
    g_free(r);
}

/* ---- fields ---- */

static field_use use_of(nl_string name)
{
    char letters[LETTERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '.' || name.data[i] == '_' || name.data[i] == '-')
            continue;
        if (count == sizeof letters - 1)
            return USE_NONE;
        letters[count++] = (char)tolower((unsigned char)name.data[i]);
    }
    letters[count] = '\0';
    for (size_t i = 0; i < G_N_ELEMENTS(uses); i++)
        if (strcmp(letters, uses[i].letters) == 0)
            return uses[i].use;
    return USE_NONE;
}

/* A hash that is not 0, or 0 for an empty value and for the zeros that stand for no identifier. */
static uint64_t hash_value(const request_reader *r, const nl_field *field, uint64_t seed)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = nl_field_text(field, scratch);
    size_t zeros = 0;
    while (zeros < text.size && text.data[zeros] == '0')
        zeros++;
    if (zeros == text.size && text.size != 1)
        return 0;
    return hash_bytes(r->seed ^ seed, text.data, text.size) | 1;
}

/* The duration of a record, or -1. */
static int64_t duration_of(const request_reader *r, const nl_record *record, const nl_field *const fields[USE_COUNT])
{
    double seconds;
    int64_t start_ns;
    if (fields[USE_PHASE] != NULL && (fields[USE_PHASE]->type != NL_TYPE_STRING ||
                                      fields[USE_PHASE]->string.size != 1 || *fields[USE_PHASE]->string.data != 'X'))
        return -1;
    if (fields[USE_DURATION] != NULL && nl_field_double(fields[USE_DURATION], &seconds) && seconds >= 0 &&
        seconds < 9e9)
        return (int64_t)(seconds * (fields[USE_PHASE] != NULL ? 1e3 : 1e9));
    const nl_field *start = fields[USE_START];
    if (start != NULL && start->type == NL_TYPE_STRING &&
        nl_time_parse(start->string.data, start->string.size, r->fraction, &start_ns) == NL_OK &&
        start_ns <= record->time_ns)
        return record->time_ns - start_ns;
    return -1;
}

static bool is_failure(const nl_record *record, const nl_field *status)
{
    static const char *const failures[] = {"error", "failed", "failure", "timeout", "2"};
    char scratch[NL_FIELD_TEXT_SIZE];
    if (record->level <= NL_ERROR && record->level_text.data != NULL)
        return true;
    nl_string text = status != NULL ? nl_field_text(status, scratch) : (nl_string){0};
    for (size_t i = 0; i < G_N_ELEMENTS(failures); i++)
        if (text.size == strlen(failures[i]) && g_ascii_strncasecmp(text.data, failures[i], text.size) == 0)
            return true;
    return text.size == 3 && *text.data == '5' && isdigit((unsigned char)text.data[1]);
}

/* ---- numbers ---- */

/* The number of a name, from 1; 0 without one. Names beyond the limit share the last number. */
static uint32_t number_of(name_table *t, nl_string name)
{
    static const nl_string other = {"(other)", sizeof "(other)" - 1};
    if (name.size == 0 || *name.data == '\0')
        return 0;
    size_t number = name_table_find(t, name);
    if (number == NAME_NONE)
        number = name_table_add(t, t->count < HOSTS_MAX ? name : other);
    return (uint32_t)number + 1;
}

static const char *text_of(const name_table *t, uint32_t number)
{
    return number == 0 ? "" : t->texts[number - 1];
}

static uint32_t place_of(request_reader *r, uint32_t host, uint32_t program)
{
    char text[24];
    size_t size = (size_t)snprintf(text, sizeof text, "%u %u", host, program);
    return number_of(&r->places, (nl_string){text, size});
}

/* ---- records ---- */

static uint64_t request_of(const request_reader *r, const nl_record *record, const nl_field *trace)
{
    uint64_t hash = trace != NULL ? hash_value(r, trace, 0) : 0;
    nl_field field;
    if (hash != 0 || r->ids == NULL || r->ids[0] == NULL)
        return hash;
    for (size_t i = 0; r->ids[i] != NULL; i++) {
        uint64_t value = drawing_find_id(record, r->ids[i], &field) ? hash_value(r, &field, i + 1) : 0;
        if (value == 0)
            return 0;
        hash = hash_mix(hash ^ value, UINT64_C(0x9e3779b97f4a7c15)) | 1;
    }
    return hash;
}

void request_reader_learn(request_reader *r, const nl_record *record)
{
    if (record->event.size > 5 && memcmp(record->event.data, "Clock", 5) == 0)
        clock_bounds_learn(r->clocks, record, number_of(&r->hosts, record->host));
}

uint64_t request_reader_take(request_reader *r, const nl_record *record, request_event *event)
{
    const nl_field *fields[USE_COUNT] = {NULL};
    for (size_t i = 0; i < record->field_count; i++) {
        field_use use = use_of(record->fields[i].name);
        if (fields[use] == NULL)
            fields[use] = &record->fields[i];
    }
    uint64_t request = request_of(r, record, fields[USE_TRACE]);
    if (request == 0)
        return 0;
    uint32_t host = number_of(&r->hosts, record->host), program = number_of(&r->programs, record->prog);
    int64_t duration_ns = duration_of(r, record, fields);
    *event = (request_event){
        .time_ns = record->time_ns,
        .name = event_names_add(r->names, record->event),
        .host = host,
        .program = program,
        .place = place_of(r, host, program),
        .thread = fields[USE_THREAD] != NULL ? (uint32_t)hash_value(r, fields[USE_THREAD], 0) | 1 : 0,
        .span_id = fields[USE_SPAN] != NULL ? hash_value(r, fields[USE_SPAN], 0) : 0,
        .parent = fields[USE_PARENT] != NULL ? hash_value(r, fields[USE_PARENT], 0) : 0,
        .order = r->order++,
        .role = duration_ns >= 0 ? REQUEST_WHOLE : REQUEST_POINT,
        .duration_ns = MAX(duration_ns, 0),
        .traced = fields[USE_TRACE] != NULL && hash_value(r, fields[USE_TRACE], 0) == request,
        .failed = is_failure(record, fields[USE_STATUS]),
    };
    const nl_field *phase = fields[USE_PHASE];
    if (phase != NULL && phase->type == NL_TYPE_STRING && phase->string.size == 1 &&
        strchr("BE", *phase->string.data) != NULL)
        event->role = *phase->string.data == 'B' ? REQUEST_BEGIN : REQUEST_END;
    event->span_name = event->name;
    if (event->role == REQUEST_WHOLE && fields[USE_PHASE] != NULL) /* Chrome's records have the time of the begin */
        event->time_ns += event->duration_ns;
    return request;
}

const clock_bounds *request_reader_clocks(const request_reader *r)
{
    return r->clocks;
}

const event_names *request_reader_names(const request_reader *r)
{
    return r->names;
}

const char *request_reader_host(const request_reader *r, uint32_t host)
{
    return text_of(&r->hosts, host);
}

const char *request_reader_program(const request_reader *r, uint32_t program)
{
    return text_of(&r->programs, program);
}
