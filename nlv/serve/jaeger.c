#include "config.h"

#include "serve/jaeger.h"

#include "base/text.h"
#include "base/time_internal.h"
#include "model/export.h"
#include "model/request_list.h"
#include "requests/record_sample.h"
#include "serve/jaeger_trace.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    HTTP_OK = 200,
    HTTP_BAD_REQUEST = 400,
    HTTP_NOT_FOUND = 404,
    HTTP_BUSY = 503,
    LIMIT_DEFAULT = 20,
    LIMIT_MAX = 1500,
    SPANS_MAX = 50000, /* maximum numbers of spans and of tags in an answer */
    TAGS_MAX = 300000,
    BYTES_MAX = 32 << 20,            /* maximum size of the texts of tags in an answer */
    WAITING_MAX = 2,                 /* maximum number of searches that wait; each occupies a thread of the server */
    START_BITS = 44,                 /* see number_of */
    SAME_START_US = 5000,            /* corrections of clocks may change the start of a request by so much */
    NAMES_MAX_COUNT = 20000,         /* maximum number of services and operations */
    PART_RECORDS = 20000,            /* number of records in the first part of a search */
    PART_RECORDS_MAX = 2000000,      /* maximum number of records in a part */
    AT_ONCE = 256,                   /* number of records to read before unlocking the model */
    SEARCH_US = 5 * 1000 * 1000,     /* maximum duration of a search */
    NAMES_US = 2 * 1000 * 1000,      /* maximum duration of a search for names */
    NAMES_AGE_US = 10 * 1000 * 1000, /* names are searched again after this time */
    MARGIN_UNKNOWN_S = 10,
    MARGIN_MAX_S = 3600,
};

struct jaeger {
    model *model;
    atomic_int waiting;   /* number of calls of jaeger_answer that run or wait */
    GMutex lock;          /* protects the following members, and is locked during a search */
    GHashTable *services; /* for each service, the set of its operations: "KIND NAME", where KIND may be empty */
    size_t name_count;
    gint64 named_us;       /* time of the latest search for names, or 0 */
    int64_t names_from_ns; /* names_find has read the requests that start in [names_from_ns, names_to_ns) */
    int64_t names_to_ns;
    bool names_missing; /* names_find has not yet read all requests, or there are too many names */
};

/* A trace that was found. */
typedef struct found_trace {
    int64_t start_ns;
    json_object *trace; /* NULL until the second reading of a part */
} found_trace;

typedef struct walk {
    jaeger *jaeger;
    request_stream *stream;
    int64_t from_ns, to_ns;      /* take the requests that start in [from_ns, to_ns) */
    const jaeger_search *search; /* NULL: traces are not searched by their spans */
    const char *trace;           /* NULL: any trace ID */
    uint64_t away_us;      /* if is_made: difference between the start of the found request and the wanted start */
    bool is_made;          /* `trace` has the name and the start of a request (number_of) */
    bool is_building;      /* the second reading of a part, which makes the traces that the first one has found */
    GHashTable *calls;     /* "PARENT\nCHILD" -> number of calls (gsize), or NULL */
    record_sample records; /* records that were read, but not yet added to the stream */
    GArray *found;         /* found_trace, newest first */
    size_t limit;
    guint built; /* number of traces at the start of `found` that have been made */
    jaeger_space space;
    int64_t reached_ns; /* walk_range has read the requests that start at or after this time */
    gint64 deadline_us;
    const char *problem; /* why the search ended early, or NULL */
} walk;

/* ---- names ---- */

static void note_operation(jaeger *j, nl_string service, const char *kind, const char *name)
{
    if (j->name_count >= NAMES_MAX_COUNT)
        return;
    char *key = g_strndup(service.data, service.size);
    GHashTable *operations = g_hash_table_lookup(j->services, key);
    if (operations == NULL) {
        operations = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_hash_table_insert(j->services, key, operations);
        j->name_count++;
    } else {
        g_free(key);
    }
    j->name_count += g_hash_table_add(operations, g_strconcat(kind, " ", name, NULL)) ? 1 : 0;
}

static void note_names(walk *w, const stream_request *r)
{
    for (size_t i = 0; i < r->span_count; i++) {
        const nl_record *record = request_stream_span_record(w->stream, &r->spans[i]);
        note_operation(w->jaeger, jaeger_service(record), jaeger_span_kind(record), jaeger_operation(&r->spans[i]));
    }
}

/* Counts the spans whose parents are spans of another service. */
static void count_calls(walk *w, const stream_request *r)
{
    for (size_t i = 0; i < r->span_count; i++) {
        if (r->spans[i].parent == STREAM_NONE)
            continue;
        const nl_string child = jaeger_service(request_stream_span_record(w->stream, &r->spans[i]));
        char *name = g_strndup(child.data, child.size);
        const nl_string parent = jaeger_service(request_stream_span_record(w->stream, &r->spans[r->spans[i].parent]));
        if (!nl_string_is(parent, name)) {
            char *key = g_strdup_printf("%.*s\n%s", (int)parent.size, parent.data, name);
            gsize calls = GPOINTER_TO_SIZE(g_hash_table_lookup(w->calls, key));
            g_hash_table_insert(w->calls, key, GSIZE_TO_POINTER(calls + 1));
        }
        g_free(name);
    }
}

/* ---- walking ---- */

static void drop_last(walk *w)
{
    json_object_put(g_array_index(w->found, found_trace, w->found->len - 1).trace);
    g_array_set_size(w->found, w->found->len - 1);
}

/* Adds a trace in the order of the starts. Keeps the newest traces only. */
static void add_found(walk *w, found_trace t)
{
    guint at = w->found->len;
    while (at > w->built && g_array_index(w->found, found_trace, at - 1).start_ns < t.start_ns)
        at--;
    g_array_insert_val(w->found, at, t);
    if (w->found->len > w->limit)
        drop_last(w);
}

/*
 * Returns the number that replaces a missing trace ID: 20 bits of the hash of the request's name, and its start in
 * microseconds, modulo 2^44 (half a year).
 */
static uint64_t number_of(uint32_t name_hash, int64_t start_ns)
{
    return (uint64_t)(name_hash >> (32 - (64 - START_BITS))) << START_BITS |
           ((uint64_t)(start_ns / 1000) & ((UINT64_C(1) << START_BITS) - 1));
}

/* Returns the difference of the starts in two numbers of the same name in microseconds, or UINT64_MAX. */
static uint64_t difference_us(uint64_t a, uint64_t b)
{
    const uint64_t mask = (UINT64_C(1) << START_BITS) - 1, apart_us = (a - b) & mask;
    return a >> START_BITS == b >> START_BITS ? MIN(apart_us, mask + 1 - apart_us) : UINT64_MAX;
}

/* Returns whether the trace ID `trace` was made from the number, and sets it. */
static bool parse_made(const char *trace, uint64_t *number)
{
    char made[OTLP_TRACE_DIGITS + 1];
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): if is_made is set, the walk has a trace ID */
    *number = strlen(trace) == OTLP_TRACE_DIGITS ? g_ascii_strtoull(trace + OTLP_TRACE_DIGITS / 2, NULL, 16) : 0;
    span_ids_make_trace(*number, made);
    return g_ascii_strcasecmp(made, trace) == 0;
}

/* Sets the IDs of the current request. Returns whether they are those of the trace that the walk looks for. */
static bool choose_ids(const walk *w, const stream_request *r, int64_t start_ns, char trace[OTLP_TRACE_DIGITS + 1],
                       span_id *ids)
{
    const uint64_t own = number_of(request_name_hash(r->name), start_ns);
    uint64_t wanted, chosen, next_id = own;
    if (w->is_made && parse_made(w->trace, &wanted) && difference_us(wanted, own) <= SAME_START_US)
        next_id = wanted;
    span_ids_choose(w->stream, r, &next_id, trace, ids);
    return w->trace == NULL || g_ascii_strcasecmp(w->trace, trace) == 0 ||
           (w->is_made && parse_made(trace, &chosen) && chosen == wanted);
}

/* Makes the trace of a request that the first reading of this part has found. */
static void build_trace(walk *w, const stream_request *r, int64_t start_ns)
{
    guint at = w->built;
    while (at < w->found->len && (g_array_index(w->found, found_trace, at).start_ns != start_ns ||
                                  g_array_index(w->found, found_trace, at).trace != NULL))
        at++;
    if (at == w->found->len || w->space.spans == 0)
        return;
    char trace[OTLP_TRACE_DIGITS + 1];
    span_id *ids = g_new(span_id, r->span_count);
    if (choose_ids(w, r, start_ns, trace, ids))
        g_array_index(w->found, found_trace, at).trace = jaeger_trace_new(w->stream, r, trace, ids, &w->space);
    g_free(ids);
}

static void find_trace_of(walk *w, const stream_request *r, int64_t start_ns)
{
    if (w->trace != NULL) {
        char trace[OTLP_TRACE_DIGITS + 1];
        span_id *ids = g_new(span_id, r->span_count);
        const bool is_wanted = choose_ids(w, r, start_ns, trace, ids);
        g_free(ids);
        if (!is_wanted)
            return;
    }
    uint64_t wanted;
    if (w->is_made && parse_made(w->trace, &wanted)) {
        /* of several requests with this name, the one whose start is nearest */
        const uint64_t away_us = difference_us(wanted, number_of(request_name_hash(r->name), start_ns));
        if (w->found->len > w->built && away_us >= w->away_us)
            return;
        w->away_us = away_us;
        g_array_set_size(w->found, w->built);
    }
    if (w->found->len < w->limit || start_ns > g_array_index(w->found, found_trace, w->found->len - 1).start_ns)
        add_found(w, (found_trace){start_ns, NULL});
}

static bool is_late(walk *w)
{
    if (g_get_monotonic_time() < w->deadline_us && !program_was_stopped())
        return false;
    w->problem = "the search ended after its maximum time; choose a shorter time range";
    return true;
}

static void jaeger_take_request(void *user, const stream_request *r)
{
    walk *w = user;
    if (r->span_count == 0 || is_late(w))
        return;
    const int64_t start_ns = jaeger_trace_start(r);
    if (start_ns < w->from_ns || start_ns >= w->to_ns)
        return;
    if (!w->is_building) {
        note_names(w, r);
        if (w->calls != NULL)
            count_calls(w, r);
    }
    if (w->limit == 0 || (w->search != NULL && !jaeger_search_matches(w->search, w->stream, r)))
        return;
    if (w->is_building)
        build_trace(w, r, start_ns);
    else
        find_trace_of(w, r, start_ns);
}

static void jaeger_take_single(void *user, const nl_record *record)
{
    (void)user, (void)record;
}

/* Copies a record, so that the request can be built without the model's lock. */
static void jaeger_add_record(void *user, const nl_record *record)
{
    walk *w = user;
    if (!record_sample_add(&w->records, record))
        request_stream_add(w->stream, record, false); /* too large to be copied */
}

static void feed_record(void *user, const nl_record *record)
{
    request_stream_add(((walk *)user)->stream, record, false);
}

static void read_part(walk *w, const GArray *places)
{
    model *m = w->jaeger->model;
    model_lock(m);
    void *shared = request_stream_share_ids(model_drawing(m), NL_FRACTION_DECIMAL, model_has_nanoseconds(m));
    model_unlock(m);
    w->stream = request_stream_new(
        shared, &(request_stream_user){.request = jaeger_take_request, .single = jaeger_take_single, .user = w});
    for (guint i = 0; i < places->len && !is_late(w);) {
        model_lock(m);
        for (guint end = MIN(places->len, i + AT_ONCE); i < end; i++)
            model_record_at(m, g_array_index(places, uint64_t, i), jaeger_add_record, w);
        model_unlock(m);
        record_sample_walk(&w->records, feed_record, w);
        record_sample_free(&w->records);
    }
    request_stream_finish(w->stream);
    request_stream_free(w->stream);
    request_stream_unshare(shared);
}

/*
 * Takes the requests that start in [from_ns, to_ns). `margin_ns` is the maximum duration of a request. Reads the part
 * twice, because most of the traces that match are not among the newest ones, and making a trace takes long.
 */
static void walk_part(walk *w, int64_t from_ns, int64_t to_ns, int64_t margin_ns)
{
    model *m = w->jaeger->model;
    w->from_ns = from_ns;
    w->to_ns = to_ns;
    model_lock(m);
    GArray *places = export_places_of_range(m, from_ns - margin_ns, to_ns + margin_ns);
    model_unlock(m);
    read_part(w, places);
    if (w->found->len > w->built) {
        w->is_building = true;
        read_part(w, places);
        w->is_building = false;
        for (guint i = w->found->len; i > w->built; i--)
            if (g_array_index(w->found, found_trace, i - 1).trace == NULL)
                g_array_remove_index(w->found, i - 1); /* the deadline or the maximum size has prevented it */
        w->built = w->found->len;
    }
    if (w->space.is_cut || w->space.spans == 0)
        w->problem = "the reply is too large, so spans or tags are missing; choose a smaller limit";
    g_array_free(places, TRUE);
}

/* Returns the duration of the longest request that the model knows. Sets *from_ns, *to_ns and *count to the range of
 * the log and its number of records. Returns a negative number if there are no records. */
static int64_t measure(model *m, int64_t *from_ns, int64_t *to_ns, size_t *count)
{
    int64_t margin_ns = -1;
    model_lock(m);
    *count = model_count(m);
    if (model_time_range(m, from_ns, to_ns)) {
        const request_list *l = model_requests(m);
        margin_ns = model_requests_progress(m) < 1 ? MARGIN_UNKNOWN_S * NL_NS_PER_SECOND : 0;
        for (uint32_t i = 0; l != NULL && i < l->count; i++)
            margin_ns = MAX(margin_ns, request_list_at(l, i)->duration_ns);
    }
    model_unlock(m);
    return margin_ns;
}

/*
 * Takes the requests that start in [from_ns, to_ns), the newest first, until w->limit traces are found. The parts grow,
 * because each part needs the records of the margins, too.
 */
static void walk_range(walk *w, int64_t from_ns, int64_t to_ns)
{
    int64_t first_ns, last_ns;
    size_t count;
    int64_t margin_ns = measure(w->jaeger->model, &first_ns, &last_ns, &count);
    if (margin_ns < 0)
        return;
    if (margin_ns > MARGIN_MAX_S * NL_NS_PER_SECOND) {
        margin_ns = MARGIN_MAX_S * NL_NS_PER_SECOND;
        w->problem = "traces that take longer than an hour may be incomplete";
    }
    from_ns = MAX(from_ns, first_ns - margin_ns);
    to_ns = MIN(to_ns, last_ns + 1);
    const double ns_per_record = ((double)last_ns - (double)first_ns) / (double)MAX(count, 1) + 1;
    double records = PART_RECORDS;
    while (to_ns > from_ns && !is_late(w) && (w->limit == 0 || w->found->len < w->limit)) {
        const double part_ns = MAX(records * ns_per_record, (double)margin_ns);
        const int64_t begin_ns = part_ns < (double)to_ns - (double)from_ns ? to_ns - (int64_t)part_ns : from_ns;
        walk_part(w, begin_ns, to_ns, margin_ns);
        if (!is_late(w))
            w->reached_ns = begin_ns;
        if (w->space.spans == 0)
            break;
        to_ns = begin_ns;
        records = MIN(2 * records, PART_RECORDS_MAX);
    }
}

/*
 * Looks for the trace at the requests of the model's list whose names have its hash. Returns whether the list has all
 * requests, so that no other part of the log has the trace.
 */
static bool walk_listed(walk *w, uint64_t number)
{
    model *m = w->jaeger->model;
    const uint32_t hash = request_name_hash(w->trace);
    GArray *requests = g_array_new(FALSE, FALSE, sizeof(request_summary));
    model_lock(m);
    const request_list *l = model_requests(m);
    uint64_t nearest_us = 2 * SAME_START_US + 1;
    for (uint32_t i = 0; l != NULL && i < l->count; i++) {
        const request_summary *r = request_list_at(l, i);
        const uint64_t away_us =
            w->is_made ? difference_us(number, number_of(r->name_hash, r->start_ns)) : nearest_us - 1;
        if (away_us >= nearest_us || (!w->is_made && r->name_hash != hash))
            continue;
        if (w->is_made) { /* only the request whose start is nearest */
            nearest_us = away_us;
            g_array_set_size(requests, 0);
        }
        g_array_append_val(requests, *r);
    }
    const bool is_complete = l != NULL && l->dropped == 0 && model_requests_progress(m) >= 1;
    model_unlock(m);
    for (guint i = requests->len; i > 0 && w->found->len == 0 && !is_late(w); i--) {
        const request_summary *r = &g_array_index(requests, request_summary, i - 1);
        const int64_t tolerance_ns = SAME_START_US * INT64_C(1000);
        walk_part(w, r->start_ns - tolerance_ns, r->start_ns + tolerance_ns, r->duration_ns + tolerance_ns);
    }
    g_array_free(requests, TRUE);
    return is_complete;
}

static void find_trace(walk *w)
{
    uint64_t number;
    w->is_made = parse_made(w->trace, &number);
    const bool is_complete = walk_listed(w, number);
    if (w->found->len == 0 && !is_complete && !is_late(w))
        walk_range(w, INT64_MIN / 2, INT64_MAX / 2);
}

static walk walk_new(jaeger *j, size_t limit, gint64 time_us)
{
    return (walk){.jaeger = j,
                  .limit = limit,
                  .space = {.spans = SPANS_MAX, .tags = TAGS_MAX, .bytes = BYTES_MAX},
                  .reached_ns = INT64_MAX,
                  .found = g_array_new(FALSE, FALSE, sizeof(found_trace)),
                  .deadline_us = g_get_monotonic_time() + time_us};
}

static void walk_clear(walk *w)
{
    while (w->found->len > 0)
        drop_last(w);
    g_array_free(w->found, TRUE);
}

/* ---- answers ---- */

/* Returns the answer as text. `problem` may be NULL. Takes ownership of `data`. */
static char *jaeger_document(json_object *data, size_t total, unsigned code, const char *problem)
{
    json_object *o = json_object_new_object(), *errors = NULL;
    json_object_object_add(o, "data", data);
    json_add_int(o, "total", (int64_t)total);
    json_add_int(o, "limit", 0);
    json_add_int(o, "offset", 0);
    if (problem != NULL) {
        json_object *error = json_object_new_object();
        errors = json_object_new_array();
        json_add_int(error, "code", code);
        json_add_text(error, "msg", problem);
        json_object_array_add(errors, error);
    }
    json_object_object_add(o, "errors", errors);
    char *text = g_strdup(json_document_text(o, false));
    json_object_put(o);
    return text;
}

static unsigned fail(unsigned code, const char *problem, char **body)
{
    *body = jaeger_document(NULL, 0, code, problem);
    return code;
}

/* Answers with the found traces. Takes their ownership. */
static unsigned answer_traces(walk *w, char **body)
{
    json_object *data = json_object_new_array();
    for (guint i = 0; i < w->found->len; i++)
        json_object_array_add(data, json_object_get(g_array_index(w->found, found_trace, i).trace));
    *body = jaeger_document(data, w->found->len, HTTP_OK, w->problem);
    return HTTP_OK;
}

static gint compare_texts(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

/* Reads the requests that start in [from_ns, to_ns), and returns the time from which on it has read all of them. */
static int64_t find_names_in(jaeger *j, int64_t from_ns, int64_t to_ns, gint64 deadline_us)
{
    walk w = walk_new(j, 0, NAMES_US);
    w.deadline_us = deadline_us;
    walk_range(&w, from_ns, to_ns);
    walk_clear(&w);
    return w.problem == NULL ? from_ns : MIN(w.reached_ns, to_ns);
}

/*
 * Reads the requests whose names are not known: those since the latest call, and then those before the requests that
 * earlier calls have read.
 */
static void find_names(jaeger *j)
{
    const gint64 now_us = g_get_monotonic_time(), deadline_us = now_us + NAMES_US;
    int64_t first_ns, last_ns;
    size_t count;
    if ((j->named_us != 0 && !j->names_missing && now_us < j->named_us + NAMES_AGE_US) ||
        measure(j->model, &first_ns, &last_ns, &count) < 0)
        return;
    if (j->named_us == 0)
        j->names_from_ns = j->names_to_ns = last_ns + 1;
    if (last_ns >= j->names_to_ns) {
        const int64_t reached_ns = find_names_in(j, j->names_to_ns, last_ns + 1, deadline_us);
        if (reached_ns > j->names_to_ns)
            j->names_from_ns = reached_ns; /* there is a gap, so the requests before it are read again */
        j->names_to_ns = last_ns + 1;
    }
    const int64_t begin_ns = first_ns - MARGIN_MAX_S * NL_NS_PER_SECOND;
    if (j->names_from_ns > begin_ns)
        j->names_from_ns = find_names_in(j, begin_ns, j->names_from_ns, deadline_us);
    j->names_missing = j->names_from_ns > begin_ns || j->name_count >= NAMES_MAX_COUNT;
    j->named_us = now_us;
}

static const char *names_problem(const jaeger *j)
{
    return j->names_missing
               ? "names are missing, because nlv has not yet read all requests, or there are too many names"
               : NULL;
}

static unsigned answer_services(jaeger *j, char **body)
{
    find_names(j);
    json_object *data = json_object_new_array();
    GList *names = g_list_sort(g_hash_table_get_keys(j->services), compare_texts);
    for (const GList *at = names; at != NULL; at = at->next)
        json_object_array_add(data, json_text(at->data));
    const size_t count = g_list_length(names);
    g_list_free(names);
    *body = jaeger_document(data, count, HTTP_OK, names_problem(j));
    return HTTP_OK;
}

/* Answers with the operations of a service, as names or as objects with kinds. If `kind` is NULL, any kind matches. */
static unsigned answer_operations(jaeger *j, const char *service, const char *kind, bool as_objects, char **body)
{
    find_names(j);
    json_object *data = json_object_new_array();
    GHashTable *operations = g_hash_table_lookup(j->services, service);
    GList *names = operations != NULL ? g_list_sort(g_hash_table_get_keys(operations), compare_texts) : NULL;
    size_t count = 0;
    for (const GList *at = names; at != NULL; at = at->next) {
        const char *name = strchr(at->data, ' ') + 1;
        char *own_kind = g_strndup(at->data, (gsize)(name - 1 - (const char *)at->data));
        if (kind == NULL || *kind == '\0' || strcmp(kind, own_kind) == 0) {
            json_object *o = as_objects ? json_object_new_object() : json_text(name);
            if (as_objects) {
                json_add_text(o, "name", name);
                json_add_text(o, "spanKind", own_kind);
            }
            json_object_array_add(data, o);
            count++;
        }
        g_free(own_kind);
    }
    g_list_free(names);
    *body = jaeger_document(data, count, HTTP_OK, names_problem(j));
    return HTTP_OK;
}

/* ---- parameters ---- */

static const char *find_parameter(const jaeger_parameter *p, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(p[i].name, name) == 0 && *p[i].value != '\0')
            return p[i].value;
    return NULL;
}

/* Parses a number of at most `max`. Returns false if the text is invalid. NULL is valid and changes nothing. */
static bool parse_count(const char *text, int64_t max, int64_t *value)
{
    char *end;
    if (text == NULL)
        return true;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < 0 || number > max)
        return false;
    *value = number;
    return true;
}

/* Parses a duration in the syntax of Go, such as "1.5ms" or "1m30s". NULL is valid and changes nothing. */
static bool parse_duration(const char *text, int64_t *value)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1},   {"us", 1e3}, {"\302\265s", 1e3}, {"\316\274s", 1e3},
                 {"ms", 1e6}, {"s", 1e9},  {"m", 6e10},        {"h", 3.6e12}};
    double sum_ns = 0;
    if (text == NULL)
        return true;
    for (const char *at = text; *at != '\0';) {
        if (!g_ascii_isdigit(*at) && *at != '.')
            return false;
        char *end;
        const double number = g_ascii_strtod(at, &end);
        size_t i = 0, size = 0;
        if (end == at)
            return false;
        while (g_ascii_isalpha(end[size]) || (unsigned char)end[size] >= 0x80)
            size++;
        while (i < G_N_ELEMENTS(units) && (strlen(units[i].unit) != size || memcmp(units[i].unit, end, size) != 0))
            i++;
        if (i == G_N_ELEMENTS(units))
            return false;
        sum_ns += number * units[i].ns;
        at = end + size;
    }
    if (sum_ns >= 9e18)
        return false;
    *value = (int64_t)sum_ns;
    return true;
}

/*
 * Adds the tags of a JSON object such as {"http.status_code": "500"}. Returns the object, which owns the texts, or NULL
 * if it is invalid or has too many tags.
 */
static json_object *parse_tags(const char *text, jaeger_search *q)
{
    json_tokener *tokener = json_tokener_new();
    json_object *o = json_tokener_parse_ex(tokener, text, (int)strlen(text));
    bool good = json_object_is_type(o, json_type_object) && json_object_object_length(o) <= JAEGER_TAGS_MAX &&
                text[json_tokener_get_parse_end(tokener)] == '\0';
    json_tokener_free(tokener);
    if (good) {
        json_object_object_foreach(o, name, value)
        {
            good = good && value != NULL;
            q->tags[q->tag_count++] = (jaeger_tag){name, value != NULL ? json_object_get_string(value) : ""};
        }
    }
    if (good)
        return o;
    json_object_put(o);
    return NULL;
}

/* ---- dispatch ---- */

static unsigned search_traces(jaeger *j, const jaeger_parameter *p, size_t count, char **body)
{
    jaeger_search q = {.service = find_parameter(p, count, "service"),
                       .operation = find_parameter(p, count, "operation"),
                       .longest_ns = INT64_MAX};
    int64_t from_us = INT64_MIN / 2000, to_us = INT64_MAX / 2000, limit = LIMIT_DEFAULT;
    const char *tags = find_parameter(p, count, "tags");
    const bool is_valid = parse_count(find_parameter(p, count, "start"), INT64_MAX / 2000, &from_us) &&
                          parse_count(find_parameter(p, count, "end"), INT64_MAX / 2000, &to_us) &&
                          parse_count(find_parameter(p, count, "limit"), INT64_MAX, &limit) &&
                          parse_duration(find_parameter(p, count, "minDuration"), &q.shortest_ns) &&
                          parse_duration(find_parameter(p, count, "maxDuration"), &q.longest_ns);
    if (!is_valid)
        return fail(HTTP_BAD_REQUEST, "invalid start, end, limit, minDuration or maxDuration", body);
    json_object *tag_texts = tags != NULL ? parse_tags(tags, &q) : NULL;
    if (tags != NULL && tag_texts == NULL)
        return fail(HTTP_BAD_REQUEST,
                    "invalid tags; use a JSON object of at most 16 tags, such as {\"error\":\"true\"}", body);
    walk w = walk_new(j, (size_t)CLAMP(limit, 1, LIMIT_MAX), SEARCH_US);
    w.search = &q;
    walk_range(&w, from_us * 1000, to_us * 1000);
    answer_traces(&w, body);
    walk_clear(&w);
    json_object_put(tag_texts);
    return HTTP_OK;
}

/* Answers with the traces of all parameters traceID, or of `only`. */
static unsigned get_traces(jaeger *j, const char *only, const jaeger_parameter *p, size_t count, char **body)
{
    walk all = walk_new(j, LIMIT_MAX, SEARCH_US);
    for (size_t i = 0; i < (only != NULL ? 1 : count); i++) {
        if (only == NULL && strcmp(p[i].name, "traceID") != 0)
            continue;
        walk w = walk_new(j, 1, SEARCH_US);
        w.deadline_us = all.deadline_us;
        w.space = all.space;
        w.trace = only != NULL ? only : p[i].value;
        find_trace(&w);
        all.problem = w.problem != NULL ? w.problem : all.problem;
        for (guint t = 0; t < w.found->len; t++) {
            found_trace taken = g_array_index(w.found, found_trace, t);
            json_object_get(taken.trace);
            add_found(&all, taken);
        }
        all.space = w.space;
        walk_clear(&w);
    }
    const unsigned status = all.found->len > 0
                                ? answer_traces(&all, body)
                                : fail(HTTP_NOT_FOUND, all.problem != NULL ? all.problem : "trace not found", body);
    walk_clear(&all);
    return status;
}

static unsigned answer_dependencies(jaeger *j, const jaeger_parameter *p, size_t count, char **body)
{
    int64_t end_ms = INT64_MAX / 2000000, lookback_ms = end_ms;
    if (!parse_count(find_parameter(p, count, "endTs"), end_ms, &end_ms) ||
        !parse_count(find_parameter(p, count, "lookback"), lookback_ms, &lookback_ms))
        return fail(HTTP_BAD_REQUEST, "invalid endTs or lookback", body);
    walk w = walk_new(j, 0, SEARCH_US);
    w.calls = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    walk_range(&w, (end_ms - lookback_ms) * 1000000, end_ms * 1000000);
    json_object *data = json_object_new_array();
    GHashTableIter at;
    gpointer key, calls;
    g_hash_table_iter_init(&at, w.calls);
    while (g_hash_table_iter_next(&at, &key, &calls)) {
        json_object *o = json_object_new_object();
        char **names = g_strsplit(key, "\n", 2);
        json_add_text(o, "parent", names[0]);
        json_add_text(o, "child", names[1]);
        json_add_int(o, "callCount", (int64_t)GPOINTER_TO_SIZE(calls));
        g_strfreev(names);
        json_object_array_add(data, o);
    }
    *body = jaeger_document(data, json_object_array_length(data), HTTP_OK, w.problem);
    g_hash_table_destroy(w.calls);
    walk_clear(&w);
    return HTTP_OK;
}

static unsigned dispatch(jaeger *j, const char *path, const jaeger_parameter *p, size_t count, char **body)
{
    static const char services[] = "services/", operations[] = "/operations";
    if (strcmp(path, "services") == 0)
        return answer_services(j, body);
    if (g_str_has_prefix(path, services) && g_str_has_suffix(path, operations)) {
        const char *name = path + sizeof services - 1;
        const size_t size = strlen(path), extra = sizeof services - 1 + sizeof operations - 1;
        char *service = g_strndup(name, size > extra ? size - extra : 0);
        const unsigned status = answer_operations(j, service, NULL, false, body);
        g_free(service);
        return status;
    }
    if (strcmp(path, "operations") == 0) {
        const char *service = find_parameter(p, count, "service");
        return service != NULL ? answer_operations(j, service, find_parameter(p, count, "spanKind"), true, body)
                               : fail(HTTP_BAD_REQUEST, "missing parameter: service", body);
    }
    if (strcmp(path, "dependencies") == 0)
        return answer_dependencies(j, p, count, body);
    if (strcmp(path, "traces") == 0)
        return find_parameter(p, count, "traceID") != NULL ? get_traces(j, NULL, p, count, body)
                                                           : search_traces(j, p, count, body);
    if (g_str_has_prefix(path, "traces/"))
        return get_traces(j, path + strlen("traces/"), p, count, body);
    return fail(HTTP_NOT_FOUND, "nlv does not answer this request of Jaeger's query API", body);
}

unsigned jaeger_answer(jaeger *j, const char *path, const jaeger_parameter *parameters, size_t count, char **body)
{
    unsigned status = HTTP_BUSY;
    if (atomic_fetch_add(&j->waiting, 1) > WAITING_MAX) {
        fail(status, "nlv is busy with other searches; try again", body);
    } else {
        g_mutex_lock(&j->lock);
        status = dispatch(j, path + strlen(JAEGER_PATH), parameters, count, body);
        g_mutex_unlock(&j->lock);
    }
    atomic_fetch_sub(&j->waiting, 1);
    return status;
}

static void free_operations(gpointer operations)
{
    g_hash_table_destroy(operations);
}

jaeger *jaeger_new(model *m)
{
    jaeger *j = g_new0(jaeger, 1);
    j->model = m;
    j->services = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_operations);
    g_mutex_init(&j->lock);
    return j;
}

void jaeger_free(jaeger *j)
{
    g_hash_table_destroy(j->services);
    g_mutex_clear(&j->lock);
    g_free(j);
}
