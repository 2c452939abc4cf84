#include "config.h"

#include "model/request_reading.h"

#include "model/record_walk.h"
#include "program/units.h"
#include "requests/assembler.h"
#include "requests/key_map.h"

#include <string.h>

enum {
    STEP_MS = 20,
    SHOW_MS = 250,          /* minimum time in milliseconds between two updates of the list in the window */
    CLOCK_RECORDS = 256,    /* number of records between two readings of the clock */
    MEMORY_MAX = 256 << 20, /* maximum memory in bytes for open requests */
    SMALL_LOG = 16 << 20,   /* maximum size in bytes of a log that the module reads again when it grows */
    PAUSE_FACTOR = 10,      /* minimum pause before a log is read again, as a multiple of the reading time */
    PARTS_MAX = 64, /* maximum number of different spans and edges of a request among which find_slowest chooses */
    SHIFTED_MAX = 1 << 22, /* maximum number of record times that nlv corrects because of time zones */
    HOSTS_MAX = 64,        /* maximum number of hosts that the module counts in a request */
    RESULTS_SHARE = 32,    /* selected places and found requests use at most 1/32 of the memory */
    RESULTS_MIN = 1024,    /* number of places or requests to keep even if they use more memory */
    EARLY_MIN = 10,        /* minimum number of events whose zone the module infers from pauses */
    ZONE_NAMES_MAX = 1000, /* maximum number of names of events for which the module searches such pauses */
    PART_NAMES_MAX = 1 << 16,
    THREADS_SHARE = 16, /* spans and states of threads use at most 1/16 of the memory */
    LOGS_MAX = 16,      /* maximum number of logs with equal IDs */
};

typedef enum reading_purpose {
    READING_LISTS,
    READING_SELECTS,
    READING_FINDS,
    READING_COMPARES,
    READING_THREADS,
} reading_purpose;

/* The requests of a lifeline. */
typedef struct request_kind {
    request_reading *reading;
    assembler *assembler;
    uint8_t lifeline;
    comparison_map *rows;
    GHashTable *steps;   /* the names of the events that the drawing shows as steps; NULL: all events */
    GArray *shown;       /* step_state (uint8_t), by number of the event's name */
    request_graph *part; /* the request of one log (take_by_log); NULL before its first use */
    key_map part_names;  /* maps spans and edges (key_of_part) to numbers of names in the list */
} request_kind;

struct request_reading {
    model *model;
    nl_fraction fraction;
    size_t memory_max; /* bytes, see request_reading_set_memory */
    drawing *drawing;  /* a copy, because assemblers refer to it; NULL: not begun */
    request_kind *kinds;
    guint kind_count;
    GPtrArray *walks;        /* record_walk, one per source */
    const nl_record **heads; /* the next record of each walk; NULL: not read yet */
    uint64_t *places;        /* the place of each record in `heads` */
    uint64_t place;          /* the place of the record that add_record passes to the assemblers */
    int64_t shift_ns;        /* time_zones_shift_single of this record */
    nl_record *corrected, *zoned;
    request_list *list; /* the model owns the list after publication */
    bool is_published;
    time_zones *zones;      /* the records of this reading that are in another time zone */
    int64_t zone_ns;        /* time_zones_zone of the model's zones at the begin of this reading */
    GHashTable *zone_names; /* maps a name of an event to its zone_candidate; used if zone_ns is positive */
    bool has_unseen_zones;  /* request_reading_take_zones was not called since the reading was complete */
    GArray *fresh;          /* request_summary: requests that are not in the list yet */
    bool is_finished;       /* the module has counted open requests as ended */
    bool has_told_clocks;   /* the module has added a notice about clocks, and does not repeat it when it reads the log
                               again */
    reading_purpose purpose;
    const request_filter *requests; /* see request_reading_select; NULL: all requests */
    comparison *comparison;         /* see request_reading_compare */
    unsigned side;
    thread_collector *threads; /* see request_reading_collect; NULL: not begun */
    GArray *selected;          /* uint64_t: the places of selected records since request_reading_take_selected */
    GArray *matches;           /* request_match: the requests that the search has found */
    uint64_t unlisted;         /* number of requests that the search has found but not stored in `matches` */
    gint64 shown_us, paused_until_us;
    gint64 used_us; /* the time for which the module has read */
};

/* States whether the drawing shows an event as a step. */
typedef enum step_state { STEP_UNKNOWN, STEP_SHOWN, STEP_HIDDEN } step_state;

/* The events with a name, in a log with spans in another time zone. */
typedef struct zone_candidate {
    size_t early, others; /* number of events before a pause that is at least as long as the difference of the zones,
                             and number of other events */
    int64_t min_ns;       /* the shortest time from an early event to the end of this pause */
    char *host;           /* of the first event */
    GArray *places;       /* uint64_t: the places of the early events */
} zone_candidate;

/* The data of an event's record that the assembler keeps. */
typedef struct step_record {
    int64_t time_ns;
    uint64_t place;
} step_record;

/* ---- the summary of a request ---- */

/* A span or edge, and its parts of the critical path. */
typedef struct path_part {
    bool is_edge;
    uint32_t from, to; /* numbers of the names of events; for a span, `to` is its name */
    int64_t sum_ns, longest_ns, longest_from_ns;
} path_part;

static path_part part_of_step(const request_graph *g, const request_step *step)
{
    if (step->kind == REQUEST_SELF)
        return (path_part){false, REQUEST_NONE, g->spans[step->span].name, 0, 0, 0};
    return (path_part){true,
                       step->from == REQUEST_NONE ? REQUEST_NONE : g->events[step->from].name,
                       step->to == REQUEST_NONE ? REQUEST_NONE : g->events[step->to].name,
                       0,
                       0,
                       0};
}

/* Returns the span or edge with the largest share of the critical path. */
static path_part find_slowest(const request_graph *g)
{
    path_part parts[PARTS_MAX]; /* not initialized, because most requests have few parts */
    parts[0] = (path_part){0};
    unsigned count = 0, slowest = 0;
    for (size_t i = 0; i < g->path_count; i++) {
        const request_step *step = &g->path[i];
        const path_part own = part_of_step(g, step);
        const int64_t long_ns = step->to_ns - step->from_ns;
        unsigned at = 0;
        while (at < count && (parts[at].is_edge != own.is_edge || parts[at].from != own.from || parts[at].to != own.to))
            at++;
        if (at == PARTS_MAX)
            continue;
        if (at == count)
            parts[count++] = own;
        parts[at].sum_ns += long_ns;
        if (long_ns >= parts[at].longest_ns) {
            parts[at].longest_ns = long_ns;
            parts[at].longest_from_ns = step->from_ns;
        }
        if (parts[at].sum_ns > parts[slowest].sum_ns)
            slowest = at;
    }
    return parts[slowest];
}

static const char *event_text(const request_reader *reader, uint32_t name)
{
    return name == REQUEST_NONE ? "?" : event_names_text(request_reader_names(reader), name);
}

static uint64_t key_of_part(const path_part *part)
{
    return part->is_edge ? UINT64_C(1) << 63 | (uint64_t)part->from << 32 | part->to : (uint64_t)part->to + 1;
}

/* Returns the number of a part's name in the list of names, and adds the name if it is new. */
static uint16_t name_of_part(request_kind *kind, const path_part *part)
{
    const request_list *l = kind->reading->list;
    const request_reader *reader = assembler_reader(kind->assembler);
    if (kind->part_names.count >= PART_NAMES_MAX)
        key_map_reset(&kind->part_names, 0);
    uint64_t *known = key_map_add(&kind->part_names, key_of_part(part)); /* the number + 1 */
    if (*known != 0)
        return (uint16_t)(*known - 1);
    char *edge = NULL;
    const char *text = event_text(reader, part->to);
    if (part->is_edge)
        text = edge = g_strdup_printf("%s \342\206\222 %s", event_text(reader, part->from), text);
    const uint16_t number = names_put(l->names, (nl_string){text, strlen(text)});
    g_free(edge);
    *known = (uint64_t)number + 1;
    return number;
}

static uint16_t count_hosts_of(const request_graph *g)
{
    uint32_t hosts[HOSTS_MAX];
    unsigned count = 0;
    for (size_t i = 0; i < g->event_count && count < HOSTS_MAX; i++) {
        unsigned at = 0;
        while (at < count && hosts[at] != g->events[i].host)
            at++;
        if (at == count)
            hosts[count++] = g->events[i].host;
    }
    return (uint16_t)count;
}

static uint8_t percent(int64_t part_ns, int64_t whole_ns)
{
    return whole_ns > 0 ? (uint8_t)CLAMP((100.0 * (double)part_ns) / (double)whole_ns + 0.5, 0, 100) : 0;
}

/* Sets *step to the record of an event of the graph. Returns false if the request has too many events. */
static bool get_record(const request_graph *g, size_t event, step_record *step)
{
    const request_event *e = &g->events[event];
    if (e->payload_size != sizeof *step)
        return false;
    memcpy(step, g->payloads + e->payload, sizeof *step);
    return true;
}

/* Like get_record, but returns false if the drawing has a lifeline for the request that does not show the event. */
static bool get_step(const request_kind *kind, const request_graph *g, size_t event, step_record *step)
{
    const uint32_t name = g->events[event].name;
    if (kind->steps == NULL)
        return get_record(g, event, step);
    if (name >= kind->shown->len)
        g_array_set_size(kind->shown, name + 1);
    uint8_t *state = &g_array_index(kind->shown, uint8_t, name);
    if (*state == STEP_UNKNOWN)
        *state = g_hash_table_contains(kind->steps, event_text(assembler_reader(kind->assembler), name)) ? STEP_SHOWN
                                                                                                         : STEP_HIDDEN;
    return *state == STEP_SHOWN && get_record(g, event, step);
}

/*
 * Returns the index after the latest event. If several whole spans end last, the longest of these spans is the latest
 * event, because it contains the other spans.
 */
static size_t end_of_events(const request_graph *g)
{
    size_t latest = g->event_count - 1;
    for (size_t i = latest; i-- > 0 && g->events[i].time_ns == g->events[latest].time_ns;)
        if (g->events[i].role == REQUEST_WHOLE && g->events[i].duration_ns > g->events[latest].duration_ns)
            latest = i;
    return latest + 1;
}

/* Sets step_ns and step_place of the summary to the request's latest step. Returns false if the drawing shows no event
 * of the request. */
static bool find_step(const request_kind *kind, const request_graph *g, request_summary *summary)
{
    const time_zones *zones = model_zones(kind->reading->model);
    step_record step;
    size_t i = end_of_events(g);
    while (i > 0 && !get_step(kind, g, i - 1, &step))
        i--;
    if (i == 0)
        return false;
    summary->step_ns = time_zones_time(zones, step.place, step.time_ns);
    summary->step_place = step.place;
    return true;
}

/* Adds the records of spans that begin in another time zone to r->zones. */
static void find_zones(const request_kind *kind, const request_graph *g)
{
    const request_reader *reader = assembler_reader(kind->assembler);
    for (size_t i = 0; i < g->span_count; i++) {
        const request_span *s = &g->spans[i];
        step_record begin, end;
        if (s->zone_ns == 0 || !get_step(kind, g, s->begin, &begin) || !get_step(kind, g, s->end, &end))
            continue;
        time_zones_span span = {.begin_place = begin.place,
                                .end_place = end.place,
                                .zone_ns = s->zone_ns,
                                .end_shift_ns = g->events[s->end].time_ns - end.time_ns,
                                .event = event_text(reader, g->events[s->begin].name),
                                .host = request_reader_host(reader, s->host)};
        time_zones_add(kind->reading->zones, &span);
    }
}

static void free_candidate(gpointer data)
{
    zone_candidate *c = data;
    g_free(c->host);
    g_array_free(c->places, TRUE);
    g_free(c);
}

/* Returns the candidate of an event's name, or NULL if there are too many names. */
static zone_candidate *find_candidate(const request_kind *kind, const request_event *event)
{
    request_reading *r = kind->reading;
    const request_reader *reader = assembler_reader(kind->assembler);
    const char *name = event_text(reader, event->name);
    zone_candidate *c = g_hash_table_lookup(r->zone_names, name);
    if (c != NULL || g_hash_table_size(r->zone_names) >= ZONE_NAMES_MAX)
        return c;
    c = g_new(zone_candidate, 1);
    *c = (zone_candidate){.min_ns = INT64_MAX,
                          .host = g_strdup(request_reader_host(reader, event->host)),
                          .places = g_array_new(FALSE, FALSE, sizeof(uint64_t))};
    g_hash_table_insert(r->zone_names, g_strdup(name), c);
    return c;
}

/*
 * Notes which events of a request precede a pause that is at least as long as the known difference of zones: they may
 * be in the other zone, too.
 */
static void note_early_events(const request_kind *kind, const request_graph *g)
{
    const request_reading *r = kind->reading;
    const time_zones *zones = model_zones(r->model);
    size_t pause = g->event_count;
    for (size_t i = 1; i < g->event_count && pause == g->event_count; i++)
        pause = g->events[i].time_ns - g->events[i - 1].time_ns >= r->zone_ns ? i : pause;
    for (size_t i = 0; i < g->event_count; i++) {
        zone_candidate *c = find_candidate(kind, &g->events[i]);
        step_record step;
        if (c == NULL || !get_record(g, i, &step))
            continue;
        const bool is_corrected = zones != NULL && time_zones_shift_single(zones, step.place) != 0,
                   is_early = is_corrected || (pause < g->event_count && i < pause);
        c->early += is_early;
        c->others += !is_early;
        if (!is_early || c->places->len >= SHIFTED_MAX)
            continue;
        c->min_ns = MIN(c->min_ns, is_corrected ? r->zone_ns : g->events[pause].time_ns - g->events[i].time_ns);
        g_array_append_val(c->places, step.place);
    }
}

/* Corrects the events that always precede such a pause, if the shortest pause shows the difference of zones. */
static void add_early_events(request_reading *r)
{
    GHashTableIter at;
    gpointer name, value;
    g_hash_table_iter_init(&at, r->zone_names);
    while (g_hash_table_iter_next(&at, &name, &value)) {
        const zone_candidate *c = value;
        if (c->early < EARLY_MIN || c->others > 0 || request_find_zone(c->min_ns) != r->zone_ns)
            continue;
        for (guint i = 0; i < c->places->len; i++)
            time_zones_add_single(r->zones, g_array_index(c->places, uint64_t, i), r->zone_ns, name, c->host);
    }
    g_hash_table_remove_all(r->zone_names);
}

/* Appends the places of a selected request's records. If the records belong to no request, or requests overlap and
 * cannot be separated, appends only the records that match the filter. */
static void select_request(request_reading *r, const request_graph *g, bool is_request)
{
    step_record step;
    for (size_t i = 0; i < g->event_count; i++)
        if (((is_request && !g->overlaps) || request_filter_matches_single(r->requests, g->events[i].matches)) &&
            get_record(g, i, &step))
            g_array_append_val(r->selected, step.place);
}

/* Returns the maximum number of results if each has `size` bytes. */
static size_t results_max(const request_reading *r, size_t size)
{
    return MAX(MIN(r->memory_max / RESULTS_SHARE, MEMORY_MAX) / size, RESULTS_MIN);
}

static void add_match(request_reading *r, const request_graph *g)
{
    const time_zones *zones = model_zones(r->model);
    step_record step;
    size_t i = 0;
    while (i < g->event_count && !get_record(g, i, &step))
        i++;
    if (g->overlaps || i == g->event_count)
        return;
    const request_match match = {.time_ns = time_zones_time(zones, step.place, step.time_ns),
                                 .duration_ns = MAX(g->to_ns - g->from_ns, 0),
                                 .place = step.place};
    if (r->matches->len < results_max(r, sizeof match))
        g_array_append_val(r->matches, match);
    else
        r->unlisted++;
}

static void compare_request(const request_kind *kind, const request_graph *g, bool cut)
{
    const request_reading *r = kind->reading;
    comparison_side *side = &r->comparison->sides[r->side];
    request_summary step = {0};
    if (g->overlaps) /* request_reading_finish counts the spans of overlapping requests */
        return;
    if (!find_step(kind, g, &step)) {
        side->undrawn++;
        return;
    }
    side->cut += cut ? 1 : 0;
    const compared_request request = {.duration_ns = MAX(g->to_ns - g->from_ns, 0),
                                      .step_ns = step.step_ns,
                                      .step_place = step.step_place,
                                      .lifeline = kind->lifeline};
    comparison_add(r->comparison, r->side, kind->rows, g, assembler_reader(kind->assembler), &request);
}

/* Appends the summary of a request to the list, or uses the request for a filter, a search or a comparison. */
static void take_request(request_kind *kind, const request_graph *g, const char *name, bool cut)
{
    request_reading *r = kind->reading;
    if (r->purpose == READING_COMPARES)
        compare_request(kind, g, cut);
    if (r->purpose == READING_SELECTS)
        select_request(r, g, true);
    if (r->purpose == READING_FINDS)
        add_match(r, g);
    if (r->purpose != READING_LISTS)
        return;
    request_summary summary = {.start_ns = g->from_ns,
                               .duration_ns = MAX(g->to_ns - g->from_ns, 0),
                               .name_hash = request_name_hash(name),
                               .slowest = NAMES_NONE,
                               .host_count = count_hosts_of(g),
                               .lifeline = kind->lifeline};
    const request_problems *problems = &g->problems;
    if (g->overlaps || !find_step(kind, g, &summary))
        return;
    find_zones(kind, g);
    if (r->zone_ns > 0)
        note_early_events(kind, g);
    summary.errors =
        (g->failed ? REQUEST_FAILED : 0) |
        (cut || problems->no_begin > 0 || problems->no_end > 0 || problems->missing > 0 ? REQUEST_INCOMPLETE : 0);
    if (g->path_count > 0) {
        const path_part slowest = find_slowest(g);
        summary.slowest = name_of_part(kind, &slowest);
        summary.share = percent(slowest.sum_ns, summary.duration_ns);
        summary.position = percent(slowest.longest_from_ns - g->from_ns, summary.duration_ns);
    }
    g_array_append_val(r->fresh, summary);
}

/* Returns the number of an event's log, or UINT_MAX if it is unknown. */
static unsigned log_of_event(const request_graph *g, size_t event)
{
    step_record step;
    return get_record(g, event, &step) ? place_file(step.place) : UINT_MAX;
}

/* Finds the logs that have the request's first event. Returns the number of logs, at most LOGS_MAX. */
static unsigned find_logs(const request_graph *g, unsigned logs[LOGS_MAX])
{
    unsigned count = 0;
    for (size_t i = 0; i < g->event_count && count < LOGS_MAX; i++) {
        const unsigned log = log_of_event(g, i);
        unsigned at = 0;
        while (at < count && logs[at] != log)
            at++;
        if (at == count && request_event_kind(&g->events[i]) == request_event_kind(&g->events[0]))
            logs[count++] = log;
    }
    return count;
}

/*
 * If several logs have the first event of a request, they use the same ID for different requests. In this case, takes
 * the request of each of these logs separately, adds the events of all other logs to the first request, and returns
 * true. Otherwise, returns false.
 */
static bool take_by_log(request_kind *kind, const request_graph *g, const char *name, bool cut)
{
    unsigned logs[LOGS_MAX];
    const unsigned count = find_logs(g, logs);
    if (count < 2)
        return false;
    if (kind->part == NULL)
        kind->part = request_graph_new(request_reader_names(assembler_reader(kind->assembler)));
    GArray *events = g_array_new(FALSE, FALSE, sizeof(request_event));
    for (unsigned log = 0; log < count; log++) {
        g_array_set_size(events, 0);
        for (size_t i = 0; i < g->event_count; i++) {
            unsigned own = 0;
            while (own < count && logs[own] != log_of_event(g, i))
                own++;
            if (own % count == log)
                g_array_append_val(events, g->events[i]);
        }
        assembler_build_part(kind->assembler, kind->part, (request_event *)(void *)events->data, events->len);
        kind->part->payloads = g->payloads;
        take_request(kind, kind->part, name, cut);
    }
    g_array_free(events, TRUE);
    return true;
}

static void request_reading_take(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    (void)by;
    request_kind *kind = user;
    if (kind->reading->walks->len < 2 || g->overlaps || !take_by_log(kind, g, name, cut))
        take_request(kind, g, name, cut);
}

/* Selects events of a thread that no span encloses. Does nothing without a filter. */
static void request_reading_take_rest(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    (void)name, (void)by, (void)cut;
    const request_kind *kind = user;
    if (kind->reading->purpose == READING_SELECTS)
        select_request(kind->reading, g, false);
}

static void request_reading_pack(void *user, const nl_record *record, nl_buffer *buffer)
{
    const request_kind *kind = user;
    const step_record step = {record->time_ns - kind->reading->shift_ns, kind->reading->place};
    nl_buffer_append(buffer, (const char *)&step, sizeof step);
}

/* ---- creation and destruction ---- */

request_reading *request_reading_new(model *m, const program_reading *reading)
{
    request_reading *r = g_new0(request_reading, 1);
    r->model = m;
    r->fraction = reading->fraction;
    r->walks = g_ptr_array_new_with_free_func((GDestroyNotify)record_walk_free);
    r->fresh = g_array_new(FALSE, FALSE, sizeof(request_summary));
    r->selected = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    r->matches = g_array_new(FALSE, FALSE, sizeof(request_match));
    r->corrected = nl_record_new();
    r->zoned = nl_record_new();
    r->zone_names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_candidate);
    return r;
}

void request_reading_set_memory(request_reading *r, size_t memory_max)
{
    r->memory_max = memory_max;
}

static void request_reading_end(request_reading *r)
{
    for (guint i = 0; i < r->kind_count; i++) {
        assembler_free(r->kinds[i].assembler);
        if (r->kinds[i].steps != NULL)
            g_hash_table_destroy(r->kinds[i].steps);
        g_array_free(r->kinds[i].shown, TRUE);
        request_graph_free(r->kinds[i].part);
        key_map_free(&r->kinds[i].part_names);
        g_hash_table_destroy(r->kinds[i].rows);
    }
    g_clear_pointer(&r->kinds, g_free);
    r->kind_count = 0;
    g_clear_pointer(&r->drawing, drawing_free);
    g_ptr_array_set_size(r->walks, 0);
    g_clear_pointer(&r->heads, g_free);
    g_clear_pointer(&r->places, g_free);
    g_clear_pointer(&r->zones, time_zones_unref);
    g_array_set_size(r->fresh, 0);
    g_array_set_size(r->selected, 0);
    g_array_set_size(r->matches, 0);
    r->unlisted = 0;
    g_clear_pointer(&r->threads, thread_collector_free);
    if (!r->is_published)
        request_list_free(r->list);
    r->list = NULL;
    r->is_published = r->is_finished = r->has_unseen_zones = false;
}

void request_reading_free(request_reading *r)
{
    request_reading_end(r);
    g_ptr_array_free(r->walks, TRUE);
    g_array_free(r->fresh, TRUE);
    g_array_free(r->selected, TRUE);
    g_array_free(r->matches, TRUE);
    nl_record_free(r->corrected);
    nl_record_free(r->zoned);
    g_hash_table_destroy(r->zone_names);
    g_free(r);
}

void request_reading_restart(request_reading *r)
{
    request_reading_end(r);
    if (r->purpose == READING_LISTS)
        model_set_requests(r->model, NULL);
}

static void set_purpose(request_reading *r, reading_purpose purpose, const request_filter *requests)
{
    request_reading_end(r);
    r->purpose = purpose;
    r->requests = requests;
    r->comparison = NULL;
    r->paused_until_us = 0;
}

void request_reading_list(request_reading *r, const request_filter *requests)
{
    if (r->requests != NULL || requests != NULL)
        set_purpose(r, READING_LISTS, requests);
}

void request_reading_select(request_reading *r, const request_filter *requests)
{
    set_purpose(r, READING_SELECTS, requests);
}

void request_reading_find(request_reading *r, const request_filter *requests)
{
    set_purpose(r, READING_FINDS, requests);
}

void request_reading_compare(request_reading *r, const request_filter *requests, comparison *c, unsigned side)
{
    set_purpose(r, READING_COMPARES, requests);
    r->comparison = c;
    r->side = side;
}

void request_reading_collect(request_reading *r)
{
    set_purpose(r, READING_THREADS, NULL);
}

thread_list *request_reading_threads(const request_reading *r)
{
    return r->threads != NULL ? thread_collector_list(r->threads, r->is_finished) : NULL;
}

int64_t request_reading_used_us(const request_reading *r)
{
    return r->used_us;
}

static gint compare_places(gconstpointer a, gconstpointer b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

GArray *request_reading_take_selected(request_reading *r)
{
    GArray *taken = r->selected;
    r->selected = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_array_sort(taken, compare_places);
    guint kept = 0;
    for (guint i = 0; i < taken->len; i++)
        if (i == 0 || g_array_index(taken, uint64_t, i) != g_array_index(taken, uint64_t, kept - 1))
            g_array_index(taken, uint64_t, kept++) = g_array_index(taken, uint64_t, i);
    g_array_set_size(taken, kept);
    return taken;
}

bool request_reading_is_full(const request_reading *r)
{
    return r->selected->len >= results_max(r, sizeof(uint64_t));
}

static gint compare_matches(gconstpointer a, gconstpointer b)
{
    const int64_t x = ((const request_match *)a)->time_ns, y = ((const request_match *)b)->time_ns;
    return (x > y) - (x < y);
}

GArray *request_reading_take_matches(request_reading *r, uint64_t *unlisted)
{
    GArray *taken = r->matches;
    r->matches = g_array_new(FALSE, FALSE, sizeof(request_match));
    g_array_sort(taken, compare_matches);
    *unlisted = r->unlisted;
    r->unlisted = 0;
    return taken;
}

/* ---- reading ---- */

static void add_kind(request_reading *r, const GPtrArray *lifelines, guint i)
{
    const drawing_lifeline *l = g_ptr_array_index(lifelines, i), *first = g_ptr_array_index(lifelines, 0);
    request_kind *kind = &r->kinds[i];
    guint lifeline = REQUEST_NO_LIFELINE;
    const bool is_drawn = g_ptr_array_find(r->drawing->lifelines, l, &lifeline);
    *kind = (request_kind){.reading = r,
                           .lifeline = (uint8_t)MIN(lifeline, REQUEST_NO_LIFELINE),
                           .rows = comparison_map_new(),
                           .steps = is_drawn ? g_hash_table_new(g_str_hash, g_str_equal) : NULL,
                           .shown = g_array_new(FALSE, TRUE, sizeof(uint8_t))};
    for (char **event = l->events; is_drawn && *event != NULL; event++)
        g_hash_table_add(kind->steps, *event);
    kind->assembler =
        assembler_new(&(assembler_options){.ids = (const char *const *)l->ids,
                                           .events = l->again ? (const char *const *)l->events : NULL,
                                           .again = l->again,
                                           .untraced = !l->traced && first->traced,
                                           .has_nanoseconds = model_has_nanoseconds(r->model),
                                           .splits_unnamed = drawing_splits_unnamed(r->drawing),
                                           .fraction = r->fraction,
                                           .where = r->requests,
                                           .memory_max = MIN(r->memory_max / 4, MEMORY_MAX) / lifelines->len,
                                           .pack = request_reading_pack,
                                           .take = request_reading_take,
                                           .rest = request_reading_take_rest,
                                           .user = kind});
}

static void request_reading_begin(request_reading *r, const GPtrArray *sources)
{
    request_reading_end(r);
    r->drawing = drawing_copy(model_drawing(r->model));
    if (r->purpose == READING_THREADS)
        r->threads = thread_collector_new(r->drawing, r->fraction, MIN(r->memory_max / THREADS_SHARE, MEMORY_MAX),
                                          model_has_nanoseconds(r->model));
    GPtrArray *lifelines = drawing_find_requests(r->drawing, false);
    if (lifelines->len == 0)
        g_ptr_array_add(lifelines, (void *)&drawing_threads);
    r->kinds = g_new0(request_kind, lifelines->len + 1);
    r->kind_count = r->purpose != READING_THREADS ? lifelines->len : 0;
    for (guint i = 0; i < r->kind_count; i++)
        add_kind(r, lifelines, i);
    g_ptr_array_free(lifelines, TRUE);
    for (guint i = 0; i < sources->len; i++)
        g_ptr_array_add(r->walks, record_walk_new(g_ptr_array_index(sources, i)));
    r->heads = g_new0(const nl_record *, sources->len + 1);
    r->places = g_new0(uint64_t, sources->len + 1);
    r->zones = time_zones_new(MIN(SHIFTED_MAX, r->memory_max / 8 / sizeof(uint64_t[3])));
    r->list = request_list_new((uint32_t)CLAMP(r->memory_max / 8 / sizeof(request_summary), 1024, REQUEST_LIST_MAX));
    for (guint i = 0; i < r->drawing->lifelines->len; i++) {
        const drawing_lifeline *l = g_ptr_array_index(r->drawing->lifelines, i);
        r->list->by_log = r->list->by_log || g_strcmp0(l->color, DRAWING_COLOR_LOG) == 0;
    }
    r->used_us = 0;
    r->zone_ns = model_zones(r->model) != NULL ? time_zones_zone(model_zones(r->model)) : 0;
    g_hash_table_remove_all(r->zone_names);
}

/*
 * Moves the new requests to the list, at most every SHOW_MS. Publishes a list only once: immediately if the model has
 * no list yet, otherwise when the list is complete.
 */
static void show_fresh(request_reading *r)
{
    const bool publishes =
        r->purpose == READING_LISTS && !r->is_published && (r->is_finished || model_requests(r->model) == NULL);
    const gint64 now_us = g_get_monotonic_time();
    if (!publishes && (r->fresh->len == 0 || (!r->is_finished && now_us - r->shown_us < SHOW_MS * 1000)))
        return;
    r->shown_us = now_us;
    model_lock(r->model);
    for (guint i = 0; i < r->fresh->len; i++)
        request_list_append(r->list, &g_array_index(r->fresh, request_summary, i));
    model_unlock(r->model);
    g_array_set_size(r->fresh, 0);
    if (publishes)
        model_set_requests(r->model, r->list);
    r->is_published = r->is_published || publishes;
    model_changed(r->model, model_is_settled(r->model));
}

/* Returns the walk with the earliest next record, or the number of walks. */
static guint earliest_walk(const request_reading *r)
{
    guint found = r->walks->len;
    for (guint i = 0; i < r->walks->len; i++) {
        if (r->heads[i] == NULL)
            r->heads[i] = record_walk_next(g_ptr_array_index(r->walks, i), &r->places[i]);
        if (r->heads[i] != NULL && (found == r->walks->len || r->heads[i]->time_ns < r->heads[found]->time_ns))
            found = i;
    }
    return found;
}

/* Adds the next record to the requests. Returns false if there is no further record now. */
static bool add_record(request_reading *r)
{
    const guint walk = earliest_walk(r);
    if (walk == r->walks->len)
        return false;
    const correction *clocks = model_clocks(r->model);
    const nl_record *record = r->heads[walk];
    if (clocks != NULL && correction_apply(clocks, record, r->corrected))
        record = r->corrected;
    r->place = r->places[walk];
    r->shift_ns = model_zones(r->model) != NULL ? time_zones_shift_single(model_zones(r->model), r->place) : 0;
    if (r->shift_ns != 0) {
        nl_record_copy(r->zoned, record);
        nl_record_set_time(r->zoned, record->time_ns + r->shift_ns);
        record = r->zoned;
    }
    if (r->threads != NULL)
        thread_collector_add(r->threads, record, r->place);
    bool is_in_request = false;
    for (guint i = 0; i < r->kind_count; i++)
        is_in_request = assembler_add(r->kinds[i].assembler, record) || is_in_request;
    if (r->purpose == READING_SELECTS && !is_in_request &&
        request_filter_matches_single(r->requests, request_filter_match_record(r->requests, record)))
        g_array_append_val(r->selected, r->place);
    r->heads[walk] = NULL;
    return true;
}

uint64_t request_reading_bytes(const request_reading *r)
{
    uint64_t bytes = 0;
    for (guint i = 0; i < r->walks->len; i++)
        bytes += record_walk_bytes(g_ptr_array_index(r->walks, i));
    return bytes;
}

/* Adds a notice about the two hosts of a kind of request whose clocks seem to differ by the largest time. */
static void tell_doubtful_clocks(request_reading *r, const assembler *a)
{
    size_t count;
    const clock_doubt *doubts = clock_doubts_list(assembler_clock_doubts(a), &count);
    char text[UNITS_SIZE];
    if (r->purpose != READING_LISTS || count == 0 || r->has_told_clocks)
        return;
    r->has_told_clocks = true;
    model_tell(r->model,
               g_strdup_printf("The clock of %s seems to be %s ahead of the clock of %s, unless messages take "
                               "that long; log ClockOffset records",
                               request_reader_host(assembler_reader(a), doubts[0].host),
                               units_time((double)doubts[0].ahead_ns, text),
                               request_reader_host(assembler_reader(a), doubts[0].other)));
}

/* Treats the open requests as ended. In a large log of a live source, only ends the learning: later records may still
 * end these requests, and the module does not read a large log again. */
static void request_reading_finish(request_reading *r, bool is_live)
{
    if (r->is_finished)
        return;
    if (is_live && request_reading_bytes(r) > SMALL_LOG) {
        for (guint i = 0; i < r->kind_count; i++)
            assembler_learn(r->kinds[i].assembler, true);
        for (guint i = 0; i < r->kind_count; i++)
            tell_doubtful_clocks(r, r->kinds[i].assembler);
        show_fresh(r);
        return;
    }
    for (guint i = 0; i < r->kind_count; i++) {
        assembler_finish(r->kinds[i].assembler);
        tell_doubtful_clocks(r, r->kinds[i].assembler);
        if (r->purpose != READING_COMPARES)
            continue;
        r->comparison->sides[r->side].overlapping += assembler_overlapping(r->kinds[i].assembler);
        r->comparison->sides[r->side].unselected += assembler_unselected(r->kinds[i].assembler);
    }
    if (r->zone_ns > 0 && r->zones != NULL)
        add_early_events(r);
    r->is_finished = r->has_unseen_zones = true;
    r->paused_until_us = g_get_monotonic_time() + PAUSE_FACTOR * r->used_us;
    show_fresh(r);
}

/* Reports the progress of the list of requests. A request appears in the list only some time after its end. */
static void show_progress(const request_reading *r, const GPtrArray *sources, bool is_complete)
{
    uint64_t all = 0;
    for (guint i = 0; i < sources->len; i++)
        all += source_size(g_ptr_array_index(sources, i));
    const double share = all > 0 ? (double)request_reading_bytes(r) / (double)all : 1;
    if (r->purpose == READING_LISTS)
        model_set_requests_progress(r->model, is_complete ? 1 : CLAMP(share, 0.001, 0.999));
}

bool request_reading_step(request_reading *r, const GPtrArray *sources, bool is_live)
{
    const gint64 begun_us = g_get_monotonic_time();
    if (r->is_finished && earliest_walk(r) == r->walks->len && r->walks->len == sources->len)
        return false;
    if (r->is_finished && begun_us < r->paused_until_us)
        return false;
    if (r->drawing == NULL || r->walks->len != sources->len || (r->is_finished && request_reading_bytes(r) < SMALL_LOG))
        request_reading_begin(r, sources);
    r->is_finished = false;
    bool more = true;
    for (unsigned i = 0; more && !request_reading_is_full(r) &&
                         (i % CLOCK_RECORDS != 0 || g_get_monotonic_time() - begun_us < STEP_MS * 1000);
         i++)
        more = add_record(r);
    r->used_us += g_get_monotonic_time() - begun_us;
    show_fresh(r);
    if (!more)
        request_reading_finish(r, is_live);
    show_progress(r, sources, !more);
    return more;
}

time_zones *request_reading_take_zones(request_reading *r)
{
    if (!r->has_unseen_zones || r->zones == NULL)
        return NULL;
    r->has_unseen_zones = false;
    time_zones_settle(r->zones);
    return time_zones_has_more(r->zones, model_zones(r->model)) ? g_steal_pointer(&r->zones) : NULL;
}
