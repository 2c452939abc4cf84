#include "config.h"

#include "requests/request_reader.h"

#include "base/hash_bytes.h"
#include "base/text.h"
#include "clocks/name_table.h"
#include "requests/program_names.h"

#include <ctype.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IDS_MAX = REQUEST_READER_IDS_MAX,
    LETTERS_MAX = 20,
    NAMES_MAX = CLOCK_BOUNDS_HOSTS_MAX,
    NAME_SIZE_MAX = 200,
    CACHE_SIZE = 256, /* number of entries of each cache, a power of two */
    LAYOUT_FIELDS_MAX = 32,
    LAYOUT_NAMES_SIZE = 384,
    SECONDS_MAX = 24 * 3600, /* see request_reader.h */
};

typedef enum field_use {
    USE_NONE,
    USE_TRACE,
    USE_SPAN,
    USE_PARENT,
    USE_DURATION,
    USE_START,
    USE_START_UTC,
    USE_PHASE,
    USE_THREAD,
    USE_PROCESS,
    USE_STATUS,
    USE_BYTES,
    USE_FILE,
    USE_COUNT,
} field_use;

/*
 * The names of the fields that the reader uses, in lower case and without separators. For durations, unit_ns is the
 * unit in nanoseconds.
 */
static const struct {
    const char *letters;
    field_use use;
    double unit_ns;
} uses[] = {
    {"traceid", USE_TRACE, 0},
    {"spanid", USE_SPAN, 0},
    {"parentid", USE_PARENT, 0},
    {"parentspanid", USE_PARENT, 0},
    {"dur", USE_DURATION, 1e9},
    {"duration", USE_DURATION, 1e9},
    {"durms", USE_DURATION, 1e6},
    {"durationms", USE_DURATION, 1e6},
    {"durus", USE_DURATION, 1e3},
    {"durationus", USE_DURATION, 1e3},
    {"durns", USE_DURATION, 1},
    {"durationns", USE_DURATION, 1},
    {"requesttime", USE_DURATION, 1e9},
    {"start", USE_START, 0},
    {"startutc", USE_START_UTC, 0},
    {"ph", USE_PHASE, 0},
    {"tid", USE_THREAD, 0},
    {"thread", USE_THREAD, 0},
    {"threadid", USE_THREAD, 0},
    {"vtid", USE_THREAD, 0},
    {"pid", USE_PROCESS, 0},
    {"vpid", USE_PROCESS, 0},
    {"status", USE_STATUS, 0},
    {"statuscode", USE_STATUS, 0},
    {"downstreamstatus", USE_STATUS, 0},
    {"nbytes", USE_BYTES, 0},
    {"bytes", USE_BYTES, 0},
    {"file", USE_FILE, 0},
};

/* The positions of the fields that the reader uses. Records with the same names of fields have the same layout. */
typedef struct field_layout {
    uint32_t used[USE_COUNT]; /* index + 1 of the first field for each use; 0: no field */
    uint32_t ids[IDS_MAX];    /* index + 1 of the field of each ID; 0: no field */
    double unit_ns;           /* the duration's unit in nanoseconds */
    bool has_unit;            /* the name of the duration's field determines its unit */
} field_layout;

/* A cached layout, with the names of the record's fields one after another. */
typedef struct known_layout {
    field_layout layout;
    uint32_t field_count; /* 0: the entry is empty */
    uint16_t sizes[LAYOUT_FIELDS_MAX];
    char names[LAYOUT_NAMES_SIZE];
} known_layout;

/* A record, and the positions of its fields. */
typedef struct found_fields {
    const nl_record *record;
    const field_layout *layout;
} found_fields;

/* A cached name of an event, and its number. */
typedef struct known_name {
    nl_string text; /* owned by the table of names */
    uint32_t number;
} known_name;

/*
 * The numbers of two patterns of a program's name; 0: no pattern. In the first, "*" replaces the last number; in the
 * second, "*" replaces all numbers.
 */
typedef struct program_patterns {
    uint16_t last, all;
} program_patterns;

/* A cached pair of a host and a program, and their numbers. `place` is the number of the pair. */
typedef struct known_place {
    nl_string host_text, program_text; /* owned by the tables */
    uint32_t host, program, place;
    const program_patterns *patterns;
} known_place;

/* The caches store the latest text for each short hash. A lookup also compares the texts. */
struct request_reader {
    const char *const *ids;
    size_t id_count;
    nl_fraction fraction;
    event_names *names;
    name_table hosts, programs, places, processes, patterns;
    GPtrArray *program_patterns; /* program_patterns, by program; NULL: not known yet */
    clock_bounds *clocks;
    uint64_t seed;
    uint32_t order;
    bool splits_unnamed;    /* see request_reader_split_unnamed */
    bool has_nanoseconds;   /* see request_reader_has_nanoseconds */
    GString *failure_test;  /* see request_reader_failure_test */
    unsigned failure_signs; /* bit s: failure_test finds failures with sign s */
    found_fields found;     /* fields of the latest record */
    field_layout scratch;   /* layout of the latest record, if it has too many fields for a cached layout */
    known_layout layouts[CACHE_SIZE];
    known_name name_cache[CACHE_SIZE];
    known_place place_cache[CACHE_SIZE];
};

request_reader *request_reader_new(const char *const *ids, nl_fraction fraction)
{
    request_reader *r = g_new0(request_reader, 1);
    r->failure_test = g_string_new(NULL);
    r->ids = ids;
    while (ids != NULL && ids[r->id_count] != NULL && r->id_count < IDS_MAX)
        r->id_count++;
    r->fraction = fraction;
    r->names = event_names_new();
    r->clocks = clock_bounds_new();
    r->program_patterns = g_ptr_array_new_with_free_func(g_free);
    r->seed = (uint64_t)g_random_int() << 32 | g_random_int();
    return r;
}

void request_reader_free(request_reader *r)
{
    if (r == NULL)
        return;
    event_names_free(r->names);
    g_string_free(r->failure_test, TRUE);
    clock_bounds_free(r->clocks);
    name_table_free(&r->hosts);
    name_table_free(&r->programs);
    name_table_free(&r->places);
    name_table_free(&r->processes);
    name_table_free(&r->patterns);
    g_ptr_array_free(r->program_patterns, TRUE);
    g_free(r);
}

void request_reader_split_unnamed(request_reader *r)
{
    r->splits_unnamed = true;
}

nl_string request_unnamed(nl_string program, char buffer[REQUEST_UNNAMED_SIZE])
{
    static const char prefix[] = REQUEST_UNNAMED_OF;
    if (program.size == 0)
        return (nl_string){REQUEST_UNNAMED, sizeof REQUEST_UNNAMED - 1};
    const size_t size = MIN(program.size, REQUEST_UNNAMED_SIZE - sizeof prefix);
    memcpy(buffer, prefix, sizeof prefix - 1);
    memcpy(buffer + sizeof prefix - 1, program.data, size);
    return (nl_string){buffer, sizeof prefix - 1 + size};
}

/* ---- fields ---- */

/* Returns the index in `uses` of a field's name, plus 1. Returns 0 if the reader does not use the field. */
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

/*
 * Returns the position of a name among the names of an ID, which are joined by |. Returns -1 if the ID does not have
 * the name.
 */
static int rank_of(const char *id, nl_string name)
{
    for (int rank = 0; *id != '\0'; rank++) {
        size_t size = strcspn(id, "|");
        if (size == name.size && memcmp(id, name.data, size) == 0)
            return rank;
        id += size + (id[size] == '|');
    }
    return -1;
}

/* Adds a field to a layout if the reader uses it, and no earlier field has the same use. */
static void add_use(field_layout *layout, nl_string name, size_t index)
{
    uint8_t use = use_of(name);
    if (use == 0 || layout->used[uses[use - 1].use] != 0)
        return;
    layout->used[uses[use - 1].use] = (uint32_t)index + 1;
    if (uses[use - 1].use != USE_DURATION)
        return;
    layout->unit_ns = uses[use - 1].unit_ns;
    layout->has_unit = strcmp(uses[use - 1].letters, "dur") != 0 && strcmp(uses[use - 1].letters, "duration") != 0;
}

/*
 * Adds a field to a layout if its name belongs to an ID. A name belongs to at most one ID. ranks[i] is the position of
 * the layout's field for ID i among the names of this ID.
 */
static void add_id(const request_reader *r, field_layout *layout, int *ranks, nl_string name, size_t index)
{
    int rank = -1;
    for (size_t i = 0; i < r->id_count && rank < 0; i++) {
        rank = rank_of(r->ids[i], name);
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): ranks[i] is set with ids[i] */
        if (rank < 0 || (layout->ids[i] != 0 && rank >= ranks[i]))
            continue;
        layout->ids[i] = (uint32_t)index + 1;
        ranks[i] = rank;
    }
}

static void find_layout(const request_reader *r, const nl_record *record, field_layout *layout)
{
    int ranks[IDS_MAX];
    *layout = (field_layout){0};
    for (size_t i = 0; i < record->field_count; i++) {
        add_use(layout, record->fields[i].name, i);
        add_id(r, layout, ranks, record->fields[i].name, i);
    }
}

/*
 * Returns whether two texts of the same size are equal. Inline, because a call would take more time than the comparison
 * of a short text.
 */
static inline bool equal_texts(const char *a, const char *b, size_t size)
{
    uint64_t x, y;
    if (size < sizeof x) {
        for (size_t i = 0; i < size; i++)
            if (a[i] != b[i])
                return false;
        return true;
    }
    for (size_t at = 0;; at = at + 2 * sizeof x > size ? size - sizeof x : at + sizeof x) {
        memcpy(&x, a + at, sizeof x);
        memcpy(&y, b + at, sizeof y);
        if (x != y || at == size - sizeof x)
            return x == y;
    }
}

/* Returns a short hash of a text, which is the index of the text in a cache. */
static inline size_t cache_index(nl_string text)
{
    uint64_t word = text.size;
    if (text.size >= sizeof word) {
        uint64_t last;
        memcpy(&last, text.data + text.size - sizeof last, sizeof last);
        memcpy(&word, text.data, sizeof word);
        word ^= last * 31 + text.size;
    } else {
        for (size_t i = 0; i < text.size; i++)
            word = word << 8 ^ (unsigned char)text.data[i];
    }
    return (size_t)((word * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (CACHE_SIZE - 1);
}

static bool has_layout(const known_layout *known, const nl_record *record)
{
    const char *name = known->names;
    if (known->field_count != record->field_count)
        return false;
    for (size_t i = 0; i < record->field_count; name += known->sizes[i++])
        if (record->fields[i].name.size != known->sizes[i] ||
            !equal_texts(record->fields[i].name.data, name, known->sizes[i]))
            return false;
    return true;
}

/* Copies the names of a record's fields. Returns false if they do not fit into a known_layout. */
static bool note_names(known_layout *known, const nl_record *record)
{
    size_t size = 0;
    known->field_count = 0;
    if (record->field_count == 0 || record->field_count > LAYOUT_FIELDS_MAX)
        return false;
    for (size_t i = 0; i < record->field_count; i++) {
        nl_string name = record->fields[i].name;
        if (name.size > sizeof known->names - size)
            return false;
        memcpy(known->names + size, name.data, name.size);
        known->sizes[i] = (uint16_t)name.size;
        size += name.size;
    }
    known->field_count = (uint32_t)record->field_count;
    return true;
}

static void find_fields(request_reader *r, const nl_record *record)
{
    known_layout *known = &r->layouts[(cache_index(record->event) + record->field_count) & (CACHE_SIZE - 1)];
    r->found = (found_fields){record, &known->layout};
    if (has_layout(known, record) && record->field_count > 0)
        return;
    if (!note_names(known, record))
        r->found.layout = &r->scratch;
    find_layout(r, record, (field_layout *)r->found.layout);
}

static inline const nl_field *field_of(const found_fields *f, field_use use)
{
    return f->layout->used[use] != 0 ? &f->record->fields[f->layout->used[use] - 1] : NULL;
}

static inline const nl_field *id_of(const found_fields *f, size_t id)
{
    return f->layout->ids[id] != 0 ? &f->record->fields[f->layout->ids[id] - 1] : NULL;
}

/* Returns whether a text is empty or consists of two or more zeros. */
static inline bool is_nothing(nl_string text)
{
    uint64_t word;
    const uint64_t zeros = UINT64_C(0x3030303030303030);
    size_t at = 0;
    for (; at + sizeof word <= text.size; at += sizeof word) {
        memcpy(&word, text.data + at, sizeof word);
        if (word != zeros)
            return false;
    }
    while (at < text.size && text.data[at] == '0')
        at++;
    return at == text.size && text.size != 1;
}

/*
 * Returns a hash of a field's value, which is not 0. Returns 0 for an empty value and for several zeros, because such a
 * value is not an identifier.
 */
static inline uint64_t hash_value(const request_reader *r, const nl_field *field, uint64_t seed)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = field->type == NL_TYPE_STRING ? field->string : nl_field_text(field, scratch);
    return is_nothing(text) ? 0 : hash_bytes(r->seed ^ seed, text.data, text.size) | 1;
}

/* Returns the letter in the field ph of a Chrome event, or NUL if there is no such letter. */
static char phase_of(const found_fields *f)
{
    const nl_field *phase = field_of(f, USE_PHASE);
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

/* Returns the rounding of a duration whose unit is unit_ns: the duration is a multiple of 10^rounding nanoseconds. */
static unsigned rounding_of(const nl_field *field, double unit_ns)
{
    unsigned digits = 0, decimals = field->type == NL_TYPE_DOUBLE ? 18 : count_decimals(field);
    for (double ns = 1; ns < unit_ns; ns *= 10)
        digits++;
    return digits > decimals ? digits - decimals : 0;
}

/*
 * Returns the duration in nanoseconds from a text with units, such as "12.3ms" or "1m2.5s". Programs in Go write such
 * texts. Sets *unit_ns to the last unit. Returns -1 if the text has another form.
 */
static double read_units(nl_string text, double *unit_ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1},   {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"\xce\xbcs", 1e3},
                 {"ms", 1e6}, {"s", 1e9},  {"m", 60e9},        {"h", 3600e9}};
    double sum = 0;
    for (size_t at = 0; at < text.size;) {
        char number[32];
        size_t size = 0, i = 0;
        while (at < text.size && size + 1 < sizeof number &&
               (isdigit((unsigned char)text.data[at]) || text.data[at] == '.'))
            number[size++] = text.data[at++];
        number[size] = '\0';
        for (; i < G_N_ELEMENTS(units); i++) {
            size_t length = strlen(units[i].name), end = at + length;
            if (end <= text.size && memcmp(text.data + at, units[i].name, length) == 0 &&
                (end == text.size || isdigit((unsigned char)text.data[end])))
                break;
        }
        if (size == 0 || i == G_N_ELEMENTS(units))
            return -1;
        at += strlen(units[i].name);
        *unit_ns = units[i].ns;
        sum += g_ascii_strtod(number, NULL) * units[i].ns;
    }
    return text.size > 0 ? sum : -1;
}

/*
 * Returns whether a number without a unit is in nanoseconds (request_reader.h), and then sets *has_nanoseconds.
 * *has_nanoseconds means that an earlier number was in nanoseconds.
 */
static bool is_in_nanoseconds(const nl_field *field, double value, bool *has_nanoseconds)
{
    if (field->type == NL_TYPE_DOUBLE || count_decimals(field) > 0)
        return false;
    *has_nanoseconds |= value > SECONDS_MAX;
    return *has_nanoseconds;
}

/*
 * Returns the duration of a record in nanoseconds, and sets *rounding (see request_event). Returns -1 if the record has
 * no duration. For *has_nanoseconds, see is_in_nanoseconds.
 */
static int64_t duration_of(nl_fraction fraction, const found_fields *f, bool *has_nanoseconds, unsigned *rounding)
{
    double value;
    int64_t start_ns, time_ns = f->record->time_ns;
    const nl_field *start = field_of(f, USE_START), *duration = field_of(f, USE_DURATION),
                   *phase = field_of(f, USE_PHASE);
    if (phase != NULL && phase_of(f) != 'X')
        return -1;
    /* An access log of Traefik has StartUTC, and its Duration is in nanoseconds. */
    double unit_ns = phase != NULL ? 1e3 : field_of(f, USE_START_UTC) != NULL ? 1 : f->layout->unit_ns, ns = -1;
    bool is_number = duration != NULL && nl_field_double(duration, &value);
    if (is_number && unit_ns == 1e9 && !f->layout->has_unit && is_in_nanoseconds(duration, value, has_nanoseconds))
        unit_ns = 1;
    if (is_number)
        ns = value * unit_ns;
    else if (duration != NULL && duration->type == NL_TYPE_STRING)
        ns = read_units(duration->string, &unit_ns);
    if (is_number || ns >= 0) {
        *rounding = rounding_of(duration, unit_ns);
        return ns >= 0 && ns < 9e18 ? (int64_t)(ns + 0.5) : -1;
    }
    if (start != NULL && start->type == NL_TYPE_STRING &&
        nl_time_parse(start->string.data, start->string.size, fraction, &start_ns) == NL_OK && start_ns <= time_ns &&
        !__builtin_sub_overflow(time_ns, start_ns, &start_ns)) {
        *rounding = rounding_of(start, 1e9);
        return start_ns;
    }
    return -1;
}

/* Returns whether a field with this name may be a duration, a start or a phase. */
static inline bool may_be_duration(nl_string name)
{
    enum {
        SECOND = 1 << ('u' & 31) | 1 << ('t' & 31) | 1 << ('h' & 31) | 1 << ('e' & 31), /* second letters, as bits */
        REQUEST_TIME_SIZE = sizeof "requesttime" - 1,
    };
    if (name.size < 2 || !(SECOND >> (name.data[1] & 31) & 1))
        return false;
    int first = name.data[0] | 32, second = name.data[1] | 32; /* in lower case */
    return (first == 'd' && second == 'u') || (first == 's' && second == 't') || (first == 'p' && second == 'h') ||
           (first == 'r' && second == 'e' && name.size >= REQUEST_TIME_SIZE && name.size <= REQUEST_TIME_SIZE + 1);
}

/* Like request_duration, for a record whose fields before the index `first` are not durations. */
static __attribute__((noinline)) bool read_duration(const nl_record *record, size_t first, nl_fraction fraction,
                                                    bool *has_nanoseconds, int64_t *duration_ns, bool *begins)
{
    field_layout layout = {0};
    const found_fields f = {record, &layout};
    unsigned rounding;
    for (size_t i = first; i < record->field_count; i++)
        if (may_be_duration(record->fields[i].name))
            add_use(&layout, record->fields[i].name, i);
    *duration_ns = duration_of(fraction, &f, has_nanoseconds, &rounding);
    *begins = phase_of(&f) == 'X';
    return *duration_ns >= 0;
}

bool request_duration(const nl_record *record, nl_fraction fraction, bool *has_nanoseconds, int64_t *duration_ns,
                      bool *begins)
{
    for (size_t i = 0; i < record->field_count; i++)
        if (may_be_duration(record->fields[i].name))
            return read_duration(record, i, fraction, has_nanoseconds, duration_ns, begins);
    return false; /* most records have no duration */
}

/*
 * Returns whether a status reports a failure. A negative number is a failure, as is an HTTP status from 500 to 599. A
 * number from 1 to 99 is also a failure, such as an exit status or OTLP's 2.
 */
static bool is_failure_number(int64_t status)
{
    return status < 0 || (status >= 1 && status <= 99) || (status >= 500 && status <= 599);
}

/* Returns whether a name ends with a word. Ignores the case of letters. */
static bool ends_with(nl_string name, const char *word)
{
    size_t size = strlen(word);
    return name.size >= size && g_ascii_strncasecmp(name.data + name.size - size, word, size) == 0;
}

/*
 * Returns whether a warning contains a code of HTTP or SIP that reports a timeout. Without the level, such a number may
 * have any meaning.
 */
static bool warns_of_timeout(const nl_record *record)
{
    static const char *const codes[] = {"408", "504"};
    char scratch[NL_FIELD_TEXT_SIZE];
    for (size_t i = 0; record->level == NL_WARNING && i < record->field_count; i++) {
        nl_string name = record->fields[i].name, text;
        if (!ends_with(name, "code") && !ends_with(name, "status"))
            continue;
        text = nl_field_text(&record->fields[i], scratch);
        for (size_t n = 0; n < G_N_ELEMENTS(codes); n++)
            if (text.size == strlen(codes[n]) && memcmp(text.data, codes[n], text.size) == 0)
                return true;
    }
    return false;
}

/* Why a record reports a failure. */
typedef enum failure_sign {
    FAILURE_NONE,
    FAILURE_LEVEL,
    FAILURE_NEGATIVE,
    FAILURE_EXIT,
    FAILURE_HTTP,
    FAILURE_TEXT
} failure_sign;

static failure_sign sign_of_number(int64_t status)
{
    return !is_failure_number(status) ? FAILURE_NONE
           : status < 0               ? FAILURE_NEGATIVE
           : status < 100             ? FAILURE_EXIT
                                      : FAILURE_HTTP;
}

static failure_sign failure_sign_of(const nl_record *record, const nl_field *status)
{
    static const char *const failures[] = {"error", "failed", "failure", "timeout"};
    char scratch[NL_FIELD_TEXT_SIZE], number[8], *end;
    if ((record->level != NL_LEVEL_NONE && record->level <= NL_ERROR) || warns_of_timeout(record))
        return FAILURE_LEVEL;
    if (status == NULL)
        return FAILURE_NONE;
    if (status->type == NL_TYPE_INT)
        return sign_of_number(status->int_value);
    nl_string text = nl_field_text(status, scratch);
    for (size_t i = 0; i < G_N_ELEMENTS(failures); i++)
        if (text.size == strlen(failures[i]) && g_ascii_strncasecmp(text.data, failures[i], text.size) == 0)
            return FAILURE_TEXT;
    if (text.size == 0 || text.size >= sizeof number)
        return FAILURE_NONE;
    memcpy(number, text.data, text.size);
    number[text.size] = '\0';
    long value = strtol(number, &end, 10);
    return *end == '\0' ? sign_of_number(value) : FAILURE_NONE;
}

/* Adds the test that finds failures with this sign, for request_reader_failure_test. Uses the first record with the
 * sign. */
static void add_failure_test(request_reader *r, const nl_record *record, const nl_field *status, failure_sign sign)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string name = status != NULL ? status->name : (nl_string){0}, text = {0};
    for (size_t i = 0; i < name.size && sign != FAILURE_LEVEL; i++)
        if (!g_ascii_isalnum(name.data[i]) && strchr("._", name.data[i]) == NULL)
            return; /* a test cannot name this field */
    r->failure_signs |= 1u << sign;
    g_string_append(r->failure_test, r->failure_test->len > 0 ? " || " : "");
    if (sign == FAILURE_LEVEL) {
        g_string_append(r->failure_test, record->level <= NL_ERROR ? "LVL <= Error" : "LVL <= Warning");
        return;
    }
    const int size = (int)name.size;
    if (sign == FAILURE_TEXT)
        text = nl_field_text(status, scratch);
    if (sign == FAILURE_NEGATIVE || sign == FAILURE_HTTP)
        g_string_append_printf(r->failure_test, "%.*s %s", size, name.data, sign == FAILURE_HTTP ? ">= 500" : "< 0");
    else if (sign == FAILURE_EXIT)
        g_string_append_printf(r->failure_test, "%.*s >= 1 && %.*s <= 99", size, name.data, size, name.data);
    else
        g_string_append_printf(r->failure_test, "%.*s == \"%.*s\"", size, name.data, (int)text.size, text.data);
}

bool request_is_failure(const nl_record *record)
{
    nl_field status;
    return failure_sign_of(record, nl_record_find(record, "STATUS", &status) ? &status : NULL) != FAILURE_NONE;
}

/* ---- numbers ---- */

/*
 * Returns the number of a name, from 1. Adds the name if it is new. Returns 0 for an empty name. Names beyond the limit
 * share the last number.
 */
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

/*
 * Returns the text to store in a cache entry, which is a table's text for the name. Returns {0} if this text differs
 * from the name, because the name is beyond the table's limit.
 */
static nl_string cached_text(const char *text, nl_string name)
{
    bool same = name.size > 0 && strlen(text) == name.size && memcmp(text, name.data, name.size) == 0;
    return same ? (nl_string){text, name.size} : (nl_string){0};
}

/* Returns whether a cache entry contains a text. The reader does not cache empty texts. */
static inline bool is_cached(nl_string cached, nl_string text)
{
    return cached.size == text.size && text.size > 0 && equal_texts(cached.data, text.data, text.size);
}

static uint32_t number_of_event(request_reader *r, nl_string name)
{
    known_name *known = &r->name_cache[cache_index(name)];
    if (!is_cached(known->text, name)) {
        known->number = event_names_add(r->names, name);
        known->text = cached_text(event_names_text(r->names, known->number), name);
    }
    return known->number;
}

/* Returns the number of a pattern. Returns 0 if `pattern` is NULL, or if there are too many patterns. */
static uint16_t number_of_pattern(request_reader *r, const char *pattern)
{
    uint32_t number = pattern != NULL ? number_of(&r->patterns, nl_string_of(pattern)) : 0;
    return number <= UINT16_MAX ? (uint16_t)number : 0;
}

static const program_patterns *patterns_of(request_reader *r, uint32_t program)
{
    if (program >= r->program_patterns->len)
        g_ptr_array_set_size(r->program_patterns, (gint)program + 1);
    program_patterns *known = g_ptr_array_index(r->program_patterns, program);
    if (known == NULL) {
        const char *name = text_of(&r->programs, program), *last = program_find_pattern(name, false);
        known = g_new(program_patterns, 1);
        *known = (program_patterns){number_of_pattern(r, last),
                                    number_of_pattern(r, last != NULL ? program_pattern(name) : NULL)};
        g_ptr_array_index(r->program_patterns, program) = known;
    }
    return known;
}

/* Returns the numbers of a record's host and program. The result is valid until the next call. */
static const known_place *find_place(request_reader *r, const nl_record *record)
{
    size_t index = cache_index(record->host) ^ cache_index(record->prog) << 1;
    known_place *known = &r->place_cache[index & (CACHE_SIZE - 1)];
    if (is_cached(known->host_text, record->host) && is_cached(known->program_text, record->prog))
        return known;
    char text[24];
    known->host = number_of(&r->hosts, record->host);
    known->program = number_of(&r->programs, record->prog);
    known->place = number_of(
        &r->places, (nl_string){text, (size_t)snprintf(text, sizeof text, "%u %u", known->host, known->program)});
    known->patterns = patterns_of(r, known->program);
    known->host_text = cached_text(text_of(&r->hosts, known->host), record->host);
    known->program_text = cached_text(text_of(&r->programs, known->program), record->prog);
    return known;
}

/* ---- records ---- */

/*
 * Returns the hash of the trace ID or of the ID fields, which name the record's request. Returns 0 if the record has
 * neither a trace ID nor all ID fields. Sets *traced to whether the record has a trace ID.
 */
static uint64_t request_of(const request_reader *r, const found_fields *f, bool *traced)
{
    const nl_field *trace = field_of(f, USE_TRACE);
    uint64_t hash = trace != NULL ? hash_value(r, trace, 0) : 0;
    *traced = hash != 0;
    for (size_t i = 0; i < r->id_count && !*traced; i++) {
        const nl_field *field = id_of(f, i);
        uint64_t value = field != NULL ? hash_value(r, field, i + 1) : 0;
        if (value == 0)
            return 0;
        hash = hash_mix(hash ^ value, UINT64_C(0x9e3779b97f4a7c15)) | 1;
    }
    return hash;
}

/*
 * Returns the thread's number, or 0 if the record names no thread. Includes the process in the key, because a thread's
 * identifier may be unique only in its process.
 */
static uint32_t thread_of(const request_reader *r, const found_fields *f, uint16_t process)
{
    const nl_field *thread = field_of(f, USE_THREAD);
    if (thread == NULL)
        return 0;
    return (uint32_t)hash_mix(hash_value(r, thread, 0) ^ process, UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

/*
 * Returns the number of the record's process, or 0 if the record names no process. Processes beyond the limit share the
 * last number.
 */
static uint16_t process_of(request_reader *r, const found_fields *f)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    const nl_field *process = field_of(f, USE_PROCESS);
    if (process == NULL)
        return 0;
    return (uint16_t)MIN(number_of(&r->processes, nl_field_text(process, scratch)), UINT16_MAX);
}

/* Returns whether a record is from a sensor, or is NetLogger's report about the log itself, such as NetLogger.Lost. */
static bool is_own(const nl_record *record)
{
    static const char sensor[] = "nlsensor", own[] = "NetLogger.";
    return (record->prog.size == sizeof sensor - 1 && memcmp(record->prog.data, sensor, sizeof sensor - 1) == 0) ||
           (record->event.size >= sizeof own - 1 && memcmp(record->event.data, own, sizeof own - 1) == 0);
}

void request_reader_learn(request_reader *r, const nl_record *record)
{
    if (record->event.size > 5 && memcmp(record->event.data, "Clock", 5) == 0)
        clock_bounds_learn(r->clocks, record, number_of(&r->hosts, record->host));
}

uint64_t request_reader_take(request_reader *r, const nl_record *record, request_event *event)
{
    char buffer[REQUEST_UNNAMED_SIZE];
    const found_fields *f = &r->found;
    bool traced;
    find_fields(r, record);
    uint64_t request = request_of(r, f, &traced);
    if ((request == 0 && r->id_count > 0) || is_own(record))
        return 0;
    const known_place *place = find_place(r, record);
    const nl_field *span = field_of(f, USE_SPAN), *parent = field_of(f, USE_PARENT);
    unsigned rounding = 0;
    int64_t duration_ns = duration_of(r->fraction, f, &r->has_nanoseconds, &rounding);
    uint16_t process = process_of(r, f);
    const failure_sign sign = failure_sign_of(record, field_of(f, USE_STATUS));
    if (sign != FAILURE_NONE && (r->failure_signs >> sign & 1) == 0)
        add_failure_test(r, record, field_of(f, USE_STATUS), sign);
    nl_string name = record->event;
    if (duration_ns >= 0 && name.size == 0) /* as in access logs */
        name = request_unnamed(r->splits_unnamed ? record->prog : (nl_string){0}, buffer);
    *event = (request_event){
        .time_ns = record->time_ns,
        .name = number_of_event(r, name),
        .host = place->host,
        .program = place->program,
        .family = place->patterns->last,
        .families = place->patterns->all,
        .place = place->place,
        .thread = thread_of(r, f, process),
        .process = process,
        .span_id = span != NULL ? hash_value(r, span, 0) : 0,
        .parent = parent != NULL ? hash_value(r, parent, 0) : 0,
        .order = r->order++,
        .role = duration_ns >= 0 ? REQUEST_WHOLE : REQUEST_POINT,
        .rounding = rounding & 31,
        .duration_ns = MAX(duration_ns, 0),
        .traced = traced,
        .failed = sign != FAILURE_NONE,
    };
    char phase = phase_of(f);
    if (phase == 'B' || phase == 'E')
        event->role = phase == 'B' ? REQUEST_BEGIN : REQUEST_END;
    event->span_name = event->name;
    event->time_ns = CLAMP(event->time_ns, -REQUEST_TIME_MAX, REQUEST_TIME_MAX);
    if (phase == 'X') { /* a Chrome event's time is its start */
        event->duration_ns = MIN(event->duration_ns, REQUEST_TIME_MAX - MAX(event->time_ns, 0));
        event->time_ns += event->duration_ns;
    }
    event->duration_ns = MIN(event->duration_ns, REQUEST_TIME_MAX + MIN(event->time_ns, 0));
    uint32_t lane = event->thread != 0 ? event->thread : event->process;
    return request != 0 ? request : hash_mix((uint64_t)event->place << 32 | lane, r->seed) | 1;
}

nl_string request_reader_find_thread(const request_reader *r, char scratch[NL_FIELD_TEXT_SIZE])
{
    const nl_field *thread = field_of(&r->found, USE_THREAD),
                   *named = thread != NULL ? thread : field_of(&r->found, USE_PROCESS);
    return named != NULL ? nl_field_text(named, scratch) : (nl_string){0};
}

bool request_reader_find_bytes(const request_reader *r, double *bytes, nl_string *what,
                               char scratch[NL_FIELD_TEXT_SIZE])
{
    const nl_field *count = field_of(&r->found, USE_BYTES), *file = field_of(&r->found, USE_FILE);
    if (count == NULL || !nl_field_double(count, bytes) || !(*bytes >= 0) || !(*bytes < 1e18))
        return false;
    *what = file != NULL ? nl_field_text(file, scratch) : (nl_string){0};
    return true;
}

char *request_reader_name_request(const request_reader *r)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text;
    const nl_field *trace = field_of(&r->found, USE_TRACE);
    if (trace != NULL && !is_nothing(text = nl_field_text(trace, scratch))) {
        return g_strndup(text.data, MIN(text.size, NAME_SIZE_MAX));
    }
    if (r->id_count == 1 && id_of(&r->found, 0) != NULL) {
        text = nl_field_text(id_of(&r->found, 0), scratch);
        return g_strndup(text.data, MIN(text.size, NAME_SIZE_MAX));
    }
    GString *name = g_string_new("");
    for (size_t i = 0; i < r->id_count && name->len < NAME_SIZE_MAX; i++) {
        const nl_field *field = id_of(&r->found, i);
        if (field == NULL)
            continue;
        text = nl_field_text(field, scratch);
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

void request_reader_expect_nanoseconds(request_reader *r)
{
    r->has_nanoseconds = true;
}

bool request_reader_has_nanoseconds(const request_reader *r)
{
    return r->has_nanoseconds;
}

const char *request_reader_failure_test(const request_reader *r)
{
    return r->failure_test->str;
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
