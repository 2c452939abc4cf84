#include "config.h"

#include "serve/jaeger.h"

#include "base/text.h"
#include "base/time_internal.h"
#include "model/export.h"
#include "model/request_list.h"
#include "serve/jaeger_trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HTTP_OK = 200,
    HTTP_BAD_REQUEST = 400,
    HTTP_NOT_FOUND = 404,
    LIMIT_DEFAULT = 20,
    LIMIT_MAX = 1500,
    SPANS_MAX = 200000,              /* maximum number of spans in an answer */
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
    GMutex lock;          /* protects the following members, and is locked during a search */
    GHashTable *services; /* for each service, the set of its operations: "KIND NAME", where KIND may be empty */
    size_t name_count;
    gint64 named_us; /* time of the latest search for names, or 0 */
};

/* A trace that was found. */
typedef struct found_trace {
    int64_t start_ns;
    size_t spans;
    json_object *trace;
} found_trace;

typedef struct walk {
    jaeger *jaeger;
    request_stream *stream;
    int64_t from_ns, to_ns;      /* take the requests that start in [from_ns, to_ns) */
    const jaeger_search *search; /* NULL: traces are not searched by their spans */
    const char *trace;           /* NULL: any trace ID */
    GHashTable *calls;           /* "PARENT\nCHILD" -> number of calls (gsize), or NULL */
    GArray *found;               /* found_trace, newest first */
    size_t limit, spans;
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
    const found_trace *last = &g_array_index(w->found, found_trace, w->found->len - 1);
    w->spans -= last->spans;
    json_object_put(last->trace);
    g_array_set_size(w->found, w->found->len - 1);
}

/* Adds a trace in the order of the starts. Keeps the newest traces only. */
static void add_found(walk *w, found_trace t)
{
    guint at = w->found->len;
    while (at > 0 && g_array_index(w->found, found_trace, at - 1).start_ns < t.start_ns)
        at--;
    g_array_insert_val(w->found, at, t);
    w->spans += t.spans;
    if (w->found->len > w->limit)
        drop_last(w);
    while (w->spans > SPANS_MAX && w->found->len > 1) {
        w->problem = "the reply contains only the newest traces, because the traces have too many spans";
        w->limit = w->found->len - 1;
        drop_last(w);
    }
}

static bool is_newer(const walk *w, int64_t start_ns)
{
    return w->found->len < w->limit || start_ns > g_array_index(w->found, found_trace, w->found->len - 1).start_ns;
}

static void jaeger_take_request(void *user, const stream_request *r)
{
    walk *w = user;
    if (r->span_count == 0)
        return;
    const int64_t start_ns = jaeger_trace_start(r);
    if (start_ns < w->from_ns || start_ns >= w->to_ns)
        return;
    note_names(w, r);
    if (w->calls != NULL)
        count_calls(w, r);
    if (w->limit == 0 || !is_newer(w, start_ns) ||
        (w->search != NULL && !jaeger_search_matches(w->search, w->stream, r)))
        return;
    uint64_t next_id = request_name_hash(r->name);
    char trace[OTLP_TRACE_DIGITS + 1];
    span_id *ids = g_new(span_id, r->span_count);
    span_ids_choose(w->stream, r, &next_id, trace, ids);
    if (w->trace == NULL || g_ascii_strcasecmp(w->trace, trace) == 0)
        add_found(w, (found_trace){start_ns, r->span_count, jaeger_trace_new(w->stream, r, trace, ids)});
    g_free(ids);
}

static void jaeger_take_single(void *user, const nl_record *record)
{
    (void)user, (void)record;
}

static void jaeger_add_record(void *user, const nl_record *record)
{
    request_stream_add(((walk *)user)->stream, record, false);
}

static bool is_late(walk *w)
{
    if (g_get_monotonic_time() < w->deadline_us)
        return false;
    w->problem = "the search ended after its maximum time; choose a shorter time range";
    return true;
}

/* Takes the requests that start in [from_ns, to_ns). `margin_ns` is the maximum duration of a request. */
static void walk_part(walk *w, int64_t from_ns, int64_t to_ns, int64_t margin_ns)
{
    model *m = w->jaeger->model;
    w->from_ns = from_ns;
    w->to_ns = to_ns;
    model_lock(m);
    GArray *places = export_places_of_range(m, from_ns - margin_ns, to_ns + margin_ns);
    void *shared = request_stream_share_ids(model_drawing(m));
    model_unlock(m);
    w->stream = request_stream_new(
        shared, &(request_stream_user){.request = jaeger_take_request, .single = jaeger_take_single, .user = w});
    for (guint i = 0; i < places->len && !is_late(w);) {
        model_lock(m);
        for (guint end = MIN(places->len, i + AT_ONCE); i < end; i++)
            model_record_at(m, g_array_index(places, uint64_t, i), jaeger_add_record, w);
        model_unlock(m);
    }
    request_stream_finish(w->stream);
    request_stream_free(w->stream);
    request_stream_unshare(shared);
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
    return MIN(margin_ns, MARGIN_MAX_S * NL_NS_PER_SECOND);
}

/*
 * Takes the requests that start in [from_ns, to_ns), the newest first, until w->limit traces are found. The parts grow,
 * because each part needs the records of the margins, too.
 */
static void walk_range(walk *w, int64_t from_ns, int64_t to_ns)
{
    int64_t first_ns, last_ns;
    size_t count;
    const int64_t margin_ns = measure(w->jaeger->model, &first_ns, &last_ns, &count);
    if (margin_ns < 0)
        return;
    from_ns = MAX(from_ns, first_ns - margin_ns);
    to_ns = MIN(to_ns, last_ns + 1);
    const double ns_per_record = ((double)last_ns - (double)first_ns) / (double)MAX(count, 1) + 1;
    double records = PART_RECORDS;
    while (to_ns > from_ns && !is_late(w) && (w->limit == 0 || w->found->len < w->limit)) {
        const double part_ns = MAX(records * ns_per_record, (double)margin_ns);
        const int64_t begin_ns = part_ns < (double)to_ns - (double)from_ns ? to_ns - (int64_t)part_ns : from_ns;
        walk_part(w, begin_ns, to_ns, margin_ns);
        to_ns = begin_ns;
        records = MIN(2 * records, PART_RECORDS_MAX);
    }
}

/*
 * Looks for a trace at the requests of the model's list whose names have its hash. Returns whether the list has all
 * requests, so that no other part of the log has the trace.
 */
static bool walk_listed(walk *w, uint32_t hash)
{
    model *m = w->jaeger->model;
    GArray *times = g_array_new(FALSE, FALSE, sizeof(request_summary));
    model_lock(m);
    const request_list *l = model_requests(m);
    for (uint32_t i = 0; l != NULL && i < l->count; i++)
        if (request_list_at(l, i)->name_hash == hash)
            g_array_append_val(times, *request_list_at(l, i));
    const bool is_complete = l != NULL && l->dropped == 0 && model_requests_progress(m) >= 1;
    model_unlock(m);
    for (guint i = times->len; i > 0 && w->found->len == 0 && !is_late(w); i--) {
        const request_summary *r = &g_array_index(times, request_summary, i - 1);
        walk_part(w, r->start_ns, r->start_ns + 1, r->duration_ns);
    }
    g_array_free(times, TRUE);
    return is_complete;
}

static void find_trace(walk *w)
{
    /* The number that replaces a missing identifier is the last half of the trace ID (span_ids_make_trace). */
    char made[OTLP_TRACE_DIGITS + 1];
    const uint64_t number =
        strlen(w->trace) == OTLP_TRACE_DIGITS ? g_ascii_strtoull(w->trace + OTLP_TRACE_DIGITS / 2, NULL, 16) : 0;
    span_ids_make_trace(number, made);
    const bool is_made = number <= UINT32_MAX && g_ascii_strcasecmp(made, w->trace) == 0;
    const bool is_complete = walk_listed(w, is_made ? (uint32_t)number : request_name_hash(w->trace));
    if (w->found->len == 0 && !is_complete && !is_late(w))
        walk_range(w, INT64_MIN / 2, INT64_MAX / 2);
}

static walk walk_new(jaeger *j, size_t limit, gint64 time_us)
{
    return (walk){.jaeger = j,
                  .limit = limit,
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

/* Reads the newest requests if their names are not known, or were read long ago. */
static void find_names(jaeger *j)
{
    const gint64 now_us = g_get_monotonic_time();
    if (j->named_us != 0 && now_us < j->named_us + NAMES_AGE_US)
        return;
    walk w = walk_new(j, 0, NAMES_US);
    walk_range(&w, INT64_MIN / 2, INT64_MAX / 2);
    walk_clear(&w);
    j->named_us = now_us;
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
    *body = jaeger_document(data, count, HTTP_OK, NULL);
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
    *body = jaeger_document(data, count, HTTP_OK, NULL);
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
        char *end;
        const double number = g_ascii_isdigit(*at) || *at == '.' ? g_ascii_strtod(at, &end) : NAN;
        size_t i = 0, size = 0;
        if (isnan(number) || end == at)
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

/* Adds the tags of a JSON object such as {"http.status_code": "500"}. Returns the object, which owns the texts, or NULL
 * if it is invalid. */
static json_object *parse_tags(const char *text, jaeger_search *q)
{
    json_object *o = json_tokener_parse(text);
    if (!json_object_is_type(o, json_type_object)) {
        json_object_put(o);
        return NULL;
    }
    json_object_object_foreach(o, name, value) if (q->tag_count < JAEGER_TAGS_MAX) q->tags[q->tag_count++] =
        (jaeger_tag){name, json_object_get_string(value)};
    return o;
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
        return fail(HTTP_BAD_REQUEST, "invalid tags; use a JSON object such as {\"error\":\"true\"}", body);
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
        w.trace = only != NULL ? only : p[i].value;
        find_trace(&w);
        all.problem = w.problem != NULL ? w.problem : all.problem;
        for (guint t = 0; t < w.found->len; t++) {
            found_trace taken = g_array_index(w.found, found_trace, t);
            json_object_get(taken.trace);
            add_found(&all, taken);
        }
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
    g_mutex_lock(&j->lock);
    const unsigned status = dispatch(j, path + strlen(JAEGER_PATH), parameters, count, body);
    g_mutex_unlock(&j->lock);
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
