#include "config.h"

#include "model/search.h"

#include "model/scan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { MATCHES_MAX = 1 << 24 };

typedef struct match {
    int64_t time_ns;
    uint64_t place;
} match;

struct search {
    model *model;
    bool of_requests;  /* the loader's thread finds the matches, and this search has no thread */
    nl_filter *filter; /* NULL: of_requests */
    spec *spec;        /* an empty spec, because a search needs only the times and places of records */
    batch_names names;
    GArray *jobs; /* scan_job */
    pthread_t thread;
    atomic_bool stopping, done;
    atomic_ullong done_bytes, all_bytes;
    pthread_mutex_t lock; /* protects matches */
    GArray *matches;      /* match, in order of time */
    bool sorted;
};

static bool take_part(void *user, scan_part *part)
{
    search *s = user;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < part->rows.count && s->matches->len < MATCHES_MAX; i++) {
        const batch_row *row = &part->rows.rows[i];
        match m = {row->time_ns, row->place};
        s->sorted = s->sorted && (s->matches->len == 0 ||
                                  g_array_index(s->matches, match, s->matches->len - 1).time_ns <= row->time_ns);
        g_array_append_val(s->matches, m);
    }
    s->stopping = s->stopping || s->matches->len == MATCHES_MAX;
    pthread_mutex_unlock(&s->lock);
    s->done_bytes += part->end - part->from;
    return !s->stopping;
}

static void *search_run(void *user)
{
    search *s = user;
    for (guint i = 0; i < s->jobs->len && !s->stopping; i++)
        scan_run(&g_array_index(s->jobs, scan_job, i), take_part, s);
    s->done = true;
    return NULL;
}

static search *search_make(model *m)
{
    search *s = g_new0(search, 1);
    s->model = m;
    s->matches = g_array_new(FALSE, FALSE, sizeof(match));
    s->sorted = true;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static search *search_requests(model *m, const char *expression)
{
    request_filter *filter = NULL;
    if (!request_filter_narrow(&filter, expression))
        return NULL;
    search *s = search_make(m);
    s->of_requests = true;
    model_find_requests(m, filter);
    return s;
}

search *search_new(model *m, const char *expression)
{
    if (request_filter_selects_requests(expression))
        return search_requests(m, expression);
    nl_filter *filter = nl_filter_parse(expression);
    if (filter == NULL)
        return NULL;
    search *s = search_make(m);
    s->filter = filter;
    s->names = (batch_names){names_new(), names_new(), names_new(), names_new()};
    drawing *nothing = drawing_new();
    s->spec = spec_new(nothing, s->names.events, 0);
    drawing_free(nothing);
    model_lock(m);
    s->jobs = model_jobs(m);
    model_unlock(m);
    for (guint i = 0; i < s->jobs->len; i++) {
        scan_job *job = &g_array_index(s->jobs, scan_job, i);
        job->spec = s->spec;
        job->names = s->names;
        job->filter = s->filter;
        s->all_bytes += job->to - job->from;
    }
    int error = pthread_create(&s->thread, NULL, search_run, s);
    if (error != 0)
        program_fail(PROGRAM_PROBLEM, "cannot start a thread: %s", strerror(error));
    return s;
}

void search_free(search *s)
{
    if (s == NULL)
        return;
    s->stopping = true;
    if (s->of_requests) {
        model_find_requests(s->model, NULL);
    } else {
        pthread_join(s->thread, NULL);
        nl_filter_free(s->filter);
        spec_free(s->spec);
        names_free(s->names.events);
        names_free(s->names.hosts);
        names_free(s->names.progs);
        names_free(s->names.colors);
        g_array_free(s->jobs, TRUE);
    }
    g_array_free(s->matches, TRUE);
    pthread_mutex_destroy(&s->lock);
    g_free(s);
}

/* If the loader's thread has finished, copies the requests that it has found to s->matches. */
static void take_found(search *s)
{
    model_lock(s->model);
    const GArray *found = model_found_requests(s->model);
    for (guint i = 0; found != NULL && i < MIN(found->len, MATCHES_MAX); i++) {
        const request_match *r = &g_array_index(found, request_match, i);
        const match m = {r->time_ns, r->place};
        g_array_append_val(s->matches, m);
    }
    s->done = found != NULL;
    model_unlock(s->model);
}

bool search_is_done(search *s)
{
    if (s->of_requests && !s->done)
        take_found(s);
    return s->done;
}

double search_progress(search *s)
{
    if (s->of_requests)
        return s->done ? 1 : model_find_progress(s->model);
    uint64_t all = s->all_bytes, done = s->done_bytes;
    return s->done || all == 0 ? 1 : (double)done / (double)all;
}

size_t search_count(search *s)
{
    pthread_mutex_lock(&s->lock);
    size_t count = s->matches->len;
    pthread_mutex_unlock(&s->lock);
    return count;
}

static gint by_time(gconstpointer a, gconstpointer b)
{
    const match *first = a, *second = b;
    return (first->time_ns > second->time_ns) - (first->time_ns < second->time_ns);
}

static uint32_t record_of(const store *s, const match *m)
{
    for (uint32_t r = store_find_time(s, m->time_ns); r < s->count && store_time(s, r) == m->time_ns; r++)
        if (store_place(s, r) == m->place)
            return r;
    return STORE_NONE;
}

bool search_next(search *s, int64_t time_ns, bool backwards, int64_t *found_ns, uint32_t *record, size_t *number)
{
    pthread_mutex_lock(&s->lock);
    if (!s->sorted)
        g_array_sort(s->matches, by_time);
    s->sorted = true;
    guint low = 0, high = s->matches->len;
    while (low < high) { /* find the first match after the time; for a search backwards, find the first match at or
                            after the time */
        guint middle = low + (high - low) / 2;
        int64_t own = g_array_index(s->matches, match, middle).time_ns;
        if (backwards ? own < time_ns : own <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = backwards ? low > 0 : low < s->matches->len;
    if (found) {
        match m = g_array_index(s->matches, match, backwards ? low - 1 : low);
        *found_ns = m.time_ns;
        *record = record_of(model_store(s->model), &m);
        *number = backwards ? low : low + 1;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}
