#include "config.h"

#include "requests/request_reader.h"

#include "base/hash_bytes.h"
#include "clocks/name_table.h"

#include <ctype.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

enum {
    IDS_MAX = REQUEST_READER_IDS_MAX,
    LETTERS_MAX = 16,
    NAMES_MAX = CLOCK_BOUNDS_HOSTS_MAX,
    NAME_CACHE_SIZE = 512, /* a power of two */
    PLACE_CACHE_SIZE = 256,
    NAME_SIZE_MAX = 200,
    SEEN_SIZE = 64,
};

typedef enum field_use {
    USE_NONE,
    USE_TRACE,
    USE_SPAN,
    USE_PARENT,
    USE_DURATION,
    USE_START,
    USE_PHASE,
    USE_THREAD,
    USE_PROCESS,
    USE_STATUS,
    USE_BYTES,
    USE_FILE,
    USE_COUNT,
} field_use;

/* The letters of a field's name, in lower case and without separators; of durations, the unit in nanoseconds. */
static const struct {
    const char *letters;
    field_use use;
    double unit_ns;
} uses[] = {
    {"traceid", USE_TRACE, 0},    {"spanid", USE_SPAN, 0},
    {"parentid", USE_PARENT, 0},  {"parentspanid", USE_PARENT, 0},
    {"dur", USE_DURATION, 1e9},   {"duration", USE_DURATION, 1e9},
    {"durms", USE_DURATION, 1e6}, {"durationms", USE_DURATION, 1e6},
    {"durus", USE_DURATION, 1e3}, {"durationus", USE_DURATION, 1e3},
    {"durns", USE_DURATION, 1},   {"durationns", USE_DURATION, 1},
    {"start", USE_START, 0},      {"ph", USE_PHASE, 0},
    {"tid", USE_THREAD, 0},       {"thread", USE_THREAD, 0},
    {"threadid", USE_THREAD, 0},  {"vtid", USE_THREAD, 0},
    {"pid", USE_PROCESS, 0},      {"vpid", USE_PROCESS, 0},
    {"status", USE_STATUS, 0},    {"statuscode", USE_STATUS, 0},
    {"nbytes", USE_BYTES, 0},     {"bytes", USE_BYTES, 0},
    {"file", USE_FILE, 0},
};

/* The meaning of a field's name. The name is the first member, so that few comparisons find it. */
typedef struct known_name {
    char name[24];
    uint8_t size;
    uint8_t use;  /* index in uses + 1; 0: the name has no use */
    uint8_t id;   /* index of the ID + 1; 0: the name belongs to no ID */
    uint8_t rank; /* its position among the fields of the ID */
} known_name;

/* The fields of a record that events of requests use. */
typedef struct found_fields {
    const nl_field *used[USE_COUNT]; /* the first field of each use */
    double unit_ns;                  /* the duration's unit in nanoseconds */
    const nl_field *ids[IDS_MAX];
} found_fields;

/*
 * The number of the text that was last found at an address. A block contains each name only once, so the next record
 * has the same text there. A look-up also compares the texts.
 */
typedef struct seen_text {
    const char *text; /* owned by a table */
    size_t size;
    uint32_t number;
} seen_text;

struct request_reader {
    const char *const *ids;
    size_t id_count;
    nl_fraction fraction;
    event_names *names;
    name_table hosts, programs, places, processes;
    clock_bounds *clocks;
    uint64_t seed;
    uint32_t order;
    seen_text seen_hosts[SEEN_SIZE], seen_programs[SEEN_SIZE], seen_names[SEEN_SIZE];
    found_fields found; /* fields of the latest record */
    known_name known[NAME_CACHE_SIZE];
    struct {
        uint32_t host, program, place;
    } place_cache[PLACE_CACHE_SIZE];
};

request_reader *request_reader_new(const char *const *ids, nl_fraction fraction)
{
    request_reader *r = g_new0(request_reader, 1);
    r->ids = ids;
    while (ids != NULL && ids[r->id_count] != NULL && r->id_count < IDS_MAX)
        r->id_count++;
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
    name_table_free(&r->processes);
    g_free(r);
}

/* ---- fields ---- */

/* Returns the index in uses + 1, or 0. */
static uint8_t use_of(nl_string name)
{
    char letters[LETTERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '.' || name.data[i] == '_' || name.data[i] == '-')
            continue;
        if (count == sizeof letters - 1)
            return 0;
        letters[count++] = (char)tolower((unsigned char)name.data[i]);
    }
    letters[count] = '\0';
    for (size_t i = 0; i < G_N_ELEMENTS(uses); i++)
        if (strcmp(letters, uses[i].letters) == 0)
            return (uint8_t)(i + 1);
    return 0;
}

/* Finds a name among the fields of the IDs, which are joined by |. A name belongs to one ID at most. */
static void find_id(const request_reader *r, nl_string name, known_name *known)
{
    for (size_t i = 0; i < r->id_count; i++) {
        const char *at = r->ids[i];
        for (uint8_t rank = 0; *at != '\0' && rank < UINT8_MAX; rank++) {
            size_t size = strcspn(at, "|");
            if (size == name.size && memcmp(at, name.data, size) == 0) {
                known->id = (uint8_t)(i + 1);
                known->rank = rank;
                return;
            }
            at += size + (at[size] == '|');
        }
    }
}

/* Returns the meaning of a name. The result is valid until the next call. */
static const known_name *know_name(request_reader *r, nl_string name)
{
    known_name *known = &r->known[hash_bytes(r->seed, name.data, name.size) & (NAME_CACHE_SIZE - 1)];
    if (known->size == name.size && name.size > 0 && name.size <= sizeof known->name &&
        memcmp(known->name, name.data, name.size) == 0)
        return known;
    *known = (known_name){.use = use_of(name)};
    find_id(r, name, known);
    if (name.size <= sizeof known->name) {
        memcpy(known->name, name.data, name.size);
        known->size = (uint8_t)name.size;
    }
    return known;
}

static void find_fields(request_reader *r, const nl_record *record)
{
    found_fields *found = &r->found;
    uint8_t ranks[IDS_MAX];
    memset(found->used, 0, sizeof found->used);
    for (size_t i = 0; i < r->id_count; i++)
        found->ids[i] = NULL;
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        const known_name *known = know_name(r, field->name);
        if (known->use > 0 && found->used[uses[known->use - 1].use] == NULL) {
            found->used[uses[known->use - 1].use] = field;
            found->unit_ns = uses[known->use - 1].use == USE_DURATION ? uses[known->use - 1].unit_ns : found->unit_ns;
        }
        if (known->id > 0 && (found->ids[known->id - 1] == NULL || known->rank < ranks[known->id - 1])) {
            found->ids[known->id - 1] = field;
            ranks[known->id - 1] = known->rank;
        }
    }
}

/* Returns a hash that is not 0; or 0 for an empty value, and for zeros, which mean that there is no identifier. */
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

/* Returns the letter of a Chrome event's phase, or NUL. */
static char phase_of(const found_fields *f)
{
    const nl_field *phase = f->used[USE_PHASE];
    return phase != NULL && phase->type == NL_TYPE_STRING && phase->string.size == 1 ? *phase->string.data : '\0';
}

/* Returns the number of digits after the decimal point of a number or time. */
static unsigned count_decimals(const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = nl_field_text(field, scratch);
    size_t point = 0, end;
    while (point < text.size && text.data[point] != '.')
        point++;
    for (end = point; end + 1 < text.size && isdigit((unsigned char)text.data[end + 1]);)
        end++;
    return (unsigned)MIN(end - point, 18);
}

/* Returns the power of ten of nanoseconds to which a duration in units was rounded. */
static unsigned rounding_of(const nl_field *field, double unit_ns)
{
    unsigned digits = 0, decimals = field->type == NL_TYPE_DOUBLE ? 18 : count_decimals(field);
    for (double ns = 1; ns < unit_ns; ns *= 10)
        digits++;
    return digits > decimals ? digits - decimals : 0;
}

/*
 * Returns the duration of a record in nanoseconds, or -1 if the record has no duration. Sets *rounding, see
 * request_event.
 */
static int64_t duration_of(nl_fraction fraction, const nl_record *record, const found_fields *f, unsigned *rounding)
{
    double value;
    int64_t start_ns;
    const nl_field *start = f->used[USE_START];
    if (f->used[USE_PHASE] != NULL && phase_of(f) != 'X')
        return -1;
    if (f->used[USE_DURATION] != NULL && nl_field_double(f->used[USE_DURATION], &value)) {
        double unit_ns = f->used[USE_PHASE] != NULL ? 1e3 : f->unit_ns, ns = value * unit_ns;
        *rounding = rounding_of(f->used[USE_DURATION], unit_ns);
        return ns >= 0 && ns < 9e18 ? (int64_t)(ns + 0.5) : -1;
    }
    if (start != NULL && start->type == NL_TYPE_STRING &&
        nl_time_parse(start->string.data, start->string.size, fraction, &start_ns) == NL_OK &&
        start_ns <= record->time_ns && !__builtin_sub_overflow(record->time_ns, start_ns, &start_ns)) {
        *rounding = rounding_of(start, 1e9);
        return start_ns;
    }
    return -1;
}

/* Returns whether a name may be that of a duration, of a begin or of a phase. */
static bool may_be_duration(nl_string name)
{
    int first = name.size >= 2 ? tolower((unsigned char)name.data[0]) : 0, second = first != 0 ? name.data[1] | 32 : 0;
    return (first == 'd' && second == 'u') || (first == 's' && second == 't') || (first == 'p' && second == 'h');
}

bool request_duration(const nl_record *record, nl_fraction fraction, int64_t *duration_ns, bool *begins)
{
    found_fields f = {0};
    unsigned rounding;
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        uint8_t use = may_be_duration(field->name) ? use_of(field->name) : 0;
        if (use == 0 || f.used[uses[use - 1].use] != NULL)
            continue;
        f.used[uses[use - 1].use] = field;
        f.unit_ns = uses[use - 1].use == USE_DURATION ? uses[use - 1].unit_ns : f.unit_ns;
    }
    *duration_ns = duration_of(fraction, record, &f, &rounding);
    *begins = phase_of(&f) == 'X';
    return *duration_ns >= 0;
}

static bool is_failure(const nl_record *record, const nl_field *status)
{
    static const char *const failures[] = {"error", "failed", "failure", "timeout", "2", "-1"};
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

/* Returns the number of a name, from 1; 0 if name has no data. Names beyond the limit share the last number. */
static uint32_t number_of(name_table *t, nl_string name)
{
    static const nl_string other = {NAME_OTHER, sizeof NAME_OTHER - 1};
    if (name.size == 0 || *name.data == '\0')
        return 0;
    size_t number = name_table_find(t, name);
    if (number == NAME_NONE)
        number = name_table_add(t, t->count < NAMES_MAX ? name : other);
    return (uint32_t)number + 1;
}

static const char *text_of(const name_table *t, uint32_t number)
{
    return number == 0 ? "" : t->texts[number - 1];
}

static seen_text *slot_of(seen_text *seen, nl_string name)
{
    uintptr_t address = (uintptr_t)name.data;
    return &seen[(address ^ address >> 6 ^ name.size) % SEEN_SIZE];
}

static bool was_seen(const seen_text *slot, nl_string name)
{
    return slot->size == name.size && name.size > 0 && memcmp(slot->text, name.data, name.size) == 0;
}

static void note_seen(seen_text *slot, const char *text, nl_string name, uint32_t number)
{
    if (strlen(text) == name.size) /* otherwise the number is shared by many names */
        *slot = (seen_text){text, name.size, number};
}

static uint32_t seen_number(seen_text *seen, name_table *t, nl_string name)
{
    seen_text *slot = slot_of(seen, name);
    if (was_seen(slot, name))
        return slot->number;
    uint32_t number = number_of(t, name);
    if (number != 0 && strncmp(text_of(t, number), name.data, name.size) == 0)
        note_seen(slot, text_of(t, number), name, number);
    return number;
}

static uint32_t seen_name(request_reader *r, nl_string name)
{
    seen_text *slot = slot_of(r->seen_names, name);
    if (was_seen(slot, name))
        return slot->number;
    uint32_t number = event_names_add(r->names, name);
    const char *text = event_names_text(r->names, number);
    if (name.size > 0 && strncmp(text, name.data, name.size) == 0)
        note_seen(slot, text, name, number);
    return number;
}

static uint32_t place_of(request_reader *r, uint32_t host, uint32_t program)
{
    size_t slot = (host * 31 + program) & (PLACE_CACHE_SIZE - 1);
    if (r->place_cache[slot].place == 0 || r->place_cache[slot].host != host ||
        r->place_cache[slot].program != program) {
        char text[24];
        size_t size = (size_t)snprintf(text, sizeof text, "%u %u", host, program);
        r->place_cache[slot].host = host;
        r->place_cache[slot].program = program;
        r->place_cache[slot].place = number_of(&r->places, (nl_string){text, size});
    }
    return r->place_cache[slot].place;
}

/* ---- records ---- */

/* Returns the hash of the request's name, or 0 if the record has neither a trace ID nor all ID fields. */
static uint64_t request_of(const request_reader *r, const found_fields *f, bool *traced)
{
    uint64_t hash = f->used[USE_TRACE] != NULL ? hash_value(r, f->used[USE_TRACE], 0) : 0;
    *traced = hash != 0;
    for (size_t i = 0; i < r->id_count && !*traced; i++) {
        uint64_t value = f->ids[i] != NULL ? hash_value(r, f->ids[i], i + 1) : 0;
        if (value == 0)
            return 0;
        hash = hash_mix(hash ^ value, UINT64_C(0x9e3779b97f4a7c15)) | 1;
    }
    return hash;
}

/*
 * Returns the thread's number, or 0 if the record names no thread. A thread's identifier may be unique only in its
 * process.
 */
static uint32_t thread_of(const request_reader *r, const found_fields *f, uint16_t process)
{
    if (f->used[USE_THREAD] == NULL)
        return 0;
    return (uint32_t)hash_mix(hash_value(r, f->used[USE_THREAD], 0) ^ process, UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

/*
 * Returns the process's number, or 0 if the record names no process. Processes beyond the limit share the last number.
 */
static uint16_t process_of(request_reader *r, const found_fields *f)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    if (f->used[USE_PROCESS] == NULL)
        return 0;
    return (uint16_t)MIN(number_of(&r->processes, nl_field_text(f->used[USE_PROCESS], scratch)), UINT16_MAX);
}

static bool is_sensor(const nl_record *record)
{
    static const char sensor[] = "nlsensor";
    return record->prog.size == sizeof sensor - 1 && memcmp(record->prog.data, sensor, sizeof sensor - 1) == 0;
}

void request_reader_learn(request_reader *r, const nl_record *record)
{
    if (record->event.size > 5 && memcmp(record->event.data, "Clock", 5) == 0)
        clock_bounds_learn(r->clocks, record, number_of(&r->hosts, record->host));
}

uint64_t request_reader_take(request_reader *r, const nl_record *record, request_event *event)
{
    const found_fields *f = &r->found;
    bool traced;
    find_fields(r, record);
    uint64_t request = request_of(r, f, &traced);
    if ((request == 0 && r->id_count > 0) || is_sensor(record))
        return 0;
    uint32_t host = seen_number(r->seen_hosts, &r->hosts, record->host),
             program = seen_number(r->seen_programs, &r->programs, record->prog);
    unsigned rounding = 0;
    int64_t duration_ns = duration_of(r->fraction, record, f, &rounding);
    uint16_t process = process_of(r, f);
    *event = (request_event){
        .time_ns = record->time_ns,
        .name = seen_name(r, record->event),
        .host = host,
        .program = program,
        .place = place_of(r, host, program),
        .thread = thread_of(r, f, process),
        .process = process,
        .span_id = f->used[USE_SPAN] != NULL ? hash_value(r, f->used[USE_SPAN], 0) : 0,
        .parent = f->used[USE_PARENT] != NULL ? hash_value(r, f->used[USE_PARENT], 0) : 0,
        .order = r->order++,
        .role = duration_ns >= 0 ? REQUEST_WHOLE : REQUEST_POINT,
        .rounding = rounding & 31,
        .duration_ns = MAX(duration_ns, 0),
        .traced = traced,
        .failed = is_failure(record, f->used[USE_STATUS]),
    };
    char phase = phase_of(f);
    if (phase == 'B' || phase == 'E')
        event->role = phase == 'B' ? REQUEST_BEGIN : REQUEST_END;
    event->span_name = event->name;
    event->time_ns = CLAMP(event->time_ns, -REQUEST_TIME_MAX, REQUEST_TIME_MAX);
    if (phase == 'X') { /* Chrome's records have the time of the begin */
        event->duration_ns = MIN(event->duration_ns, REQUEST_TIME_MAX - MAX(event->time_ns, 0));
        event->time_ns += event->duration_ns;
    }
    event->duration_ns = MIN(event->duration_ns, REQUEST_TIME_MAX + MIN(event->time_ns, 0));
    uint32_t lane = event->thread != 0 ? event->thread : event->process;
    return request != 0 ? request : hash_mix((uint64_t)event->place << 32 | lane, r->seed) | 1;
}

bool request_reader_find_bytes(const request_reader *r, double *bytes, nl_string *what,
                               char scratch[NL_FIELD_TEXT_SIZE])
{
    if (r->found.used[USE_BYTES] == NULL || !nl_field_double(r->found.used[USE_BYTES], bytes) || !(*bytes >= 0) ||
        !(*bytes < 1e18))
        return false;
    *what = r->found.used[USE_FILE] != NULL ? nl_field_text(r->found.used[USE_FILE], scratch) : (nl_string){0};
    return true;
}

char *request_reader_name_request(const request_reader *r)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text;
    if (r->found.used[USE_TRACE] != NULL) {
        text = nl_field_text(r->found.used[USE_TRACE], scratch);
        return g_strndup(text.data, MIN(text.size, NAME_SIZE_MAX));
    }
    GString *name = g_string_new("");
    for (size_t i = 0; i < r->id_count && name->len < NAME_SIZE_MAX; i++) {
        if (r->found.ids[i] == NULL)
            continue;
        text = nl_field_text(r->found.ids[i], scratch);
        if (r->id_count > 1)
            g_string_append_printf(name, "%s%s=", name->len > 0 ? " " : "", r->ids[i]);
        g_string_append_len(name, text.data, (gssize)MIN(text.size, NAME_SIZE_MAX));
    }
    return g_string_free(name, FALSE);
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
