#include "config.h"

#include "model/request_list.h"

#include "base/hash_bytes.h"
#include "model/batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const request_choice request_choice_all = {INT64_MIN, INT64_MAX, -INFINITY, INFINITY, false, NULL};

request_list *request_list_new(uint32_t max)
{
    request_list *l = g_new0(request_list, 1);
    l->chunks = g_ptr_array_new_with_free_func(g_free);
    l->max = max;
    l->names = names_new();
    heat_map_init(&l->heat);
    return l;
}

void request_list_free(request_list *l)
{
    if (l == NULL)
        return;
    g_ptr_array_free(l->chunks, TRUE);
    names_free(l->names);
    heat_map_clear(&l->heat);
    for (unsigned i = 0; i < MIN(l->log_count, REQUEST_LOGS_MAX); i++)
        heat_map_clear(&l->logs[i].heat);
    g_free(l);
}

static request_summary *own_request(request_list *l, uint32_t i)
{
    return (request_summary *)g_ptr_array_index(l->chunks, i / REQUEST_LIST_CHUNK) + i % REQUEST_LIST_CHUNK;
}

/* ---- adding ---- */

/*
 * Drops the faster half of the requests that have no error.
 */
static void drop_fast(request_list *l)
{
    uint64_t counts[HEAT_ROWS] = {0};
    for (uint32_t i = 0; i < l->count; i++)
        counts[heat_row(request_list_at(l, i)->duration_ns)] += request_list_at(l, i)->errors == 0;
    const double median_ns = heat_quantile(counts, 0.5);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < l->count; i++)
        if (request_list_at(l, i)->errors != 0 || (double)request_list_at(l, i)->duration_ns > median_ns)
            *own_request(l, kept++) = *request_list_at(l, i);
    if (kept > l->max / 8 * 7) { /* nearly all requests have errors, so keep only the newest requests */
        kept = l->count / 2;
        for (uint32_t i = 0; i < kept; i++)
            *own_request(l, i) = *request_list_at(l, l->count - kept + i);
    }
    l->dropped += l->count - kept;
    l->count = kept;
}

/* Counts a request in the heat map of its log. */
static void count_by_log(request_list *l, const request_summary *request)
{
    const unsigned file = place_file(request->step_place);
    unsigned i = 0;
    while (i < MIN(l->log_count, REQUEST_LOGS_MAX) && l->logs[i].file != file)
        i++;
    if (i == REQUEST_LOGS_MAX) {
        l->log_count = REQUEST_LOGS_MAX + 1;
        return;
    }
    request_log *log = &l->logs[i];
    if (i == l->log_count) {
        l->log_count++;
        log->file = file;
        log->first = *request;
        heat_map_init(&log->heat);
    }
    heat_map_add(&log->heat, request->start_ns, request->duration_ns, request->errors != 0);
}

void request_list_append(request_list *l, const request_summary *request)
{
    if (l->count == l->max)
        drop_fast(l);
    if (l->count == l->chunks->len * REQUEST_LIST_CHUNK)
        g_ptr_array_add(l->chunks, g_new(request_summary, REQUEST_LIST_CHUNK));
    *own_request(l, l->count++) = *request;
    heat_map_add(&l->heat, request->start_ns, request->duration_ns, request->errors != 0);
    if (l->by_log)
        count_by_log(l, request);
}

uint32_t request_name_hash(const char *name)
{
    return (uint32_t)hash_bytes(0, name, strlen(name));
}

const char *request_errors_text(uint8_t errors)
{
    static const char *const texts[] = {"", "failed", "incomplete", "failed, incomplete"};
    return texts[errors & (REQUEST_FAILED | REQUEST_INCOMPLETE)];
}

static int compare_places(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint8_t request_list_find_errors(const request_list *l, uint8_t lifeline, const GArray *places, bool *is_listed)
{
    const uint64_t *all = (const uint64_t *)(const void *)places->data;
    uint8_t errors = 0;
    *is_listed = false;
    for (uint32_t i = 0; i < l->count && places->len > 0; i++) {
        const request_summary *r = request_list_at(l, i);
        if (r->lifeline != lifeline || r->step_place < all[0] || r->step_place > all[places->len - 1] ||
            bsearch(&r->step_place, all, places->len, sizeof *all, compare_places) == NULL)
            continue;
        errors |= r->errors;
        *is_listed = true;
    }
    return errors;
}

/* ---- choosing and sorting ---- */

/*
 * Returns an array, indexed by the number of a name, that shows which span names contain `folded`, ignoring case.
 * `folded` is casefolded. The caller frees the array with g_free.
 */
static bool *names_that_contain(const request_list *l, const char *folded)
{
    const size_t count = names_count(l->names);
    bool *found = g_new0(bool, count + 1);
    for (size_t i = 0; i < count; i++) {
        char *name = g_utf8_casefold(names_text(l->names, (uint16_t)i), -1);
        found[i] = strstr(name, folded) != NULL;
        g_free(name);
    }
    return found;
}

/* A choice, with data derived from its text for fast comparisons. */
typedef struct chooser {
    const request_choice *choice;
    bool has_text;
    bool *names; /* indexed by the number of a span's name: whether the name matches */
    size_t name_count;
    uint32_t hash;
    uint8_t errors; /* the reasons of errors whose names match */
} chooser;

static chooser chooser_begin(const request_list *l, const request_choice *choice)
{
    chooser c = {.choice = choice, .has_text = choice->text != NULL && *choice->text != '\0'};
    if (!c.has_text)
        return c;
    char *folded = g_utf8_casefold(choice->text, -1);
    c.name_count = names_count(l->names);
    c.names = names_that_contain(l, folded);
    c.hash = request_name_hash(choice->text);
    c.errors = (strstr("failed", folded) != NULL ? REQUEST_FAILED : 0) |
               (strstr("incomplete", folded) != NULL ? REQUEST_INCOMPLETE : 0);
    g_free(folded);
    return c;
}

static bool chooser_matches(const chooser *c, const request_summary *r)
{
    const request_choice *choice = c->choice;
    if (r->start_ns < choice->from_ns || r->start_ns >= choice->to_ns || (double)r->duration_ns < choice->shortest_ns ||
        (double)r->duration_ns >= choice->longest_ns || (choice->only_errors && r->errors == 0))
        return false;
    return !c->has_text || r->name_hash == c->hash || (r->errors & c->errors) != 0 ||
           (r->slowest < c->name_count && c->names[r->slowest]);
}

typedef struct sorted_request {
    int64_t key, duration_ns;
    uint32_t index;
} sorted_request;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns the alphabetical rank of each name, indexed by the name's number. */
static uint16_t *rank_names(const request_list *l)
{
    const size_t count = names_count(l->names);
    GPtrArray *sorted = g_ptr_array_new();
    for (size_t i = 0; i < count; i++)
        g_ptr_array_add(sorted, (gpointer)names_text(l->names, (uint16_t)i));
    g_ptr_array_sort(sorted, by_text);
    uint16_t *ranks = g_new0(uint16_t, NAMES_NONE + 1);
    for (size_t i = 0; i < count; i++)
        ranks[names_find(l->names, g_ptr_array_index(sorted, i))] = (uint16_t)i;
    g_ptr_array_free(sorted, TRUE);
    return ranks;
}

static int64_t key_of(const request_summary *r, request_column column, const uint16_t *ranks)
{
    switch (column) {
    case REQUEST_BY_START:
        return r->start_ns;
    case REQUEST_BY_SLOWEST:
        return ranks[r->slowest];
    case REQUEST_BY_SHARE:
        return r->share;
    case REQUEST_BY_POSITION:
        return r->position;
    case REQUEST_BY_HOSTS:
        return r->host_count;
    case REQUEST_BY_ERROR:
        return r->errors & REQUEST_FAILED ? 2 : r->errors != 0;
    default:
        return r->duration_ns;
    }
}

/* Returns whether a comes before b: the larger key comes first, then the longer duration, then the earlier request. */
static bool comes_first(const sorted_request *a, const sorted_request *b)
{
    if (a->key != b->key)
        return a->key > b->key;
    if (a->duration_ns != b->duration_ns)
        return a->duration_ns > b->duration_ns;
    return a->index < b->index;
}

static int by_key(const void *a, const void *b)
{
    return comes_first(b, a) - comes_first(a, b);
}

/* Restores the heap after a change of the element at index `at`. The first element of the heap is the last in the
 * order. */
static void sink(sorted_request *heap, size_t count, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && comes_first(&heap[child], &heap[child + 1]))
            child++;
        if (!comes_first(&heap[at], &heap[child]))
            return;
        const sorted_request moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

/* Adds a request to `heap` if the request is among the first `max` requests in the order. The array becomes a heap when
 * it is full. */
static void keep_first(sorted_request *heap, size_t *count, size_t max, const sorted_request *request)
{
    if (*count < max) {
        heap[(*count)++] = *request;
        for (size_t at = *count / 2; *count == max && at-- > 0;)
            sink(heap, *count, at);
    } else if (max > 0 && comes_first(request, &heap[0])) {
        heap[0] = *request;
        sink(heap, *count, 0);
    }
}

size_t request_list_sort(const request_list *l, const request_choice *choice, request_column column, bool descending,
                         size_t max, uint32_t **found)
{
    const chooser c = chooser_begin(l, choice);
    uint16_t *ranks = column == REQUEST_BY_SLOWEST ? rank_names(l) : NULL;
    sorted_request *heap = g_new(sorted_request, MIN(max, l->count) + 1);
    size_t count = 0, all = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        const request_summary *r = request_list_at(l, i);
        if (!chooser_matches(&c, r))
            continue;
        all++;
        const int64_t key = key_of(r, column, ranks);
        keep_first(heap, &count, max, &(sorted_request){descending ? key : -key, r->duration_ns, i});
    }
    qsort(heap, count, sizeof *heap, by_key);
    *found = g_new(uint32_t, count + 1);
    for (size_t i = 0; i < count; i++)
        (*found)[i] = heap[i].index;
    g_free(heap);
    g_free(ranks);
    g_free(c.names);
    return all;
}
