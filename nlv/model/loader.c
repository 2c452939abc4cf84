#include "config.h"

#include "model/loader.h"

#include "base/error.h"
#include "base/time_internal.h"
#include "model/checks.h"
#include "model/clock_learning.h"
#include "model/full_store.h"
#include "model/index_keeper.h"
#include "model/request_reading.h"
#include "model/subset.h"
#include "requests/request_reader.h"

#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WAIT_MS = 20,
    LIVE_MEMORY_MAX = 1 << 30,
    THREADS_PAUSE_FACTOR = 10, /* minimum pause after publishing threads, as a multiple of the time it took */
    THREADS_FIRST_US = 100000, /* time of reading after which nlv shows the first threads */
};

struct loader {
    model *model;
    program_reading *reading;
    pthread_mutex_t lock; /* protects fresh */
    GPtrArray *fresh;     /* source: sources that have been added but not read yet */
    GPtrArray *sources;   /* source */
    inference *inference;
    index_keeper *keeper;
    full_store *full;
    request_reading *requests;
    request_reading *selecting;     /* finds the requests that the filter selects */
    bool is_selecting;              /* the store does not yet have all selected records */
    bool selects_requests;          /* the filter selects requests; otherwise, it selects records */
    bool lacks_requests;            /* the logs have no requests, as far as nlv has read them without a filter */
    bool is_outdated;               /* the store still has the records of the previous filter */
    request_reading *finding;       /* finds the requests of model_find_requests */
    bool is_finding;                /* the search has not reached the ends of all logs */
    request_reading *comparing;     /* reads the requests of a side of model_compare */
    compare_query *query;           /* NULL: no comparison is running */
    comparison *comparison;         /* the comparison of `query` */
    unsigned side;                  /* the side that `comparing` reads */
    bool restarts_comparison;       /* the times of records or the drawing have changed during the comparison */
    GPtrArray *side_sources;        /* the logs of this side */
    request_reading *threading;     /* reads the spans and states of threads */
    bool is_threading;              /* `threading` has begun */
    bool has_shown_threads;         /* the model has all threads that `threading` has read */
    gint64 threads_paused_until_us; /* a growing log must not make the loader publish all the time */
    int64_t threads_shown_us;       /* time that `threading` had taken when the model last received its threads */
    atomic_bool has_nanoseconds;    /* see request_duration */
    bool reads_nanoseconds;         /* all records of the store were read with has_nanoseconds */
    model_options options;
    size_t memory_max; /* bytes */
    bool is_live;      /* a source that is not a file may still deliver records */
    bool is_full;      /* reading has ended, because the memory limit is reached and no more records can be dropped */
    bool has_told_missing, is_checked;
    bool is_unsettled;
    pthread_t thread;
    bool is_started;
    atomic_bool stopping;
};

/* ---- creation and destruction ---- */

static uint64_t new_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)g_get_monotonic_time();
    return seed;
}

store *loader_new_store(const drawing *d, bool looks_out)
{
    batch_names names = {names_new(), names_new(), names_new(), names_new()};
    return store_new(spec_new(d, names.events, new_seed()), names, looks_out);
}

static size_t half_of_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_size > 0 ? (size_t)pages / 2 * (size_t)page_size : (size_t)LIVE_MEMORY_MAX;
}

loader *loader_new(model *m, const drawing *given, program_reading *reading)
{
    loader *l = g_new0(loader, 1);
    l->model = m;
    l->reading = reading;
    pthread_mutex_init(&l->lock, NULL);
    l->fresh = g_ptr_array_new_with_free_func((GDestroyNotify)source_close);
    l->sources = g_ptr_array_new_with_free_func((GDestroyNotify)source_close);
    l->inference = inference_new(given);
    l->keeper = index_keeper_new(0);
    l->full = full_store_new();
    l->requests = request_reading_new(m, reading);
    l->selecting = request_reading_new(m, reading);
    l->finding = request_reading_new(m, reading);
    l->comparing = request_reading_new(m, reading);
    l->threading = request_reading_new(m, reading);
    l->side_sources = g_ptr_array_new();
    l->memory_max = half_of_memory();
    return l;
}

void loader_free(loader *l)
{
    l->stopping = true;
    if (l->is_started)
        pthread_join(l->thread, NULL);
    request_reading_free(l->requests);
    request_reading_free(l->selecting);
    request_reading_free(l->finding);
    request_reading_free(l->comparing);
    request_reading_free(l->threading);
    compare_query_free(l->query);
    comparison_free(l->comparison);
    g_ptr_array_free(l->side_sources, TRUE);
    g_ptr_array_free(l->fresh, TRUE);
    g_ptr_array_free(l->sources, TRUE);
    inference_free(l->inference);
    index_keeper_free(l->keeper);
    full_store_free(l->full, model_own_store(l->model));
    pthread_mutex_destroy(&l->lock);
    g_free(l);
}

void loader_set_options(loader *l, const model_options *options)
{
    l->options = *options;
    l->memory_max = options->memory_max > 0 ? options->memory_max : half_of_memory();
    request_reading_set_memory(l->requests, l->memory_max);
    request_reading_set_memory(l->selecting, l->memory_max);
    request_reading_set_memory(l->finding, l->memory_max);
    request_reading_set_memory(l->comparing, l->memory_max);
    request_reading_set_memory(l->threading, l->memory_max);
    index_keeper_free(l->keeper);
    l->keeper = index_keeper_new(options->index_size);
}

program_reading *loader_reading(const loader *l)
{
    return l->reading;
}

void loader_add_source(loader *l, source *s)
{
    pthread_mutex_lock(&l->lock);
    g_ptr_array_add(l->fresh, s);
    pthread_mutex_unlock(&l->lock);
}

/* ---- reading state ---- */

static bool has_filter(const loader *l)
{
    return model_current_filters(l->model) != NULL;
}

/* Returns whether nlv has searched all logs for requests without finding any. */
static bool has_no_requests(const loader *l)
{
    const request_list *requests = model_requests(l->model);
    return requests != NULL && requests->heat.count == 0 && model_requests_progress(l->model) >= 1;
}

static void loader_changed(loader *l)
{
    l->is_unsettled = true;
    model_changed(l->model, false);
}

/* Returns the only log if it is large enough for an index; otherwise NULL. */
static source *indexed_source(const loader *l)
{
    if (has_filter(l) || model_clocks(l->model) != NULL || model_zones(l->model) != NULL || l->options.no_index ||
        l->is_full || store_missing(model_own_store(l->model)) > 0 || l->sources->len != 1)
        return NULL;
    source *s = g_ptr_array_index(l->sources, 0);
    return index_keeper_wants(l->keeper, s) ? s : NULL;
}

static void count_bytes(loader *l)
{
    uint64_t done = 0, all = 0;
    for (guint i = 0; i < l->sources->len; i++) {
        done += source_done(g_ptr_array_index(l->sources, i));
        all += source_size(g_ptr_array_index(l->sources, i));
    }
    if (l->is_selecting && done >= all)
        done = MIN(request_reading_bytes(l->selecting), all - MIN(all, 1));
    model_set_progress(l->model, done, l->is_full ? done : MAX(all, done));
}

static void set_full(loader *l, bool is_full)
{
    l->is_full = is_full;
    model_set_limit(l->model, l->memory_max, l->is_live, is_full);
}

static void begin_selecting(loader *l)
{
    const filters *f = model_current_filters(l->model);
    l->is_outdated = false;
    l->is_selecting = f != NULL && f->requests != NULL;
    /* in logs without requests, a filter on records takes less time if it selects records */
    l->selects_requests = l->is_selecting && (f->direct == NULL || !l->lacks_requests);
    request_reading_select(l->selecting, f != NULL ? f->requests : NULL);
    request_reading_list(l->requests, f != NULL ? f->requests : NULL);
    if (l->is_live) /* keep the old list, because the new list of a live source may never be complete */
        request_reading_restart(l->requests);
}

/* Begins to read all logs again for the drawing d, and takes ownership of d. If `tries` is true, the store may come
 * from an index. */
static void read_again(loader *l, drawing *d, colors_mode mode, bool tries)
{
    store *fresh = loader_new_store(d, inference_is_active(l->inference));
    l->restarts_comparison = l->query != NULL;
    full_store_forget(l->full, model_own_store(l->model));
    request_reading_restart(l->requests);
    l->is_threading = false;
    l->lacks_requests = false; /* the lifelines of the drawing may be new */
    begin_selecting(l);
    index_keeper_reset(l->keeper, tries);
    l->has_told_missing = false;
    set_full(l, false);
    store_free(model_replace_store(l->model, fresh, d, mode));
    for (guint i = 0; i < l->sources->len; i++)
        source_rewind(g_ptr_array_index(l->sources, i));
    loader_changed(l);
}

/* ---- memory ---- */

static size_t memory_besides_store(const loader *l)
{
    const GPtrArray *files = model_files(l->model);
    const store *full = full_store_get(l->full);
    size_t sum = full != NULL && full != model_own_store(l->model) ? store_memory(full) : 0;
    for (guint i = 0; i < files->len; i++)
        sum += ((const log_file *)g_ptr_array_index(files, i))->blocks->len * sizeof(log_block);
    return sum;
}

/* Frees the disk space of dropped records in spills. */
static void forget_bytes(loader *l)
{
    const store *s = model_own_store(l->model);
    unsigned file = place_file(store_place(s, s->first));
    uint64_t first_left = UINT64_MAX;
    for (uint32_t record = s->first; record < MIN(s->count, s->first + STORE_CHUNK); record++)
        if (place_file(store_place(s, record)) == file)
            first_left = MIN(first_left, place_position(store_place(s, record)));
    log_file_forget(g_ptr_array_index(model_files(l->model), file), first_left);
}

/* If the loader uses more memory than the limit, drops the full store and then the oldest records. The caller holds the
 * lock. */
static void keep_within_memory(loader *l)
{
    store *s = model_own_store(l->model);
    if (memory_besides_store(l) + store_memory(s) <= l->memory_max)
        return;
    full_store_forget(l->full, s);
    size_t others = memory_besides_store(l);
    uint32_t first = s->first;
    bool shrunk = others < l->memory_max && store_shrink(s, l->memory_max - others);
    if (shrunk && s->first > first)
        forget_bytes(l);
    set_full(l, !shrunk);
}

/* ---- reading ---- */

static void take_rows(loader *l, batch *rows)
{
    if (rows->count == 0)
        return;
    model_lock(l->model);
    store_append(model_own_store(l->model), rows);
    keep_within_memory(l);
    model_add_found_points(l->model);
    model_assign_colors(l->model, COLORS_MORE, true);
    model_unlock(l->model);
    loader_changed(l);
}

static void note_scanned(loader *l, const source *s)
{
    model_lock(l->model);
    log_file *f = source_file(s);
    f->scanned = MAX(f->scanned, s->at);
    model_unlock(l->model);
}

typedef struct part_reading {
    loader *loader;
    source *source;
    extractor *extractor;
    bool met_nul;
} part_reading;

/* Returns whether records were read before nlv knew that durations without a unit are in nanoseconds. */
static bool has_new_unit(const loader *l)
{
    return model_has_nanoseconds(l->model) && !l->reads_nanoseconds;
}

static bool take_part(void *user, scan_part *part)
{
    part_reading *r = user;
    loader *l = r->loader;
    if (part->met_nul) {
        r->met_nul = true;
        return false;
    }
    source_decode_odd(r->source, part, r->extractor);
    if (part->end > part->from) {
        r->source->at = part->end;
        if (part->print != 0)
            prints_add(&r->source->prints, part->from, part->end, part->print);
        note_scanned(l, r->source);
    }
    take_rows(l, &part->rows);
    count_bytes(l);
    return !l->stopping && !l->is_full && !model_has_request(l->model) && !has_new_unit(l);
}

static extractor *new_extractor(const loader *l, const source *s)
{
    const store *into = model_own_store(l->model);
    extractor *x = g_new0(extractor, 1);
    x->spec = into->spec;
    x->names = into->names;
    x->fraction = s->reading->fraction;
    const filters *f = model_current_filters(l->model);
    x->keeps_none = l->selects_requests;
    x->filter = f == NULL ? NULL : l->selects_requests ? f->shown : f->direct;
    x->clocks = model_clocks(l->model);
    x->zones = model_zones(l->model);
    x->has_nanoseconds = model_nanosecond_flag(l->model);
    x->log = source_file(s) != NULL ? source_file(s)->log : NULL;
    return x;
}

static void cut_blocks(loader *l, source *s)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(log_block));
    source_cut(s, found);
    model_lock(l->model);
    if (found->len > 0)
        log_file_add_blocks(source_file(s), found);
    keep_within_memory(l);
    model_unlock(l->model);
    g_array_free(found, TRUE);
}

static void scan_source(loader *l, source *s)
{
    const store *into = model_own_store(l->model);
    cut_blocks(l, s);
    scan_job job = source_job(s);
    part_reading r = {l, s, new_extractor(l, s), false};
    job.spec = into->spec;
    job.names = into->names;
    job.keeps_none = r.extractor->keeps_none;
    job.filter = r.extractor->filter;
    job.clocks = r.extractor->clocks;
    job.zones = r.extractor->zones;
    job.has_nanoseconds = model_nanosecond_flag(l->model);
    job.has_prints = indexed_source(l) == s;
    scan_run(&job, take_part, &r);
    g_free(r.extractor);
    if (r.met_nul) { /* the text has blocks between its lines */
        model_lock(l->model);
        source_expect_blocks(s);
        model_unlock(l->model);
        inference_restart(l->inference);
        read_again(l, drawing_copy(model_drawing(l->model)), COLORS_ANEW, false);
    }
}

/* Adds the records that `take` extracts from a feed, or from a last line that does not end with a newline. */
static void take_directly(loader *l, source *s, void (*take)(source *s, batch *rows, extractor *x))
{
    extractor *x = new_extractor(l, s);
    batch rows = {0};
    batch_clear(&rows, x->spec->layers);
    take(s, &rows, x);
    take_rows(l, &rows);
    batch_free(&rows);
    g_free(x);
}

/* Adds the files that a source has opened to the model, which numbers them. */
static void number_files(loader *l, const source *s)
{
    for (guint i = 0; i < s->files->len; i++) {
        log_file *f = g_ptr_array_index(s->files, i);
        if (f->is_numbered)
            continue;
        if (model_files(l->model)->len == PLACE_FILES_MAX)
            program_fail(PROGRAM_PROBLEM, "too many files");
        f->log = s->name;
        model_lock(l->model);
        model_add_file(l->model, f);
        model_unlock(l->model);
    }
}

/* Names a source after its file. If another source has this name, uses the whole URL. */
static void name_source(const loader *l, source *s)
{
    s->name = g_path_get_basename(s->url);
    for (guint i = 0; i < l->sources->len; i++)
        if (strcmp(((const source *)g_ptr_array_index(l->sources, i))->name, s->name) == 0) {
            g_free(s->name);
            s->name = g_strdup(s->url);
            return;
        }
}

static void take_over_sources(loader *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->fresh->len > 0) {
        source *s = g_ptr_array_steal_index(l->fresh, 0);
        l->is_live = l->is_live || (s->follow && s->path == NULL);
        name_source(l, s);
        g_ptr_array_add(l->sources, s);
        l->is_checked = false;
    }
    pthread_mutex_unlock(&l->lock);
    if (l->is_live && l->options.memory_max == 0)
        l->memory_max = MIN(l->memory_max, LIVE_MEMORY_MAX);
    request_reading_set_memory(l->requests, l->memory_max);
    request_reading_set_memory(l->selecting, l->memory_max);
    request_reading_set_memory(l->finding, l->memory_max);
    request_reading_set_memory(l->comparing, l->memory_max);
    request_reading_set_memory(l->threading, l->memory_max);
    set_full(l, l->is_full);
    for (guint i = 0; i < l->sources->len; i++)
        number_files(l, g_ptr_array_index(l->sources, i));
}

static bool is_empty_file(const source *s)
{
    GStatBuf status;
    return s->path != NULL && s->at == 0 && g_stat(s->path, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_size == 0;
}

/* Returns whether the log's last line had no newline at the latest reading. Ignores lines that were appended later. */
static bool has_incomplete_line(source *s)
{
    const log_file *f = source_file(s);
    return f != NULL && !f->is_spill && f->format != NL_FORMAT_NLB && log_file_size(f) > s->at &&
           source_look(s) == SOURCE_QUIET;
}

static void check_records(loader *l)
{
    const source *only = l->sources->len == 1 ? g_ptr_array_index(l->sources, 0) : NULL;
    GPtrArray *found = g_ptr_array_new();
    checks_add(model_own_store(l->model), model_drawing(l->model), only != NULL && only->path != NULL, found);
    for (guint i = 0; i < found->len; i++)
        model_tell(l->model, g_ptr_array_index(found, i));
    g_ptr_array_free(found, TRUE);
}

/* Reports anomalies of the logs after the first complete reading. */
static void check_logs(loader *l)
{
    if (l->is_checked || l->sources->len == 0 || has_filter(l))
        return;
    l->is_checked = true;
    for (guint i = 0; i < l->sources->len; i++) {
        source *s = g_ptr_array_index(l->sources, i);
        if (source_file(s) == NULL && s->path != NULL && !g_file_test(s->path, G_FILE_TEST_EXISTS))
            model_tell(l->model, g_strdup_printf("%s: no such file; nlv shows it when it appears", s->url));
        else if (is_empty_file(s))
            model_tell(l->model, g_strdup_printf("%s: the log is empty; nlv shows records as they arrive", s->url));
        else if (has_incomplete_line(s))
            model_tell(l->model,
                       g_strdup_printf("%s: the last line is incomplete; nlv shows it when it is complete", s->url));
    }
    check_records(l);
}

/* ---- filters, drawings and clocks ---- */

static bool has_read_all(const loader *l)
{
    for (guint i = 0; i < l->sources->len; i++)
        if (!source_has_read_all(g_ptr_array_index(l->sources, i)))
            return false;
    return l->sources->len > 0 && !l->is_full;
}

/* Keeps the store as the full store if it has all records and there is enough memory for another store. */
static void keep_full(loader *l)
{
    store *s = model_own_store(l->model);
    model_lock(l->model);
    store_settle(s);
    model_unlock(l->model);
    if (store_missing(s) == 0 && memory_besides_store(l) + store_memory(s) <= l->memory_max / 2)
        full_store_keep(l->full, s, l->sources);
}

/*
 * Applies the current filter without reading the logs, if the full store is sufficient. `places` contains the sorted
 * places of the records that the filter selects, or is NULL if the filter does not select requests. Returns whether it
 * applied the filter.
 */
static bool show_from_full(loader *l, const GArray *places)
{
    const filters *f = model_current_filters(l->model);
    const nl_filter *filter = f == NULL ? NULL : places != NULL ? f->shown : f->direct;
    store *full = full_store_get(l->full);
    const bool is_none = f != NULL && places == NULL &&
                         filter == NULL; /* the filter selects only requests, and the log has no requests */
    if (full == NULL || is_none || (filter != NULL && !subset_is_enough(filter)))
        return false;
    drawing *d = drawing_copy(model_drawing(l->model));
    store *fresh = f == NULL ? full : subset_new(full, filter, places, d, &l->stopping);
    if (fresh == NULL) {
        drawing_free(d);
        return false;
    }
    store *old = model_replace_store(l->model, fresh, d, COLORS_AGAIN);
    if (old != full)
        store_free(old);
    full_store_skip(l->full, l->sources);
    index_keeper_pause(l->keeper);
    return true;
}

/* Replaces the store with an empty store. Keeps the full store. */
static void show_nothing(loader *l)
{
    drawing *d = drawing_copy(model_drawing(l->model));
    store *old = model_replace_store(l->model, loader_new_store(d, inference_is_active(l->inference)), d, COLORS_AGAIN);
    if (old != full_store_get(l->full))
        store_free(old);
    l->has_told_missing = l->is_outdated = false;
    set_full(l, false);
    index_keeper_pause(l->keeper);
}

/* Starts to read the logs again for the current filter. Keeps the full store. */
static void read_for_filter(loader *l)
{
    if (full_store_get(l->full) == NULL || !has_filter(l)) {
        read_again(l, drawing_copy(model_drawing(l->model)), COLORS_AGAIN, !has_filter(l));
        return;
    }
    show_nothing(l);
    for (guint i = 0; i < l->sources->len; i++)
        source_rewind(g_ptr_array_index(l->sources, i));
}

static void take_over_filter(loader *l, char *former)
{
    if (full_store_get(l->full) == NULL && former == NULL && !l->is_live && has_read_all(l))
        keep_full(l);
    l->lacks_requests = former == NULL ? has_no_requests(l) : l->lacks_requests;
    begin_selecting(l);
    l->is_outdated = l->selects_requests && full_store_get(l->full) != NULL;
    if (l->is_outdated)
        full_store_skip(l->full, l->sources); /* keep the picture until the requests have been selected */
    else if (l->selects_requests || !show_from_full(l, NULL))
        read_for_filter(l);
    inference_settle(l->inference, 0);
    loader_changed(l);
    g_free(former);
}

/* The arguments of extract_selected for a record that the filter has selected. */
typedef struct selected_record {
    extractor *extractor;
    uint64_t place;
    batch *rows;
} selected_record;

static void extract_selected(void *user, const nl_record *record)
{
    const selected_record *s = user;
    extract(s->extractor, record, s->place, s->rows);
}

/*
 * Adds the rows of selected records that the store does not have. The search does not find the late records in the
 * store. However, the function adds no late record twice, because late records come only from the current call of
 * add_selected, which passes each record once.
 */
static void take_new_rows(loader *l, batch *rows)
{
    const store *s = model_own_store(l->model);
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        if (store_find_place(s, rows->rows[i].time_ns, rows->rows[i].place) != STORE_NONE)
            continue;
        rows->rows[kept] = rows->rows[i];
        memmove(&rows->steps[kept * rows->layers], &rows->steps[i * rows->layers], rows->layers * sizeof *rows->steps);
        kept++;
    }
    rows->count = kept;
    take_rows(l, rows);
}

/* Adds the records at `places` that the store does not have. */
static void add_selected(loader *l, const GArray *places)
{
    enum { ROWS_AT_ONCE = 1 << 13 };
    const filters *f = model_current_filters(l->model);
    const GPtrArray *files = model_files(l->model);
    const store *into = model_own_store(l->model);
    batch rows = {0};
    batch_clear(&rows, into->spec->layers);
    extractor *x = g_new0(extractor, 1);
    *x = (extractor){.spec = into->spec,
                     .filter = f->shown,
                     .clocks = model_clocks(l->model),
                     .zones = model_zones(l->model),
                     .has_nanoseconds = model_nanosecond_flag(l->model),
                     .names = into->names};
    model_lock(l->model);
    store_settle(model_own_store(l->model));
    model_unlock(l->model);
    for (guint i = 0; i < places->len && !l->stopping && !l->is_full && !model_has_request(l->model); i++) {
        selected_record s = {x, g_array_index(places, uint64_t, i), &rows};
        log_file *file = g_ptr_array_index(files, place_file(s.place));
        x->fraction = file->fraction;
        x->log = file->log;
        log_file_record(file, place_position(s.place), extract_selected, &s);
        if (rows.count == ROWS_AT_ONCE) {
            take_new_rows(l, &rows);
            batch_clear(&rows, into->spec->layers);
        }
    }
    take_new_rows(l, &rows);
    batch_free(&rows);
    g_free(x);
}

/* Shows the records that the filter has selected since the last call. `is_complete` is true if the filter has processed
 * all records that the loader has read. */
static void show_selected(loader *l, bool is_complete)
{
    GArray *places = request_reading_take_selected(l->selecting);
    const bool changes = places->len > 0 || (is_complete && l->is_selecting);
    const bool is_shown = is_complete && l->is_outdated && show_from_full(l, places);
    if (l->is_outdated && !is_shown && changes)
        show_nothing(l);
    if (!is_shown && places->len > 0)
        add_selected(l, places);
    g_array_free(places, TRUE);
    l->is_outdated = l->is_outdated && !changes;
    l->is_selecting = l->is_selecting && !is_complete;
    count_bytes(l);
    if (changes)
        loader_changed(l);
}

/* Continues the selection of requests for some milliseconds, if the filter selects requests. Returns whether work
 * remains. */
static bool select_some(loader *l)
{
    if (l->sources->len == 0 || !l->selects_requests) {
        l->is_selecting = false;
        return false;
    }
    const bool more = request_reading_step(l->selecting, l->sources, l->is_live);
    if (more && !request_reading_is_full(l->selecting))
        count_bytes(l);
    else
        show_selected(l, !more);
    return more;
}

/* Continues the search of model_find_requests for some milliseconds. Returns whether work remains. */
static bool find_some(loader *l)
{
    const request_filter *filter;
    if (model_take_find(l->model, &filter)) {
        request_reading_find(l->finding, filter);
        l->is_finding = filter != NULL;
    }
    if (!l->is_finding)
        return false;
    uint64_t all = 0;
    for (guint i = 0; i < l->sources->len; i++)
        all += source_size(g_ptr_array_index(l->sources, i));
    if (request_reading_step(l->finding, l->sources, false)) {
        model_set_find_progress(l->model, (double)request_reading_bytes(l->finding) / (double)MAX(all, 1));
        return true;
    }
    uint64_t unlisted;
    GArray *found = request_reading_take_matches(l->finding, &unlisted);
    if (unlisted > 0)
        model_tell(l->model, g_strdup_printf("The memory limit is reached: the search shows %u of %" G_GUINT64_FORMAT
                                             " requests; make the expression more specific, or raise --max-memory",
                                             found->len, found->len + unlisted));
    model_set_found(l->model, found);
    request_reading_find(l->finding, NULL);
    l->is_finding = false;
    return false;
}

/* Returns whether the log of the source with the index i belongs to the current side of the query. */
static bool is_of_side(const loader *l, guint i)
{
    const compare_query_side *side = &l->query->sides[l->side];
    const source *s = g_ptr_array_index(l->sources, i);
    if (l->query->is_by_position)
        return i == l->side;
    if (side->log == NULL)
        return true;
    char *base = g_path_get_basename(s->url);
    const bool is_named = strcmp(side->log, base) == 0 || strcmp(side->log, s->url) == 0;
    g_free(base);
    return is_named != side->excludes;
}

static void begin_side(loader *l, unsigned side)
{
    l->side = side;
    g_ptr_array_set_size(l->side_sources, 0);
    for (guint i = 0; i < l->sources->len; i++)
        if (is_of_side(l, i))
            g_ptr_array_add(l->side_sources, g_ptr_array_index(l->sources, i));
    request_reading_compare(l->comparing, l->query->sides[side].where, l->comparison, side);
}

static void begin_comparison(loader *l)
{
    const compare_query *query = l->query;
    comparison_free(l->comparison);
    const char *names[COMPARED_SIDES] = {query->sides[0].name, query->sides[1].name};
    for (guint i = 0; i < COMPARED_SIDES && query->is_by_position && i < l->sources->len; i++)
        names[i] = ((const source *)g_ptr_array_index(l->sources, i))->url;
    l->comparison = comparison_new(names);
    l->comparison->filter = g_strdup(query->filter);
    if (query->is_by_position && l->sources->len < COMPARED_SIDES)
        l->comparison->reason =
            g_strdup("There is only one log. Describe the requests to compare, or open another log.");
    l->restarts_comparison = false;
    begin_side(l, 0);
}

/* Begins the comparison of a query, and takes ownership of the query. */
static void take_over_query(loader *l, compare_query *query)
{
    compare_query_free(l->query);
    l->query = query;
    const bool is_narrowed = compare_query_narrow(query, model_current_filters(l->model));
    begin_comparison(l);
    if (!is_narrowed && l->comparison->reason == NULL)
        l->comparison->reason = g_strdup(nl_error_message());
}

/* Continues the comparison of model_compare for some milliseconds. Returns whether work remains. */
static bool compare_some(loader *l)
{
    compare_query *query = model_take_compare(l->model);
    if (query != NULL)
        take_over_query(l, query);
    if (l->query == NULL)
        return false;
    if (l->restarts_comparison)
        begin_comparison(l);
    if (l->comparison->reason == NULL && request_reading_step(l->comparing, l->side_sources, false)) {
        uint64_t all = 0;
        for (guint i = 0; i < l->side_sources->len; i++)
            all += source_size(g_ptr_array_index(l->side_sources, i));
        model_set_find_progress(
            l->model, (l->side + (double)request_reading_bytes(l->comparing) / (double)MAX(all, 1)) / COMPARED_SIDES);
        return true;
    }
    if (l->comparison->reason == NULL && l->side + 1 < COMPARED_SIDES) {
        begin_side(l, l->side + 1);
        return true;
    }
    comparison_finish(l->comparison);
    model_set_comparison(l->model, g_steal_pointer(&l->comparison));
    request_reading_find(l->comparing, NULL);
    g_clear_pointer(&l->query, compare_query_free);
    return false;
}

static void tell_cut_threads(const loader *l, int64_t cut_ns)
{
    char time[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(cut_ns, time);
    model_tell(l->model,
               g_strdup_printf("The memory limit is reached: some spans and states of threads after %s are missing; "
                               "raise --max-memory",
                               time));
}

/*
 * Reads the spans and states of threads for some milliseconds, if the model wants them. Publishes them when it has read
 * everything, and before that whenever the time of reading has doubled. Returns whether work remains.
 */
static bool thread_some(loader *l)
{
    if (!model_wants_threads(l->model) || l->sources->len == 0)
        return false;
    if (!l->is_threading) {
        request_reading_collect(l->threading);
        l->is_threading = true;
        l->has_shown_threads = false;
        l->threads_shown_us = 0;
    }
    const uint64_t before = request_reading_bytes(l->threading);
    const bool more = request_reading_step(l->threading, l->sources, false);
    const uint64_t bytes = request_reading_bytes(l->threading);
    const int64_t used_us = request_reading_used_us(l->threading);
    uint64_t all = 0;
    for (guint i = 0; i < l->sources->len; i++)
        all += source_size(g_ptr_array_index(l->sources, i));
    l->has_shown_threads = l->has_shown_threads && !more && bytes == before;
    model_set_threads_progress(l->model, more ? MIN((double)bytes / (double)MAX(all, 1), 0.999) : 1);
    const gint64 begun_us = g_get_monotonic_time();
    if (l->has_shown_threads || (more && used_us < 2 * l->threads_shown_us + THREADS_FIRST_US) ||
        (l->is_started && begun_us < l->threads_paused_until_us))
        return more;
    l->threads_shown_us = used_us;
    l->has_shown_threads = !more;
    thread_list *threads = request_reading_threads(l->threading);
    if (threads != NULL && threads->is_cut)
        tell_cut_threads(l, threads->cut_ns);
    if (threads != NULL)
        model_set_threads(l->model, threads);
    const gint64 now_us = g_get_monotonic_time();
    l->threads_paused_until_us = now_us + THREADS_PAUSE_FACTOR * (now_us - begun_us);
    return more;
}

static void take_over_drawing(loader *l, const model_request *r)
{
    if (r->has_drawing)
        inference_set_given(l->inference, r->drawing);
    if (r->has_extra)
        inference_set_extra(l->inference, r->extra);
    read_again(l, inference_first_drawing(l->inference), COLORS_ANEW, !has_filter(l));
}

/* Begins or ends the correction of times. Returns whether the logs will be read again. */
static bool take_over_clocks(loader *l, bool correct)
{
    model *m = l->model;
    if (!correct && model_clocks(m) == NULL)
        return false;
    correction *c = correct ? clock_learning_run(m, &l->stopping) : NULL;
    if (c != NULL)
        model_tell(m, clock_learning_describe(c));
    model_set_clocks(m, c);
    read_again(l, drawing_copy(model_drawing(m)), COLORS_AGAIN, !has_filter(l) && c == NULL);
    inference_settle(l->inference, 0);
    return true;
}

/*
 * Carries out the requests of other threads. If `clocks` is true, also carries out requests to correct clocks. Returns
 * whether the displayed records or the drawing change.
 */
static bool take_over_requests(loader *l, bool clocks)
{
    model_request r = model_take_request(l->model, clocks && l->sources->len > 0);
    if (r.has_filter)
        take_over_filter(l, r.former_filter);
    if (r.has_drawing || r.has_extra)
        take_over_drawing(l, &r);
    l->is_unsettled = l->is_unsettled || r.has_clocks;
    bool is_corrected = r.has_clocks && take_over_clocks(l, r.corrects_clocks);
    return r.has_filter || r.has_drawing || r.has_extra || is_corrected;
}

/*
 * Corrects the times of records that are in another time zone according to the requests. Returns whether the logs will
 * be read again.
 */
static bool take_over_zones(loader *l)
{
    model *m = l->model;
    time_zones *zones = request_reading_take_zones(l->requests);
    if (zones == NULL)
        return false;
    GPtrArray *sentences = g_ptr_array_new();
    time_zones_describe(zones, sentences);
    for (guint i = 0; i < sentences->len; i++)
        if (!l->is_live || model_zones(m) == NULL)
            model_tell(m, g_ptr_array_index(sentences, i));
        else
            g_free(g_ptr_array_index(sentences, i));
    g_ptr_array_free(sentences, TRUE);
    model_set_zones(m, zones);
    read_again(l, drawing_copy(model_drawing(m)), COLORS_AGAIN, false);
    inference_settle(l->inference, 0);
    return true;
}

/* Infers the drawing again if the logs have grown enough. Returns whether the logs will be read again. */
static bool infer(loader *l)
{
    time_range range = {0};
    drawing *d = NULL;
    if (!inference_sample(l->inference, l->sources, &range, &d))
        return false;
    model_set_expected(l->model, range);
    if (d != NULL)
        read_again(l, d, COLORS_ANEW, false);
    return d != NULL;
}

/* ---- the index ---- */

static void try_index(loader *l)
{
    if (l->sources->len == 0)
        return;
    source *s = indexed_source(l);
    bool is_active = inference_is_active(l->inference);
    index_found found;
    if (!index_keeper_open(l->keeper, s, is_active ? NULL : model_drawing(l->model), l->is_started, &found))
        return;
    request_reading_restart(l->requests);
    store_free(model_replace_store(l->model, found.store, found.drawing, COLORS_ANEW));
    model_lock(l->model);
    source_skip_to(s, found.at);
    source_file(s)->scanned = found.at;
    if (source_file(s)->format == NL_FORMAT_NLB)
        log_file_add_blocks(source_file(s), found.blocks);
    model_unlock(l->model);
    g_array_free(found.blocks, TRUE);
    prints_free(&s->prints);
    s->prints = found.prints;
    inference_settle(l->inference, found.at);
    loader_changed(l);
}

/*
 * Verifies the next part of the open index. Returns true if the loader must call this function again, or must read the
 * log again.
 */
static bool verify_index(loader *l)
{
    source *s = index_keeper_is_verifying(l->keeper) ? indexed_source(l) : NULL;
    if (s == NULL) /* do not verify the index while a filter is active */
        return false;
    index_verdict verdict = index_keeper_verify(l->keeper, model_own_store(l->model), s, l->is_started);
    if (verdict == INDEX_KEEPER_DONE || verdict == INDEX_KEEPER_MORE)
        return verdict == INDEX_KEEPER_MORE;
    if (verdict == INDEX_KEEPER_CHANGED)
        model_tell(l->model,
                   g_strdup_printf("%s: the log has changed since it was last opened; reading it again", s->url));
    model_lock(l->model);
    source_forget_blocks(s);
    model_unlock(l->model);
    inference_restart(l->inference);
    read_again(l, drawing_copy(model_drawing(l->model)), COLORS_ANEW, false);
    index_keeper_discard(l->keeper, s);
    return true;
}

static void write_index(loader *l)
{
    source *s = indexed_source(l);
    if (s != NULL)
        index_keeper_write(l->keeper, model_own_store(l->model), model_drawing(l->model),
                           inference_is_active(l->inference), s, &l->stopping);
}

/* ---- the loop ---- */

static bool read_source(loader *l, source *s, source_state state)
{
    if (state == SOURCE_MORE)
        scan_source(l, s);
    if (state == SOURCE_FED) {
        take_directly(l, s, source_take_fed);
        note_scanned(l, s);
    }
    if (state == SOURCE_LAST) {
        take_directly(l, s, source_finish);
        source_go_on(s);
    }
    if (has_new_unit(l)) {
        l->reads_nanoseconds = true;
        model_tell(l->model, g_strdup(REQUEST_NANOSECONDS));
        read_again(l, drawing_copy(model_drawing(l->model)), COLORS_AGAIN, false);
    }
    if (full_store_is_behind(l->full, l->sources))
        full_store_forget(l->full, model_own_store(l->model));
    return state == SOURCE_MORE || state == SOURCE_FED || state == SOURCE_LAST;
}

/* Reads a part of every source. Returns whether it read anything. Sets *ended to whether no more records will arrive.
 */
static bool read_on(loader *l, bool *ended)
{
    bool any = false;
    *ended = true;
    take_over_sources(l);
    take_over_requests(l, false);
    try_index(l);
    source_state *states = g_new0(source_state, l->sources->len + 1);
    /* first look at every source, because the drawing depends on all of them */
    for (guint i = 0; i < l->sources->len && !l->stopping; i++) {
        source *s = g_ptr_array_index(l->sources, i);
        states[i] = source_look(s);
        if (s->notice != NULL)
            model_tell(l->model, g_steal_pointer(&s->notice));
        number_files(l, s);
    }
    const bool reads_again = !l->stopping && infer(l);
    for (guint i = 0; i < l->sources->len && !reads_again && !l->stopping && !l->is_full; i++) {
        any = read_source(l, g_ptr_array_index(l->sources, i), states[i]) || any;
        *ended = *ended && states[i] == SOURCE_ENDED;
    }
    g_free(states);
    if (reads_again) {
        *ended = false;
        return true;
    }
    count_bytes(l);
    return any;
}

/* Inserts late records and completes colors. Call the function when the sources have no further bytes for the
 * moment. */
static void settle(loader *l)
{
    model *m = l->model;
    if (!l->is_unsettled)
        return;
    model_lock(m);
    store_settle(model_own_store(m));
    model_unlock(m);
    store_color_objects(model_own_store(m)); /* takes long, so do not lock the model, and let drawing continue */
    model_lock(m);
    model_add_found_points(m);
    /* names keep the colors that they had before a filter was set, although the filter changes the order of reading */
    bool is_first = !index_keeper_has_written(l->keeper) && !has_filter(l) && full_store_get(l->full) == NULL;
    model_assign_colors(m, is_first ? COLORS_ANEW : COLORS_MORE, false);
    char *missing = l->has_told_missing ? NULL : model_missing(m);
    model_unlock(m);
    model_set_expected(m, (time_range){0});
    l->has_told_missing = l->has_told_missing || missing != NULL;
    if (missing != NULL)
        model_tell(m, missing);
    l->is_unsettled = false;
    model_changed(m, true);
}

static void load_sources(loader *l)
{
    for (bool ended = false; !ended;) {
        bool any = read_on(l, &ended);
        if (!any && !ended)
            g_usleep(1000);
        while (ended && verify_index(l))
            ended = index_keeper_is_verifying(l->keeper); /* false: the index is invalid; read the log again */
        ended = ended && !take_over_requests(l, true) && !select_some(l);
    }
    settle(l);
    write_index(l);
    while (l->options.reads_requests && request_reading_step(l->requests, l->sources, false))
        ;
}

void loader_load(loader *l)
{
    do
        load_sources(l);
    while (take_over_zones(l));
    while (compare_some(l) || thread_some(l))
        ;
    if (!has_filter(l))
        check_records(l);
}

static void *loader_run(void *user)
{
    loader *l = user;
    while (!l->stopping) {
        bool ended;
        if (read_on(l, &ended) || take_over_requests(l, true) || select_some(l))
            continue;
        settle(l);
        model_set_read(l->model);
        if (verify_index(l))
            continue;
        write_index(l);
        if (find_some(l) || thread_some(l) || request_reading_step(l->requests, l->sources, l->is_live) ||
            take_over_zones(l) || compare_some(l))
            continue;
        check_logs(l);
        g_usleep(WAIT_MS * 1000);
    }
    return NULL;
}

void loader_start(loader *l)
{
    int error = pthread_create(&l->thread, NULL, loader_run, l);
    l->is_started = error == 0;
    if (!l->is_started)
        program_fail(PROGRAM_PROBLEM, "cannot start a thread: %s", strerror(error));
}
