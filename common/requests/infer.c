#include "config.h"

#include "base/text.h"
#include "requests/infer.h"

#include "requests/event_names.h"
#include "requests/field_units.h"
#include "requests/hash64.h"
#include "requests/request_reader.h"

#include <string.h>

enum {
    LIFELINES_MAX = 3,
    IDS_MAX = 4,
    EVENTS_MAX = 64, /* maximum number of events of a lifeline */
    REFINE_FIELDS_MAX = 64,
    LOADLINES_PER_EVENT = 2,
    LOADLINES_MAX = 6,
    POINTS_MAX = 16,
    LOADLINE_RECORDS = 3,
    KERNEL_FIELDS = 3,
};

#define OWN_EVENTS "NetLogger." /* the prefix of events such as NetLogger.Lost */
#define LINKS_MIN 0.05          /* minimum number of links per record that has the ID field */

/* The numbers that measure how well the values of one or more fields link events. */
typedef struct tie {
    uint64_t links;
    uint64_t records;
    uint64_t requests; /* number of groups with links */
} tie;

typedef struct inference {
    const trace *t;
    size_t count; /* number of records to examine, at most INFER_RECORDS */
    size_t strings;
    uint32_t *steps;                   /* indexed by record: the kind of step (step_of), or TRACE_NONE */
    bool *used;                        /* indexed by the kind of step: the drawing contains the events of this kind */
    bool *excluded;                    /* indexed by the string of a field's name: the field cannot be an ID */
    uint32_t trace_id;                 /* string of the name of the field with trace IDs, or TRACE_NONE */
    uint32_t sensor;                   /* string of the name of the program "nlsensor", or TRACE_NONE */
    uint32_t of_kernel[KERNEL_FIELDS]; /* strings of the names of the first fields of kernel events, or TRACE_NONE */
    bool joins_kernel;                 /* kernel events can be steps */
    GHashTable *barred;                /* the pairs (event, field) of find_barred, as keys of hash64; NULL: no pairs */
    tie *ties;                         /* the result of tie_fields before the first lifeline, or NULL */
    bool splits_unnamed;               /* each program's spans without names are a separate event */
    bool used_unnamed;                 /* a lifeline contains spans without names */
    drawing *result;
} inference;

typedef struct group {
    uint32_t records;
    uint32_t events; /* number of different events */
    uint32_t field;  /* string of the field's name; used only in best_field */
} group;

/* Records grouped by a key, with the different events of each group. */
typedef struct grouping {
    GHashTable *numbers; /* maps a key to its group's number + 1 */
    GHashTable *pairs;   /* the pairs (group number, event) that have occurred */
    GArray *groups;      /* group, by number */
} grouping;

static grouping grouping_new(void)
{
    return (grouping){
        .numbers = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL),
        .pairs = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL),
        .groups = g_array_new(FALSE, TRUE, sizeof(group)),
    };
}

static void grouping_free(grouping *g)
{
    g_hash_table_destroy(g->numbers);
    g_hash_table_destroy(g->pairs);
    g_array_free(g->groups, TRUE);
}

static group *group_at(const grouping *g, guint number)
{
    return &g_array_index(g->groups, group, number);
}

/* Returns the number of a key in a table, plus 1. A new key gets the number `count`. */
static guint number_of(GHashTable *table, guint64 key, guint count)
{
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(table, &key));
    if (number == 0) {
        number = count + 1;
        g_hash_table_insert(table, g_memdup2(&key, sizeof key), GUINT_TO_POINTER(number));
    }
    return number;
}

static void add_to_group(grouping *g, guint64 key, uint32_t event, uint32_t field)
{
    guint number = number_of(g->numbers, key, g->groups->len) - 1;
    if (number == g->groups->len) {
        group empty = {.field = field};
        g_array_append_val(g->groups, empty);
    }
    group_at(g, number)->records++;
    guint pairs = g_hash_table_size(g->pairs);
    group_at(g, number)->events += number_of(g->pairs, (guint64)number << 32 | event, pairs) > pairs;
}

static void tie_add(tie *t, const group *g)
{
    t->links += g->events - 1;
    t->records += g->records;
    t->requests += g->events > 1;
}

/* ---- fields that are not IDs ---- */

/* A field is a measurement, a time or an outcome if its name ends with one of these words. */
static const char *const measures[] = {
    "available", "begin",   "busy",  "byte",   "bytes",  "code",     "count",     "date",  "delay", "dur",
    "duration",  "elapsed", "end",   "errno",  "error",  "exitcode", "free",      "idle",  "in",    "latency",
    "len",       "length",  "level", "load",   "lvl",    "ms",       "msec",      "ns",    "nsec",  "out",
    "pct",       "percent", "ph",    "rate",   "read",   "result",   "ret",       "rtt",   "sec",   "secs",
    "seconds",   "size",    "start", "status", "sz",     "time",     "timestamp", "total", "ts",    "us",
    "usec",      "used",    "val",   "value",  "values", "write",    "written",
};

static bool is_word_end(char c)
{
    return c == '.' || c == '_' || c == '-' || c == ':';
}

static const char *last_word(const char *name)
{
    const char *word = name;
    for (; *name != '\0'; name++)
        if (is_word_end(*name) && name[1] != '\0')
            word = name + 1;
    return word;
}

/* Returns whether a name without its separators equals `letters`, ignoring case. */
static bool has_letters(const char *name, const char *letters)
{
    for (; *name != '\0'; name++)
        if (!is_word_end(*name) && g_ascii_tolower(*name) != *letters++)
            return false;
    return *letters == '\0';
}

/* Returns whether this is the name of a field with the number of a processor. Many requests use the same processor. */
static bool is_processor_name(const char *name)
{
    return g_ascii_strcasecmp(last_word(name), "cpu") == 0 || has_letters(name, "cpuid");
}

static bool is_thread_name(const char *name)
{
    return has_letters(name, "tid") || has_letters(name, "vtid") || has_letters(name, "threadid");
}

/* Returns whether this is the name of a field with the identifier of a span, thread or process. */
static bool is_identifier(const char *name)
{
    return is_thread_name(name) || has_letters(name, "spanid") || has_letters(name, "parentid") ||
           has_letters(name, "parentspanid") || has_letters(name, "pid") || has_letters(name, "vpid");
}

static bool is_measure(const char *name)
{
    const char *word = last_word(name);
    bool found = is_processor_name(name) || (is_identifier(name) && !has_letters(name, "pid"));
    for (size_t i = 0; i < G_N_ELEMENTS(measures) && !found; i++)
        found = g_ascii_strcasecmp(word, measures[i]) == 0;
    return found;
}

/*
 * Sets `excluded` for the fields that are not IDs: fields with names of measurements, and fields with fractional
 * numbers unless their names end with "ID". If records name threads, also excludes process IDs, because the spans of
 * threads are requests.
 */
static void find_excluded(inference *in)
{
    in->trace_id = TRACE_NONE;
    in->sensor = trace_find(in->t, "nlsensor");
    bool *seen = g_new0(bool, in->strings + 1), has_threads = false;
    uint32_t process = TRACE_NONE;
    for (size_t i = 0; i < in->count; i++) {
        const trace_record *record = trace_get(in->t, i);
        const trace_field *fields = trace_fields(in->t, record);
        for (uint32_t f = 0; f < record->field_count; f++) {
            uint32_t number = fields[f].name;
            const char *name = trace_string(in->t, number), *value = trace_string(in->t, fields[f].value);
            double parsed;
            if (!seen[number]) {
                seen[number] = true;
                in->excluded[number] = is_measure(name);
                has_threads = has_threads || is_thread_name(name);
                process = has_letters(name, "pid") ? number : process;
                if (has_letters(name, "traceid") && in->trace_id == TRACE_NONE)
                    in->trace_id = number;
            }
            if (!in->excluded[number] && strchr(value, '.') != NULL && g_ascii_strcasecmp(last_word(name), "id") != 0)
                in->excluded[number] = trace_number(in->t, fields[f].value, &parsed);
        }
    }
    if (has_threads && process != TRACE_NONE)
        in->excluded[process] = true;
    g_free(seen);
}

/* Returns whether no lifeline or loadline contains the event of a record yet. */
static bool is_free(const inference *in, const trace_record *record)
{
    return record->event != TRACE_NONE && !in->used[record->event];
}

/* Returns whether the record with index i may be a step of a new lifeline. */
static bool is_step(const inference *in, size_t i)
{
    return in->steps[i] != TRACE_NONE && !in->used[in->steps[i]];
}

/* Returns whether a record has the duration or the start time of a span. */
static bool is_span(const inference *in, const trace_record *record)
{
    static const char *const names[] = {"dur",        "duration", "durms",      "durationms", "durus",
                                        "durationus", "durns",    "durationns", "requesttime"};
    enum { TIME_SIZE_MIN = 14 };
    const trace_field *fields = trace_fields(in->t, record);
    for (uint32_t f = 0; f < record->field_count; f++) {
        const char *name = trace_string(in->t, fields[f].name);
        if (has_letters(name, "start") && strlen(trace_string(in->t, fields[f].value)) >= TIME_SIZE_MIN)
            return true;
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
            if (has_letters(name, names[i]))
                return true;
    }
    return false;
}

/* Returns whether a record is a kernel event of nlkernel, which begins with the fields CPU, PID and TID. */
static bool is_of_kernel(const inference *in, const trace_record *record)
{
    const trace_field *fields = trace_fields(in->t, record);
    uint32_t same = 0;
    while (same < KERNEL_FIELDS && same < record->field_count && fields[same].name == in->of_kernel[same])
        same++;
    return same == KERNEL_FIELDS;
}

/*
 * Returns the kind of step of a record: the string of the event. The spans without names of different programs, such as
 * the access logs of two servers, are different kinds: the number of strings plus the string of the program. Returns
 * TRACE_NONE for other records without names, for records of nlsensor, and for NetLogger's reports about the log
 * itself. Also returns TRACE_NONE for kernel events, unless in->joins_kernel is true.
 */
static uint32_t step_of(const inference *in, const trace_record *record)
{
    if (record->prog == in->sensor && in->sensor != TRACE_NONE)
        return TRACE_NONE;
    if (!in->joins_kernel && is_of_kernel(in, record))
        return TRACE_NONE;
    if (record->event != TRACE_NONE)
        return g_str_has_prefix(trace_string(in->t, record->event), OWN_EVENTS) ? TRACE_NONE : record->event;
    return record->prog != TRACE_NONE && is_span(in, record) ? (uint32_t)in->strings + record->prog : TRACE_NONE;
}

static guint64 pair_key(uint32_t event, uint32_t field)
{
    return (guint64)event << 32 | field;
}

/* Returns whether an event cannot be a step of a lifeline with the ID `field` (see find_barred). */
static bool is_barred(const inference *in, uint32_t event, uint32_t field)
{
    guint64 key = pair_key(event, field);
    return in->barred != NULL && g_hash_table_contains(in->barred, &key);
}

/*
 * Returns an array with the tie of each field, indexed by the string of the field's name. The caller frees it with
 * g_free.
 */
static tie *tie_fields(const inference *in)
{
    grouping g = grouping_new();
    for (size_t i = 0; i < in->count; i++) {
        const trace_record *record = trace_get(in->t, i);
        const trace_field *fields = trace_fields(in->t, record);
        for (uint32_t f = 0; is_step(in, i) && f < record->field_count; f++)
            if (!in->excluded[fields[f].name] && !is_barred(in, record->event, fields[f].name))
                add_to_group(&g, (guint64)fields[f].name << 32 | fields[f].value, in->steps[i], fields[f].name);
    }
    tie *ties = g_new0(tie, in->strings + 1);
    for (guint i = 0; i < g.groups->len; i++)
        tie_add(&ties[group_at(&g, i)->field], group_at(&g, i));
    grouping_free(&g);
    return ties;
}

/* Returns whether a field with this tie can be an ID. */
static bool links_events(const tie *t, uint64_t requests_min)
{
    return t->requests >= requests_min && (double)t->links >= LINKS_MIN * (double)t->records;
}

/* Returns the field that links the most events, or TRACE_NONE. Sets *best to the counts of this field. */
static uint32_t best_field(inference *in, tie *best)
{
    tie *ties = in->ties != NULL ? g_steal_pointer(&in->ties) : tie_fields(in);
    uint32_t name = TRACE_NONE;
    *best = (tie){0};
    /* A single request is sufficient only for the first lifeline. */
    uint64_t requests_min = in->result->lifelines->len > 0 ? 2 : 1;
    for (uint32_t i = 0; i < in->strings; i++)
        if (ties[i].links > best->links && links_events(&ties[i], requests_min)) {
            *best = ties[i];
            name = i;
        }
    g_free(ties);
    return name;
}

/* ---- spans whose sides carry different IDs ---- */

/* A field of an event that begins or ends spans. */
typedef struct side_field {
    uint32_t event, field;
    uint32_t records;
} side_field;

/* The fields of the events that begin or end the spans of a log. */
typedef struct sides {
    uint32_t *span_of; /* for each event (a string), the number of the span that it begins or ends, or TRACE_NONE */
    uint32_t *records; /* for each event, the number of its records */
    uint32_t *events;  /* for each span, the number of events that begin or end it */
    GArray *fields;    /* side_field */
} sides;

static void find_spans(const inference *in, sides *s)
{
    event_names *names = event_names_new();
    uint32_t *numbers = g_new0(uint32_t, in->strings + 1);
    for (size_t i = 0; i < in->count; i++) {
        uint32_t event = trace_get(in->t, i)->event;
        const char *text = event != TRACE_NONE ? trace_string(in->t, event) : NULL;
        if (text != NULL && s->records[event]++ == 0)
            numbers[event] = event_names_add(names, nl_string_of(text));
    }
    s->events = g_new0(uint32_t, event_names_count(names) + 1);
    for (uint32_t event = 0; event < in->strings; event++) {
        uint32_t span = TRACE_NONE;
        s->span_of[event] = TRACE_NONE;
        if (s->records[event] == 0 || event_names_side(names, numbers[event], &span) == EVENT_SIDE_NONE)
            continue;
        s->span_of[event] = span;
        s->events[span]++;
    }
    g_free(numbers);
    event_names_free(names);
}

static sides find_sides(const inference *in)
{
    sides s = {.span_of = g_new(uint32_t, in->strings + 1),
               .records = g_new0(uint32_t, in->strings + 1),
               .fields = g_array_new(FALSE, FALSE, sizeof(side_field))};
    find_spans(in, &s);
    GHashTable *numbers = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
    for (size_t i = 0; i < in->count; i++) {
        const trace_record *record = trace_get(in->t, i);
        const trace_field *fields = trace_fields(in->t, record);
        bool is_side = is_free(in, record) && is_step(in, i) && s.span_of[record->event] != TRACE_NONE;
        for (uint32_t f = 0; is_side && f < record->field_count; f++) {
            side_field new = {.event = record->event, .field = fields[f].name};
            guint number = number_of(numbers, pair_key(new.event, new.field), s.fields->len);
            if (number > s.fields->len)
                g_array_append_val(s.fields, new);
            g_array_index(s.fields, side_field, number - 1).records++;
        }
    }
    g_hash_table_destroy(numbers);
    return s;
}

static void sides_free(sides *s)
{
    g_free(s->span_of);
    g_free(s->records);
    g_free(s->events);
    g_array_free(s->fields, TRUE);
}

/* Returns the number of a span's events for which most records have the field. */
static uint32_t count_carriers(GHashTable *carriers, uint32_t span, uint32_t field)
{
    guint64 key = pair_key(span, field);
    return GPOINTER_TO_UINT(g_hash_table_lookup(carriers, &key));
}

/*
 * For each ID field, finds the events that cannot be steps of its lifeline, because the lifeline would separate the
 * start of a span from its end. This is the case if the start or the end of a span lacks this ID, and both have another
 * ID.
 */
static void find_barred(inference *in)
{
    enum { REQUESTS_MIN = 2 };
    in->ties = tie_fields(in);
    sides s = find_sides(in);
    GHashTable *carriers = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL),
               *joined = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < s.fields->len; i++) {
        const side_field *f = &g_array_index(s.fields, side_field, i);
        uint32_t span = s.span_of[f->event], count = count_carriers(carriers, span, f->field) + 1;
        guint64 key = pair_key(span, f->field);
        if (f->records <= s.records[f->event] / 2 || !links_events(&in->ties[f->field], REQUESTS_MIN))
            continue;
        g_hash_table_replace(carriers, g_memdup2(&key, sizeof key), GUINT_TO_POINTER(count));
        if (count == s.events[span])
            g_hash_table_add(joined, GUINT_TO_POINTER(span));
    }
    in->barred = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
    for (guint i = 0; i < s.fields->len; i++) {
        const side_field *f = &g_array_index(s.fields, side_field, i);
        uint32_t span = s.span_of[f->event];
        guint64 key = pair_key(f->event, f->field);
        if (links_events(&in->ties[f->field], 1) && g_hash_table_contains(joined, GUINT_TO_POINTER(span)) &&
            count_carriers(carriers, span, f->field) < s.events[span])
            g_hash_table_add(in->barred, g_memdup2(&key, sizeof key));
    }
    if (g_hash_table_size(in->barred) > 0)
        g_clear_pointer(&in->ties, g_free);
    g_hash_table_destroy(carriers);
    g_hash_table_destroy(joined);
    sides_free(&s);
}

/* The ID fields of a possible lifeline. */
typedef struct candidate {
    uint32_t ids[IDS_MAX];
    unsigned id_count;
} candidate;

/* Sets *key to a hash of the ID values of the record with index i. Returns false if the record is not a step of the
 * candidate. */
static bool request_key(const inference *in, const candidate *c, size_t i, guint64 *key)
{
    const trace_record *record = trace_get(in->t, i);
    *key = 0;
    for (unsigned n = 0; n < c->id_count; n++) {
        uint32_t value = trace_value(in->t, record, c->ids[n]);
        if (value == TRACE_NONE)
            return false;
        *key = (*key ^ value) * UINT64_C(0x9e3779b97f4a7c15);
        *key ^= *key >> 29;
    }
    return is_step(in, i) && !is_barred(in, record->event, c->ids[0]);
}

static grouping group_requests(const inference *in, const candidate *c)
{
    grouping g = grouping_new();
    for (size_t i = 0; i < in->count; i++) {
        guint64 key;
        if (request_key(in, c, i, &key))
            add_to_group(&g, key, in->steps[i], TRACE_NONE);
    }
    return g;
}

/*
 * Returns the first record that is a step of the candidate, or NULL. Only fields of this record can become further IDs.
 */
static const trace_record *example_of(const inference *in, const candidate *c)
{
    guint64 key;
    for (size_t i = 0; i < in->count; i++)
        if (request_key(in, c, i, &key))
            return trace_get(in->t, i);
    return NULL;
}

/*
 * Repeatedly adds the first field that increases the number of links by more than 5 %. A later field replaces this
 * choice only if it gives more than 5 % more links than the choice does.
 */
static void refine(const inference *in, candidate *c, tie links)
{
    while (c->id_count < IDS_MAX) {
        const trace_record *example = example_of(in, c);
        uint32_t best = TRACE_NONE;
        for (uint32_t f = 0; example != NULL && f < MIN(example->field_count, REFINE_FIELDS_MAX); f++) {
            if (in->excluded[trace_fields(in->t, example)[f].name])
                continue;
            candidate with = *c;
            tie t = {0};
            with.ids[with.id_count++] = trace_fields(in->t, example)[f].name;
            grouping g = group_requests(in, &with);
            for (guint i = 0; i < g.groups->len; i++)
                tie_add(&t, group_at(&g, i));
            grouping_free(&g);
            if (t.links > links.links + links.links / 20) {
                links = t;
                best = with.ids[c->id_count];
            }
        }
        if (best == TRACE_NONE)
            return;
        c->ids[c->id_count++] = best;
    }
}

/*
 * The events of a lifeline in the order of their first records. before[i][j] is the number of requests in which event i
 * precedes event j.
 */
typedef struct precedence {
    uint32_t events[EVENTS_MAX];
    unsigned count;
    uint32_t before[EVENTS_MAX][EVENTS_MAX];
} precedence;

/* Returns the index of an event. Adds the event if it is new. Returns EVENTS_MAX if there is no space. */
static unsigned precedence_index(precedence *p, uint32_t event)
{
    unsigned i = 0;
    while (i < p->count && p->events[i] != event)
        i++;
    if (i == p->count && i < EVENTS_MAX)
        p->events[p->count++] = event;
    return i;
}

static void count_precedence(const inference *in, const candidate *c, const grouping *g, precedence *p)
{
    /* For each request, a bit for each event that has occurred. */
    uint64_t *seen = g_new0(uint64_t, g->groups->len + 1);
    for (size_t i = 0; i < in->count; i++) {
        guint64 key;
        if (!request_key(in, c, i, &key))
            continue;
        guint number = GPOINTER_TO_UINT(g_hash_table_lookup(g->numbers, &key)) - 1;
        unsigned index = group_at(g, number)->events < 2 ? EVENTS_MAX : precedence_index(p, in->steps[i]);
        if (index == EVENTS_MAX || (seen[number] >> index & 1))
            continue;
        for (unsigned other = 0; other < p->count; other++)
            p->before[other][index] += seen[number] >> other & 1;
        seen[number] |= UINT64_C(1) << index;
    }
    g_free(seen);
}

/*
 * Sorts the events by a score: the number of other events that usually follow an event, minus the number that usually
 * precede it. Stores their indices in `order`.
 */
static void order_events(const precedence *p, unsigned order[EVENTS_MAX])
{
    int score[EVENTS_MAX] = {0};
    for (unsigned i = 0; i < p->count; i++) {
        order[i] = i;
        for (unsigned j = 0; j < p->count; j++)
            score[i] += (p->before[i][j] > p->before[j][i]) - (p->before[i][j] < p->before[j][i]);
    }
    for (unsigned i = 1; i < p->count; i++)
        for (unsigned j = i; j > 0 && score[order[j - 1]] < score[order[j]]; j--) {
            unsigned swap = order[j];
            order[j] = order[j - 1];
            order[j - 1] = swap;
        }
}

/* Returns the name of the event of a kind of step. The caller frees it with g_free. */
static char *event_of_step(const inference *in, uint32_t step)
{
    char buffer[REQUEST_UNNAMED_SIZE];
    if (step < in->strings)
        return g_strdup(trace_string(in->t, step));
    if (!in->splits_unnamed)
        return g_strdup(REQUEST_UNNAMED);
    const char *program = trace_string(in->t, step - (uint32_t)in->strings);
    const nl_string name = request_unnamed((nl_string){program, strlen(program)}, buffer);
    return g_strndup(name.data, name.size);
}

/* Adds the lifeline of a candidate. Returns false if no two events share an ID. */
static bool add_lifeline_of(inference *in, candidate c)
{
    grouping g = group_requests(in, &c);
    precedence *p = g_new0(precedence, 1);
    count_precedence(in, &c, &g, p);
    grouping_free(&g);
    unsigned order[EVENTS_MAX];
    order_events(p, order);
    const char *ids[IDS_MAX + 1] = {NULL};
    GPtrArray *events = g_ptr_array_new_with_free_func(g_free);
    bool has_unnamed = false;
    for (unsigned i = 0; i < p->count; i++) {
        const uint32_t step = p->events[order[i]];
        const bool is_unnamed = step >= in->strings;
        in->used[step] = true;
        if (!is_unnamed || !has_unnamed || in->splits_unnamed)
            g_ptr_array_add(events, event_of_step(in, step));
        has_unnamed = has_unnamed || is_unnamed;
    }
    g_ptr_array_add(events, NULL);
    in->used_unnamed = in->used_unnamed || has_unnamed;
    for (unsigned i = 0; i < c.id_count; i++)
        ids[i] = trace_string(in->t, c.ids[i]);
    bool found = p->count >= 2;
    if (found)
        drawing_add_lifeline(in->result, ids[c.id_count - 1], (const char *const *)events->pdata, ids, "HOST");
    g_ptr_array_free(events, TRUE);
    g_free(p);
    return found;
}

/* Adds a lifeline of events that have no lifeline yet. Returns false if no further lifeline exists. */
static bool add_lifeline(inference *in)
{
    tie links;
    candidate c = {.id_count = 1};
    c.ids[0] = best_field(in, &links);
    if (c.ids[0] == TRACE_NONE)
        return false;
    refine(in, &c, links);
    return add_lifeline_of(in, c);
}

/* A field of an event that may become a loadline. */
typedef struct series {
    uint32_t event, field;
    uint32_t records;
    uint32_t numbers;
    double min, max;
    uint32_t hosts;   /* number of hosts whose records have a number in this field */
    bool is_changing; /* the numbers of a host differ */
    bool is_rate;     /* the values are bytes of transfers */
    bool is_divided;  /* the records also identify an object of the host, such as CPU.ID */
    bool is_chosen;
} series;

/*
 * Returns whether a series has enough numbers for a loadline, and the numbers vary. Constants of the hosts, such as the
 * size of the memory, do not vary. If each host has only one number, the numbers of the hosts must differ.
 */
static bool is_varying(const series *s)
{
    return s->numbers >= LOADLINE_RECORDS && s->numbers >= s->records &&
           (s->is_changing || (s->numbers == s->hosts && s->min != s->max));
}

static bool is_bytes(const char *name)
{
    return has_letters(name, "nbytes") || has_letters(name, "bytes");
}

/* Returns whether the values of a field are identifiers, not measurements. */
static bool is_identifying(const char *name, bool of_thread)
{
    static const char *const identifiers[] = {"id", "pid", "tid", "uid", "gid", "irq", "vec", "state", "prio"};
    const char *word = last_word(name);
    bool found = is_identifier(name) || (of_thread && is_processor_name(name));
    for (size_t i = 0; i < G_N_ELEMENTS(identifiers) && !found; i++)
        found = g_ascii_strcasecmp(word, identifiers[i]) == 0;
    return found;
}

/*
 * Returns whether a field may be a loadline. For records of spans, only the number of transferred bytes may be a
 * loadline. In a record of a thread, the field "cpu" is the number of a processor, not a measurement.
 */
static bool is_drawable(const char *name, bool of_span, bool of_thread)
{
    return of_span ? is_bytes(name) : !is_identifying(name, of_thread);
}

/* Sets whether a record names a thread, and whether it has the number or the name of an object. */
static void find_identifiers(const inference *in, const trace_record *record, bool *of_thread, bool *is_divided)
{
    const trace_field *fields = trace_fields(in->t, record);
    *of_thread = *is_divided = false;
    for (uint32_t f = 0; f < record->field_count; f++) {
        const char *name = trace_string(in->t, fields[f].name);
        *of_thread = *of_thread || is_thread_name(name);
        *is_divided = *is_divided || is_identifying(name, false) || g_ascii_strcasecmp(last_word(name), "name") == 0;
    }
}

/* The first number of each series on each host. */
typedef struct first_numbers {
    GHashTable *indices; /* maps the series' number and the host to an index in `values` + 1 */
    GArray *values;      /* double */
} first_numbers;

static void add_number(first_numbers *firsts, series *s, guint number, uint32_t host, double value)
{
    guint index = number_of(firsts->indices, (guint64)number << 32 | host, firsts->values->len);
    if (index > firsts->values->len) {
        g_array_append_val(firsts->values, value);
        s->hosts++;
    }
    s->is_changing = s->is_changing || g_array_index(firsts->values, double, index - 1) != value;
    s->min = s->numbers == 0 || value < s->min ? value : s->min;
    s->max = s->numbers == 0 || value > s->max ? value : s->max;
    s->numbers++;
}

/* Returns whether NetLogger has logged a record about the log itself. */
static bool is_own(const inference *in, const trace_record *record)
{
    return record->event != TRACE_NONE && g_str_has_prefix(trace_string(in->t, record->event), OWN_EVENTS);
}

static bool has_only_own_events(const inference *in)
{
    size_t i = 0;
    while (i < in->count && is_own(in, trace_get(in->t, i)))
        i++;
    return i == in->count;
}

static GArray *find_series(const inference *in)
{
    const bool draws_own = has_only_own_events(in);
    first_numbers firsts = {g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL),
                            g_array_new(FALSE, FALSE, sizeof(double))};
    GArray *all = g_array_new(FALSE, TRUE, sizeof(series));
    GHashTable *numbers = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
    for (size_t i = 0; i < in->count; i++) {
        const trace_record *record = trace_get(in->t, i);
        if (!is_free(in, record) || (!draws_own && is_own(in, record)))
            continue;
        const trace_field *fields = trace_fields(in->t, record);
        bool of_span = is_span(in, record), of_thread, is_divided;
        find_identifiers(in, record, &of_thread, &is_divided);
        for (uint32_t f = 0; f < record->field_count; f++) {
            if (!is_drawable(trace_string(in->t, fields[f].name), of_span, of_thread))
                continue;
            guint number = number_of(numbers, (guint64)record->event << 32 | fields[f].name, all->len);
            double value;
            bool is_number = trace_number(in->t, fields[f].value, &value);
            if (number > all->len) {
                series fresh = {
                    .event = record->event, .field = fields[f].name, .is_rate = of_span, .is_divided = is_divided};
                g_array_append_val(all, fresh);
            }
            series *s = &g_array_index(all, series, number - 1);
            s->records++;
            if (is_number)
                add_number(&firsts, s, number, record->host, value);
        }
    }
    g_hash_table_destroy(numbers);
    g_hash_table_destroy(firsts.indices);
    g_array_free(firsts.values, TRUE);
    return all;
}

/*
 * Chooses the series that become loadlines: the first series of each event before the second series of any event, so
 * that the drawing shows as many kinds of measurements as possible. Events that measure several objects of a host come
 * last, because a curve would jump between these objects.
 */
static void choose_series(const inference *in, GArray *all)
{
    unsigned *of_event = g_new0(unsigned, in->strings + 1); /* indexed by event: number of chosen series */
    guint chosen = 0;
    for (unsigned pass = 0; pass < 2 * LOADLINES_PER_EVENT; pass++)
        for (guint i = 0; i < all->len && chosen < LOADLINES_MAX; i++) {
            series *s = &g_array_index(all, series, i);
            if (!is_varying(s) || s->is_chosen || s->is_divided != (pass >= LOADLINES_PER_EVENT))
                continue;
            s->is_chosen = of_event[s->event] <= pass % LOADLINES_PER_EVENT;
            of_event[s->event] += s->is_chosen;
            chosen += s->is_chosen;
        }
    g_free(of_event);
}

/*
 * Returns the unit of a series, or "". Finds the unit in schemas, or otherwise by the field's name, and for loads of
 * processors also by the values.
 */
static const char *find_unit(const field_units *declared, const char *event, const char *field, const series *s)
{
    static const struct {
        const char *word, *unit;
    } units[] = {{"percent", "%"}, {"pct", "%"}, {"bytes", "bytes"}, {"ns", "ns"}, {"nsec", "ns"}, {"us", "µs"},
                 {"usec", "µs"},   {"ms", "ms"}, {"msec", "ms"},     {"sec", "s"}, {"secs", "s"},  {"seconds", "s"}};
    static const char *const states[] = {"busy",   "user", "nice", "sys",     "system", "idle",
                                         "iowait", "wait", "irq",  "softirq", "steal"};
    const char *word = last_word(field), *unit = field_units_find(declared, event, field);
    if (s->is_rate)
        return "bytes/s";
    if (unit != NULL)
        return strcmp(unit, "us") == 0 ? "µs" : unit;
    for (size_t i = 0; i < G_N_ELEMENTS(units); i++)
        if (g_ascii_strcasecmp(word, units[i].word) == 0)
            return g_ascii_strcasecmp(field, units[i].unit) != 0 ? units[i].unit : "";
    bool is_state = false;
    for (size_t i = 0; i < G_N_ELEMENTS(states) && !is_state; i++)
        is_state = g_ascii_strcasecmp(word, states[i]) == 0;
    /* Shares are at most 1. Larger values are percentages. */
    bool is_percentage = s->min >= 0 && s->max > 1 && s->max <= 100.5;
    return is_state && is_percentage && g_ascii_strncasecmp(field, "cpu", 3) == 0 ? "%" : "";
}

static void add_loadlines(inference *in)
{
    GArray *all = find_series(in);
    field_units *declared = all->len > 0 ? field_units_new() : NULL;
    choose_series(in, all);
    for (guint i = 0; i < all->len; i++) {
        const series *s = &g_array_index(all, series, i);
        if (!s->is_chosen && is_varying(s))
            g_ptr_array_add(in->result->omitted,
                            g_strdup_printf("%s of %s", trace_string(in->t, s->field), trace_string(in->t, s->event)));
        if (!s->is_chosen)
            continue;
        const char *field = trace_string(in->t, s->field), *event = trace_string(in->t, s->event);
        bool is_shared = false;
        for (guint j = 0; j < all->len && !is_shared; j++) {
            const series *other = &g_array_index(all, series, j);
            is_shared = other->is_chosen && j != i && other->field == s->field;
        }
        char *longer = g_strdup_printf("%s of %s", field, event);
        drawing_add_loadline(in->result, is_shared ? longer : field, event, field, find_unit(declared, event, field, s))
            ->rate = s->is_rate;
        g_free(longer);
        in->used[s->event] |= !s->is_rate; /* an event with a rate is also drawn as a point */
    }
    if (declared != NULL)
        field_units_free(declared);
    g_array_free(all, TRUE);
}

static void add_points(inference *in)
{
    const uint32_t unnamed = trace_find(in->t, REQUEST_UNNAMED);
    bool has_unnamed = (in->used_unnamed && !in->splits_unnamed) || (unnamed != TRACE_NONE && in->used[unnamed]);
    for (size_t i = 0; i < trace_count(in->t) && in->result->points->len < POINTS_MAX; i++) {
        const trace_record *record = trace_get(in->t, i);
        uint32_t step = record->event;
        if (step == TRACE_NONE && !is_span(in, record))
            continue;
        if (step == TRACE_NONE && in->splits_unnamed && record->prog != TRACE_NONE)
            step = (uint32_t)in->strings + record->prog;
        bool *used = step == TRACE_NONE || step == unnamed ? &has_unnamed : &in->used[step];
        if (*used)
            continue;
        *used = true;
        char *name = step == TRACE_NONE ? g_strdup(REQUEST_UNNAMED) : event_of_step(in, step);
        drawing_add_point(in->result, name, name);
        g_free(name);
    }
}

static bool add_given_lifeline(inference *in, const char *const *ids)
{
    candidate c = {0};
    for (; *ids != NULL && c.id_count < IDS_MAX; ids++)
        c.ids[c.id_count++] = trace_find(in->t, *ids);
    return add_lifeline_of(in, c);
}

/* Returns whether several programs have spans without names. */
static bool has_unnamed_programs(const inference *in)
{
    uint32_t first = TRACE_NONE;
    for (size_t i = 0; i < in->count; i++) {
        const uint32_t step = in->steps[i];
        if (step == TRACE_NONE || step < in->strings || step == first)
            continue;
        if (first != TRACE_NONE)
            return true;
        first = step;
    }
    return false;
}

/* Finds the steps of the records and adds the lifelines. If `ids` is not NULL, adds only the lifeline with these IDs.
 */
static void add_lifelines(inference *in, const char *const *ids, bool by_program)
{
    for (size_t i = 0; i < in->count; i++)
        in->steps[i] = step_of(in, trace_get(in->t, i));
    in->splits_unnamed = by_program && has_unnamed_programs(in);
    if (ids != NULL) {
        add_given_lifeline(in, ids);
        return;
    }
    if (in->trace_id != TRACE_NONE && add_lifeline_of(in, (candidate){.ids = {in->trace_id}, .id_count = 1}))
        ((drawing_lifeline *)g_ptr_array_index(in->result->lifelines, 0))->traced = true;
    find_barred(in);
    while (in->result->lifelines->len < LIFELINES_MAX && add_lifeline(in)) {
    }
    g_clear_pointer(&in->barred, g_hash_table_destroy);
    g_clear_pointer(&in->ties, g_free);
}

/* Returns whether the trace may have kernel events. */
static bool has_kernel_events(const inference *in)
{
    size_t known = 0;
    while (known < KERNEL_FIELDS && in->of_kernel[known] != TRACE_NONE)
        known++;
    return known == KERNEL_FIELDS;
}

static drawing *infer(const trace *t, const char *const *ids, bool by_program)
{
    inference in = {
        .t = t,
        .count = trace_count(t) < INFER_RECORDS ? trace_count(t) : INFER_RECORDS,
        .strings = trace_string_count(t),
        .steps = g_new(uint32_t, trace_count(t) + 1),
        .used = g_new0(bool, 2 * trace_string_count(t) + 1),
        .excluded = g_new0(bool, trace_string_count(t) + 1),
        .result = drawing_new(),
    };
    static const char *const of_kernel[KERNEL_FIELDS] = {"CPU", "PID", "TID"};
    for (size_t i = 0; i < KERNEL_FIELDS; i++)
        in.of_kernel[i] = trace_find(t, of_kernel[i]);
    in.joins_kernel = ids != NULL;
    find_excluded(&in);
    add_lifelines(&in, ids, by_program);
    if (in.result->lifelines->len == 0 && !in.joins_kernel && has_kernel_events(&in)) {
        in.joins_kernel = true;
        memset(in.used, 0, (2 * in.strings + 1) * sizeof *in.used);
        add_lifelines(&in, ids, by_program);
    }
    add_loadlines(&in);
    add_points(&in);
    g_free(in.steps);
    g_free(in.used);
    g_free(in.excluded);
    return in.result;
}

drawing *infer_drawing_by(const trace *t, const char *const *ids)
{
    return infer(t, ids, false);
}

drawing *infer_drawing(const trace *t)
{
    return infer(t, NULL, true);
}
