#include "config.h"

#include "selection.h"

#include "program/program.h"
#include "requests/assembler.h"
#include "requests/drawing.h"
#include "requests/record_sample.h"

#include <stdlib.h>
#include <string.h>

enum {
    SAMPLE_RECORDS_MAX = 50000,
    LARGE_PART = 8, /* a request may use 1/LARGE_PART of the memory, so that the other requests have enough memory */
};

/* The payload of an event: the record of the event. */
typedef struct record_place {
    uint64_t number, index;
} record_place;

/* Requests with the same ID fields. */
typedef struct selection_kind {
    selection *selection;
    size_t index;
    assembler *assembler;
    request_reader *reader; /* finds the names of requests that are open when their records are copied */
    char **ids;             /* the ID fields; empty for spans of threads */
    size_t memory_max;      /* bytes */
    bool threads;           /* the requests are spans of threads, so that their names do not identify them */
} selection_kind;

struct selection {
    const output_options *options;
    size_t memory_max;
    const atomic_bool *stop;
    kept_window window;
    uint64_t latest; /* number of the latest file that was read; 0: no file was read */
    record_place place;
    selection_kind kinds[KEPT_KINDS_MAX];
    size_t kind_count;
    uint64_t request_count;
};

static bool is_stopped(const selection *s)
{
    return atomic_load_explicit(s->stop, memory_order_relaxed);
}

/* ---- requests ---- */

static void pack_place(void *user, const nl_record *record, nl_buffer *buffer)
{
    selection_kind *k = user;
    selection *s = k->selection;
    kept_window_file *f = kept_window_find(&s->window, s->place.number);
    (void)record;
    kept_bits_set(&f->open[k->index], s->place.index);
    f->open_count++;
    nl_buffer_append(buffer, (const char *)&s->place, sizeof s->place);
}

/* Marks the record of an event as decided and, if `keeps` is true, as kept. */
static void decide_event(selection_kind *k, const request_graph *g, const request_event *event, bool keeps)
{
    record_place place;
    memcpy(&place, g->payloads + event->payload, sizeof place);
    kept_window_file *f = kept_window_find(&k->selection->window, place.number);
    if (f == NULL)
        return; /* the file was decided while the request was open */
    if (keeps)
        kept_bits_set(&f->kept, place.index);
    kept_bits_clear(&f->open[k->index], place.index);
    f->open_count--;
}

static void decide_request(selection_kind *k, const request_graph *g, bool keeps)
{
    k->selection->request_count += keeps;
    for (size_t i = 0; i < g->event_count; i++)
        decide_event(k, g, &g->events[i], keeps);
}

/*
 * Returns whether a request is kept although it does not match: it is too large for the memory, or other records of
 * this request are kept. Later records of a request that is too large are also kept.
 */
static bool is_kept(selection_kind *k, const request_graph *g, const char *name, bool cut)
{
    selection *s = k->selection;
    /* When memory is short, the assembler also cuts smaller requests, which are probably over. */
    const bool large = cut && g->event_count >= k->memory_max / LARGE_PART / 4 / sizeof(request_event),
               has_name = !k->threads || g->events[0].traced;
    if (large && has_name)
        kept_window_add_name(&s->window, name);
    return large || (has_name && kept_window_has_name(&s->window, name));
}

static void take_matching(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    selection_kind *k = user;
    (void)by;
    /* The assembler also passes overlapping spans without evaluating the expression. */
    bool matches = !g->overlaps || request_filter_matches(k->selection->options->keep_where, g,
                                                          request_reader_names(assembler_reader(k->assembler)));
    bool kept = is_kept(k, g, name, cut);
    decide_request(k, g, matches || kept);
}

static void take_other(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    (void)by;
    decide_request(user, g, is_kept(user, g, name, cut));
}

/* Decides about the events of a thread that no span encloses, as about records that belong to no request. */
static void take_single(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    selection_kind *k = user;
    (void)name, (void)by, (void)cut;
    for (size_t i = 0; i < g->event_count; i++) {
        bool keeps = request_filter_matches_single(k->selection->options->keep_where, g->events[i].matches);
        k->selection->request_count += keeps;
        decide_event(k, g, &g->events[i], keeps);
    }
}

/* ---- kinds of requests ---- */

static void free_kind(selection_kind *k)
{
    assembler_free(k->assembler);
    request_reader_free(k->reader);
    g_strfreev(k->ids);
}

/* Ends all requests, and removes the kinds. */
static void end_kinds(selection *s)
{
    for (size_t i = 0; i < s->kind_count; i++) {
        assembler_finish(s->kinds[i].assembler);
        free_kind(&s->kinds[i]);
    }
    s->kind_count = 0;
}

static void add_kind(selection *s, char *const *ids, bool untraced, size_t memory_max)
{
    selection_kind *k = &s->kinds[s->kind_count];
    char **copy = g_strdupv((char **)ids);
    const assembler_options options = {.ids = (const char *const *)copy,
                                       .untraced = untraced,
                                       .where = s->options->keep_where,
                                       .memory_max = memory_max,
                                       .request_max = memory_max / LARGE_PART,
                                       .pause_s = SELECTION_PAUSE_S,
                                       .pack = pack_place,
                                       .take = take_matching,
                                       .others = take_other,
                                       .rest = take_single,
                                       .user = k};
    *k = (selection_kind){.selection = s,
                          .index = s->kind_count++,
                          .assembler = assembler_new(&options),
                          .reader = request_reader_new(options.ids, options.fraction),
                          .ids = copy,
                          .memory_max = memory_max,
                          .threads = *copy == NULL};
}

/* Returns whether a kind of requests has one of these ID fields. */
static bool has_kind(const selection *s, char *const *ids)
{
    for (size_t k = 0; k < s->kind_count; k++)
        for (char *const *id = ids; *id != NULL; id++)
            if (g_strv_contains((const char *const *)s->kinds[k].ids, *id))
                return true;
    return false;
}

/*
 * Adds the kinds of the inferred lifelines that share no ID field with the existing kinds. The first lifelines share
 * half of the memory, and later lifelines the other half.
 */
static void add_lifelines(selection *s, const drawing *d)
{
    GPtrArray *lifelines = drawing_find_requests(d, false);
    const drawing_lifeline *first = lifelines->len > 0 ? g_ptr_array_index(lifelines, 0) : &drawing_threads;
    if (lifelines->len > 0 && s->kind_count > 0 && s->kinds[0].threads)
        end_kinds(s);
    const size_t memory_max =
        s->memory_max / 2 / (s->kind_count == 0 ? CLAMP(lifelines->len, 1, KEPT_KINDS_MAX) : KEPT_KINDS_MAX);
    for (guint i = 0; i < lifelines->len && s->kind_count < KEPT_KINDS_MAX; i++) {
        const drawing_lifeline *l = g_ptr_array_index(lifelines, i);
        if (!has_kind(s, l->ids))
            add_kind(s, l->ids, first->traced && !l->traced, memory_max);
    }
    if (s->kind_count == 0)
        add_kind(s, drawing_threads.ids, false, memory_max);
    g_ptr_array_free(lifelines, TRUE);
}

/* Infers the ID fields from the first records of a file. */
static void infer_kinds(selection *s, const char *name)
{
    record_sample sample = {0};
    const nl_record *record;
    nl_reader *reader = selection_open_file(name);
    while (reader != NULL && !is_stopped(s) && sample.record_count < SAMPLE_RECORDS_MAX &&
           !record_sample_is_full(&sample) && nl_reader_next(reader, &record) == NL_OK)
        record_sample_add(&sample, record);
    nl_reader_close(reader);
    if (sample.record_count > 0) {
        drawing *d = record_sample_infer(&sample, NULL);
        add_lifelines(s, d);
        drawing_free(d);
    }
    record_sample_free(&sample);
}

/* ---- reading ---- */

nl_reader *selection_open_file(const char *name)
{
    return nl_reader_open(name, &(nl_reader_options){.max_record_size = OUTPUT_FILE_LONGEST});
}

static void add_record(selection *s, kept_window_file *f, const nl_record *record)
{
    const uint64_t index = f->count++;
    if (index < f->stored_count && !kept_bits_get(&f->stored_open, index))
        return; /* netlogd had decided before it was restarted */
    bool belongs = false;
    s->place = (record_place){f->identity.number, index};
    for (size_t i = 0; i < s->kind_count; i++)
        belongs = assembler_add(s->kinds[i].assembler, record) || belongs;
    const request_filter *where = s->options->keep_where;
    if (belongs || !request_filter_matches_single(where, request_filter_match_record(where, record)))
        return;
    kept_bits_set(&f->kept, index);
    s->request_count++;
}

/*
 * Reads a file. If a part of the file cannot be read, the records of that part are not kept; the reader skips the same
 * part when the records are copied.
 */
static void read_file(selection *s, uint64_t number)
{
    char *name = output_file_name(s->options, number);
    const nl_record *record;
    if (s->options->keep_where_id == NULL)
        infer_kinds(s, name);
    kept_window_file *f = kept_window_find(&s->window, number);
    if (f == NULL)
        f = kept_window_add(&s->window, kept_identity_read(name, number));
    nl_reader *reader = selection_open_file(name);
    while (reader != NULL && !is_stopped(s) && nl_reader_next(reader, &record) == NL_OK)
        add_record(s, f, record);
    nl_reader_close(reader);
    free(name);
    s->latest = number;
}

/* Returns the lowest number of an existing unread file, or 0 if only the newest file is unread. */
static uint64_t find_next(const selection *s, uint64_t number, uint64_t newest)
{
    uint64_t *numbers, next = 0;
    size_t count;
    if (output_file_list(s->options, s->latest < number ? number - 1 : s->latest, &numbers, &count) != NL_OK)
        return 0;
    if (count > 0 && numbers[0] < newest)
        next = numbers[0];
    free(numbers);
    return next;
}

/* Returns the size in bytes of the files after `number` that were read. */
static uint64_t size_ahead(const selection *s, uint64_t number)
{
    uint64_t size = 0;
    for (size_t i = 0; i < s->window.count; i++)
        if (s->window.files[i].identity.number > number && s->window.files[i].identity.number <= s->latest)
            size += s->window.files[i].identity.size;
    return size;
}

static bool is_decided(selection *s, uint64_t number)
{
    const kept_window_file *f = kept_window_find(&s->window, number);
    return s->latest >= number && (f == NULL || f->open_count == 0);
}

static void learn(selection *s, bool enough)
{
    for (size_t i = 0; i < s->kind_count; i++)
        assembler_learn(s->kinds[i].assembler, enough);
}

selection_state selection_decide(selection *s, uint64_t number, uint64_t newest)
{
    kept_window_drop_below(&s->window, number);
    while (!is_decided(s, number) && size_ahead(s, number) < SELECTION_AHEAD_MAX) {
        uint64_t next = find_next(s, number, newest);
        if (next == 0)
            break;
        read_file(s, next);
        if (is_stopped(s))
            return SELECTION_STOPPED;
        if (next > number)
            learn(s, false);
    }
    if (is_decided(s, number))
        return SELECTION_DECIDED;
    if (s->latest <= number)
        return SELECTION_WAITS;
    learn(s, true);
    return SELECTION_DECIDED;
}

/* Keeps all later records of the request of an open record. */
static void keep_later_records(selection_kind *k, const nl_record *record)
{
    request_event event;
    if (request_reader_take(k->reader, record, &event) == 0 || (k->threads && !event.traced))
        return;
    char *name = request_reader_name_request(k->reader);
    kept_window_add_name(&k->selection->window, name);
    g_free(name);
}

bool selection_keeps(selection *s, uint64_t number, uint64_t index, const nl_record *record)
{
    const kept_window_file *f = kept_window_find(&s->window, number);
    if (f == NULL)
        return false;
    bool keeps = kept_bits_get(&f->kept, index);
    for (size_t k = 0; k < s->kind_count; k++)
        if (kept_bits_get(&f->open[k], index)) {
            keep_later_records(&s->kinds[k], record);
            keeps = true;
        }
    return keeps;
}

static bool has_bits(const kept_bits *b)
{
    for (size_t i = 0; i < b->bytes.size; i++)
        if (b->bytes.data[i] != 0)
            return true;
    return false;
}

bool selection_keeps_any(selection *s, uint64_t number)
{
    const kept_window_file *f = kept_window_find(&s->window, number);
    bool keeps = f != NULL && has_bits(&f->kept);
    for (size_t k = 0; k < KEPT_KINDS_MAX && f != NULL && !keeps; k++)
        keeps = has_bits(&f->open[k]);
    return keeps;
}

/* ---- life ---- */

selection *selection_new(const output_options *options, size_t memory_max, const atomic_bool *stop)
{
    selection *s = g_new0(selection, 1);
    s->options = options;
    s->memory_max = memory_max;
    s->stop = stop;
    if (options->keep_where_id != NULL) {
        char **ids = g_strsplit(options->keep_where_id, ",", 0);
        add_kind(s, ids, false, memory_max);
        g_strfreev(ids);
    }
    return s;
}

void selection_free(selection *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->kind_count; i++)
        free_kind(&s->kinds[i]);
    kept_window_clear(&s->window);
    g_free(s);
}

kept_window *selection_get_window(selection *s)
{
    return &s->window;
}

uint64_t selection_count_requests(const selection *s)
{
    return s->request_count;
}
