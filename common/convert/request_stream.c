#include "config.h"

#include "convert/request_stream.h"

#include "program/program.h"
#include "record/format.h"
#include "requests/record_sample.h"

#include <math.h>
#include <string.h>

enum {
    MEMORY_MAX = 256 << 20,
    OPEN_SPANS_MAX = 64, /* maximum number of open spans to search for the span of a point */
    /* for records larger than ASSEMBLER_PAYLOAD_MAX: maximum sizes in bytes, and maximum number of fields */
    BRIEF_MEMBER_SIZE = 8 << 10,
    BRIEF_FIELDS_SIZE = 24 << 10,
    BRIEF_FIELDS_MAX = 256,
    FIELD_EXTRA_SIZE = 16, /* maximum size of a packed field, not counting its name and its text */
};

typedef struct shared_drawing {
    drawing *drawing; /* or NULL */
    bool only_ids;    /* use only the ID fields of the drawing */
    nl_fraction fraction;
    bool has_nanoseconds;
} shared_drawing;

/* Collects the requests of one lifeline. */
typedef struct kind {
    request_stream *stream;
    assembler *assembler;
} kind;

struct request_stream {
    request_stream_user user;
    const drawing *drawing; /* NULL: not known yet */
    struct drawing *inferred;
    record_sample sample;
    bool typed;
    kind *kinds;
    size_t kind_count;
    nl_record *records[2];
    const request_graph *graph; /* valid during a call of user.request */
    GArray *spans;              /* stream_span */
    size_t *owners;             /* for each event of graph: index of the span that contains it, STREAM_NONE, or USED */
    size_t *points;
    size_t capacity; /* capacity of owners and points */
};

#define USED (SIZE_MAX - 1) /* marks an event that begins or ends a span */

/* ---- requests ---- */

static void add_spans(request_stream *s, const request_graph *g)
{
    for (size_t i = 0; i < g->span_count; i++) {
        const request_span *span = &g->spans[i];
        const stream_span made = {.begin_ns = span->begin_ns,
                                  .end_ns = MAX(span->begin_ns, span->end_ns),
                                  .begin = span->begin != REQUEST_NONE ? span->begin : STREAM_NONE,
                                  .end = span->end != REQUEST_NONE ? span->end : STREAM_NONE,
                                  .parent = span->parent != REQUEST_NONE ? span->parent : STREAM_NONE,
                                  .failed = span->failed};
        g_array_append_val(s->spans, made);
        if (made.begin != STREAM_NONE)
            s->owners[made.begin] = USED;
        if (made.end != STREAM_NONE)
            s->owners[made.end] = USED;
    }
}

static int compare_begins(const void *a, const void *b, void *user)
{
    const request_graph *g = user;
    const request_span *x = &g->spans[*(const uint32_t *)a], *y = &g->spans[*(const uint32_t *)b];
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

/* Finds the owner of each point that names a span by its ID. */
static void find_named_owners(request_stream *s, const request_graph *g)
{
    GHashTable *by_id = g_hash_table_new(g_int64_hash, g_int64_equal);
    for (size_t i = 0; i < g->span_count; i++)
        if (g->spans[i].id != 0)
            g_hash_table_insert(by_id, &g->spans[i].id, &g->spans[i]);
    for (size_t i = 0; i < g->event_count && g_hash_table_size(by_id) > 0; i++) {
        const request_event *e = &g->events[i];
        const request_span *span =
            e->span_id != 0 && s->owners[i] == STREAM_NONE ? g_hash_table_lookup(by_id, &e->span_id) : NULL;
        if (span != NULL)
            s->owners[i] = (size_t)(span - g->spans);
    }
    g_hash_table_destroy(by_id);
}

/*
 * Finds the owner of each point: the span that the point's SPAN.ID names. Without a SPAN.ID, the owner is the innermost
 * span of the same program and host that is open at the point's time. Returns whether all points have an owner.
 */
static bool find_owners(request_stream *s, const request_graph *g)
{
    find_named_owners(s, g);
    uint32_t *order = g_new(uint32_t, g->span_count + 1);
    GArray *open = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    bool all = true;
    for (uint32_t i = 0; i < g->span_count; i++)
        order[i] = i;
    g_qsort_with_data(order, (gint)g->span_count, sizeof *order, compare_begins, (gpointer)(size_t)g);
    for (size_t i = 0, next = 0; i < g->event_count; i++) {
        const request_event *e = &g->events[i];
        for (; next < g->span_count && g->spans[order[next]].begin_ns <= e->time_ns; next++)
            g_array_append_val(open, order[next]);
        while (open->len > 0 && g->spans[g_array_index(open, uint32_t, open->len - 1)].end_ns < e->time_ns)
            g_array_set_size(open, open->len - 1);
        for (guint at = open->len, look = OPEN_SPANS_MAX;
             e->span_id == 0 && s->owners[i] == STREAM_NONE && at > 0 && look > 0; look--) {
            uint32_t span = g_array_index(open, uint32_t, --at);
            if (g->spans[span].place == e->place && g->spans[span].end_ns >= e->time_ns)
                s->owners[i] = span;
        }
        all = all && s->owners[i] != STREAM_NONE;
    }
    g_free(order);
    g_array_free(open, TRUE);
    return all;
}

/* Creates a span from each segment between two events, for a request without spans. The last event becomes a point. */
static void add_segments(request_stream *s, const request_graph *g, const event_names *names)
{
    for (size_t i = 0; i + 1 < g->event_count; i++) {
        const stream_span segment = {.begin_ns = g->events[i].time_ns,
                                     .end_ns = g->events[i + 1].time_ns,
                                     .name = event_names_text(names, g->events[i].name),
                                     .begin = i,
                                     .end = STREAM_NONE,
                                     .parent = STREAM_NONE,
                                     .made = true};
        g_array_append_val(s->spans, segment);
        s->owners[i] = USED;
    }
}

/*
 * Inserts a span of the whole request before the other spans, and makes it the parent of all spans that have no
 * parent.
 */
static void add_root(request_stream *s, const request_graph *g, const char *name)
{
    const stream_span root = {.begin_ns = g->from_ns,
                              .end_ns = g->to_ns,
                              .name = name,
                              .begin = STREAM_NONE,
                              .end = STREAM_NONE,
                              .parent = STREAM_NONE,
                              .made = true,
                              .failed = g->failed};
    g_array_prepend_val(s->spans, root);
    for (guint i = 1; i < s->spans->len; i++) {
        stream_span *span = &g_array_index(s->spans, stream_span, i);
        span->parent = span->parent == STREAM_NONE ? 0 : span->parent + 1;
    }
    for (size_t i = 0; i < g->event_count; i++)
        if (s->owners[i] != USED)
            s->owners[i] = s->owners[i] == STREAM_NONE ? 0 : s->owners[i] + 1;
}

/* Writes the points to s->points, in the order of their spans, and sets each span's first_point and point_count. */
static void list_points(request_stream *s, const request_graph *g)
{
    for (size_t i = 0; i < g->event_count; i++)
        if (s->owners[i] < s->spans->len)
            g_array_index(s->spans, stream_span, s->owners[i]).point_count++;
    size_t at = 0;
    for (guint i = 0; i < s->spans->len; i++) {
        stream_span *span = &g_array_index(s->spans, stream_span, i);
        span->first_point = at;
        at += span->point_count;
        span->point_count = 0;
    }
    for (size_t i = 0; i < g->event_count; i++)
        if (s->owners[i] < s->spans->len) {
            stream_span *span = &g_array_index(s->spans, stream_span, s->owners[i]);
            s->points[span->first_point + span->point_count++] = i;
        }
}

static bool has_one_root(const request_stream *s)
{
    size_t roots = 0;
    for (guint i = 0; i < s->spans->len; i++)
        roots += g_array_index(s->spans, stream_span, i).parent == STREAM_NONE;
    return roots == 1;
}

static void take_request(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    const kind *k = user;
    request_stream *s = k->stream;
    const event_names *names = request_reader_names(assembler_reader(k->assembler));
    (void)by, (void)cut;
    if (g->event_count > s->capacity) {
        s->capacity = 2 * g->event_count;
        s->owners = g_renew(size_t, s->owners, s->capacity);
        s->points = g_renew(size_t, s->points, s->capacity);
    }
    for (size_t i = 0; i < g->event_count; i++)
        s->owners[i] = STREAM_NONE;
    s->graph = g;
    g_array_set_size(s->spans, 0);
    add_spans(s, g);
    for (guint i = 0; i < s->spans->len; i++)
        g_array_index(s->spans, stream_span, i).name = event_names_text(names, g->spans[i].name);
    bool owned = find_owners(s, g);
    if (s->spans->len == 0)
        add_segments(s, g, names);
    if (!owned || !has_one_root(s))
        add_root(s, g, name);
    list_points(s, g);
    const stream_request request = {name, (const stream_span *)s->spans->data, s->spans->len, s->points};
    s->user.request(s->user.user, &request);
    s->graph = NULL;
}

const nl_record *request_stream_record(request_stream *s, size_t number, int slot)
{
    const request_event *e = &s->graph->events[number];
    nl_record *record = s->records[slot];
    /* If memory runs out, use a record with only the time. */
    if (e->payload_size == 0 || nl_record_unpack(record, s->graph->payloads + e->payload, e->payload_size) != NL_OK) {
        nl_record_clear(record);
        nl_record_set_time(record, e->time_ns);
    }
    return record;
}

const nl_record *request_stream_span_record(request_stream *s, const stream_span *span)
{
    size_t number = span->begin != STREAM_NONE ? span->begin : span->end != STREAM_NONE ? span->end : 0;
    return request_stream_record(s, number, 0);
}

/* ---- records ---- */

static void cut_text(nl_string *text)
{
    text->size = MIN(text->size, BRIEF_MEMBER_SIZE);
}

/*
 * Packs a record that is too large for the assembler. Cuts long standard fields, and leaves out the fields that do not
 * fit.
 */
static void pack_brief(const request_stream *s, const nl_record *record, nl_buffer *buffer)
{
    nl_field fields[BRIEF_FIELDS_MAX];
    nl_record brief = *record;
    size_t size = 0;
    brief.fields = fields;
    brief.field_count = 0;
    cut_text(&brief.host);
    cut_text(&brief.prog);
    cut_text(&brief.event);
    cut_text(&brief.level_text);
    for (size_t i = 0; i < record->field_count && brief.field_count < BRIEF_FIELDS_MAX; i++) {
        const nl_field *field = &record->fields[i];
        size_t text_size = field->type == NL_TYPE_STRING ? field->string.size : 0, left = BRIEF_FIELDS_SIZE - size;
        if (text_size > left || field->name.size > left - text_size ||
            FIELD_EXTRA_SIZE > left - text_size - field->name.size)
            continue;
        size += FIELD_EXTRA_SIZE + field->name.size + text_size;
        fields[brief.field_count++] = *field;
    }
    nl_record_pack(&brief, buffer);
    if (s->user.lose != NULL)
        s->user.lose(s->user.user, record->field_count - brief.field_count);
}

static void pack_record(void *user, const nl_record *record, nl_buffer *buffer)
{
    const kind *k = user;
    size_t before = buffer->size;
    if (nl_record_pack(record, buffer) && buffer->size - before <= ASSEMBLER_PAYLOAD_MAX)
        return;
    buffer->size = before;
    pack_brief(k->stream, record, buffer);
}

/* Passes on, as single records, the events of a thread that no span encloses. */
static void take_rest(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    const kind *k = user;
    request_stream *s = k->stream;
    (void)name, (void)by, (void)cut;
    s->graph = g;
    for (size_t i = 0; i < g->event_count; i++)
        s->user.single(s->user.user, request_stream_record(s, i, 0));
    s->graph = NULL;
}

static void put_counters(const request_stream *s, const nl_record *record)
{
    for (guint i = 0; s->user.counter != NULL && i < s->drawing->loadlines->len; i++) {
        const drawing_loadline *line = g_ptr_array_index(s->drawing->loadlines, i);
        nl_field field;
        double value;
        if (strlen(line->event) == record->event.size &&
            memcmp(line->event, record->event.data, record->event.size) == 0 &&
            nl_record_find(record, line->field, &field) && nl_field_double(&field, &value) && !isnan(value))
            s->user.counter(s->user.user, record, line, value);
    }
}

static void stream_feed(void *user, const nl_record *record)
{
    request_stream *s = user;
    bool belongs = false;
    put_counters(s, record);
    for (size_t i = 0; i < s->kind_count; i++)
        belongs = assembler_add(s->kinds[i].assembler, record) || belongs;
    if (!belongs)
        s->user.single(s->user.user, record);
}

/* Creates an assembler for each lifeline. Without lifelines, creates one assembler for threads and traces. */
static void stream_begin(request_stream *s, const drawing *d, bool given, const shared_drawing *shared)
{
    size_t count = MAX(d->lifelines->len, 1);
    s->drawing = d;
    s->kinds = g_new0(kind, count);
    s->kind_count = count;
    for (size_t i = 0; i < count; i++) {
        const drawing_lifeline *l = i < d->lifelines->len ? g_ptr_array_index(d->lifelines, i) : NULL;
        const assembler_options options = {.ids = l != NULL ? (const char *const *)l->ids : NULL,
                                           .events = l != NULL && given ? (const char *const *)l->events : NULL,
                                           .again = l != NULL && l->again,
                                           .splits_unnamed = drawing_splits_unnamed(d),
                                           .fraction = shared != NULL ? shared->fraction : NL_FRACTION_DECIMAL,
                                           .has_nanoseconds = shared != NULL && shared->has_nanoseconds,
                                           .memory_max = MEMORY_MAX / count,
                                           .pack = pack_record,
                                           .take = take_request,
                                           .rest = take_rest,
                                           .user = &s->kinds[i]};
        s->kinds[i] = (kind){s, assembler_new(&options)};
    }
}

static void stream_settle(request_stream *s)
{
    if (s->drawing != NULL)
        return;
    s->inferred = record_sample_infer(&s->sample, NULL);
    stream_begin(s, s->inferred, false, NULL);
    record_sample_walk(&s->sample, stream_feed, s);
    record_sample_free(&s->sample);
}

void request_stream_add(request_stream *s, const nl_record *record, bool typed)
{
    s->typed = typed;
    if (s->drawing == NULL && record_sample_add(&s->sample, record)) {
        if (record_sample_is_full(&s->sample))
            stream_settle(s);
        return;
    }
    stream_settle(s);
    stream_feed(s, record);
}

void request_stream_finish(request_stream *s)
{
    stream_settle(s);
    for (size_t i = 0; i < s->kind_count; i++)
        assembler_finish(s->kinds[i].assembler);
}

bool request_stream_is_typed(const request_stream *s)
{
    return s->typed;
}

/* ---- life ---- */

void *request_stream_share(const char *drawing_path)
{
    shared_drawing *shared = g_new0(shared_drawing, 1);
    if (drawing_path != NULL && (shared->drawing = drawing_read(drawing_path)) == NULL) {
        program_print_error();
        g_free(shared);
        return NULL;
    }
    return shared;
}

void *request_stream_share_ids(const drawing *d, nl_fraction fraction, bool has_nanoseconds)
{
    shared_drawing *shared = g_new0(shared_drawing, 1);
    shared->drawing = drawing_copy(d);
    shared->only_ids = true;
    shared->fraction = fraction;
    shared->has_nanoseconds = has_nanoseconds;
    return shared;
}

void request_stream_unshare(void *shared)
{
    shared_drawing *d = shared;
    drawing_free(d->drawing);
    g_free(d);
}

request_stream *request_stream_new(void *shared, const request_stream_user *user)
{
    const shared_drawing *given = shared;
    request_stream *s = g_new0(request_stream, 1);
    s->user = *user;
    s->spans = g_array_new(FALSE, FALSE, sizeof(stream_span));
    s->records[0] = nl_record_new();
    s->records[1] = nl_record_new();
    if (given != NULL && given->drawing != NULL)
        stream_begin(s, given->drawing, !given->only_ids, given);
    return s;
}

void request_stream_free(request_stream *s)
{
    for (size_t i = 0; i < s->kind_count; i++)
        assembler_free(s->kinds[i].assembler);
    g_free(s->kinds);
    drawing_free(s->inferred);
    record_sample_free(&s->sample);
    g_array_free(s->spans, TRUE);
    g_free(s->owners);
    g_free(s->points);
    nl_record_free(s->records[0]);
    nl_record_free(s->records[1]);
    g_free(s);
}
