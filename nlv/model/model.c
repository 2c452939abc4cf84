#include "config.h"

#include "model/model.h"

#include "base/error.h"
#include "base/time_internal.h"
#include "model/checks.h"
#include "model/loader.h"
#include "model/request_lines.h"
#include "model/threads.h"
#include "requests/printable.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { COLORS_EVERY_MS = 200 };

struct model {
    pthread_mutex_t turn; /* held while waiting for `lock`, so that waiting threads get `lock` in turn */
    pthread_mutex_t lock; /* protects the members below, except atomic members and the loader */
    store *store;
    drawing *drawing;
    request_lines *lines;
    colors *colors;
    gint64 colored_us;
    GString *name;
    size_t log_count;
    GPtrArray *files;              /* log_file of the sources, by number */
    request_list *requests;        /* NULL: not read yet */
    GPtrArray *notices;            /* char *: notices that model_take_notices has not returned yet */
    GHashTable *told;              /* the texts of all notices */
    filters *filter, *next_filter; /* NULL: no filter */
    drawing *next_drawing, *next_extra;
    atomic_bool filter_changed, drawing_changed, extra_changed, clocks_changed, corrects_clocks;
    request_filter *finding, *next_find; /* current and next filter of model_find_requests; NULL: no search */
    GArray *found;                       /* request_match: result of the search; NULL: not finished */
    atomic_bool find_changed;
    compare_query *next_query; /* query of model_compare; NULL: no query is waiting */
    comparison *comparison;    /* NULL: not finished */
    const store *gap_store; /* the store, and the range of its records, of which `gap` and `has_gap` are the result */
    uint32_t gap_count, gap_first;
    checks_gap gap; /* see model_find_gap */
    bool has_gap;
    atomic_bool wants_threads, has_nanoseconds;
    thread_list *threads;       /* NULL: not read yet */
    atomic_uint threads_share;  /* the share that model_threads_progress returns, in thousandths */
    atomic_uint found_share;    /* share of the logs that a search or comparison has read, in thousandths */
    atomic_uint requests_share; /* the share that model_requests_progress returns, in thousandths; 0: not begun */
    const correction *clocks;   /* NULL: times are as they were logged */
    GPtrArray *corrections;     /* all corrections so far; a running search may still use an earlier correction */
    const time_zones *zones;    /* NULL: no record is in another time zone */
    time_range expected;        /* the expected range of times of the unread records */
    atomic_size_t memory_max;
    atomic_bool is_limit_silent, is_full;
    atomic_uint generation, zone_corrections;
    atomic_ullong done_bytes, all_bytes;
    atomic_bool is_unsettled, has_read;
    loader *loader;
};

/* ---- creation and destruction ---- */

model *model_new(drawing *d, program_reading *reading)
{
    model *m = g_new0(model, 1);
    pthread_mutex_init(&m->turn, NULL);
    pthread_mutex_init(&m->lock, NULL);
    m->drawing = d != NULL ? d : drawing_new();
    m->store = loader_new_store(m->drawing, d == NULL);
    m->lines = request_lines_new();
    m->colors = colors_new();
    m->name = g_string_new(NULL);
    m->files = g_ptr_array_new();
    m->notices = g_ptr_array_new_with_free_func(g_free);
    m->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    m->corrections = g_ptr_array_new_with_free_func((GDestroyNotify)correction_free);
    m->loader = loader_new(m, d, reading);
    return m;
}

model *model_of_store(store *s, drawing *d, program_reading *reading)
{
    model *m = model_new(d, reading);
    store_free(m->store);
    m->store = s;
    return m;
}

void model_set_options(model *m, model_options options)
{
    loader_set_options(m->loader, &options);
    if (options.fix_clocks)
        model_correct_clocks(m, true);
}

void model_free(model *m)
{
    loader_free(m->loader);
    g_ptr_array_free(m->notices, TRUE);
    g_hash_table_destroy(m->told);
    g_ptr_array_free(m->files, TRUE);
    filters_free(m->filter);
    filters_free(m->next_filter);
    request_filter_free(m->finding);
    request_filter_free(m->next_find);
    if (m->found != NULL)
        g_array_free(m->found, TRUE);
    compare_query_free(m->next_query);
    comparison_free(m->comparison);
    thread_list_free(m->threads);
    drawing_free(m->next_drawing);
    drawing_free(m->next_extra);
    colors_free(m->colors);
    request_lines_free(m->lines);
    store_free(m->store);
    request_list_free(m->requests);
    g_ptr_array_free(m->corrections, TRUE);
    time_zones_unref(m->zones);
    drawing_free(m->drawing);
    g_string_free(m->name, TRUE);
    pthread_mutex_destroy(&m->turn);
    pthread_mutex_destroy(&m->lock);
    g_free(m);
}

static void add_source(model *m, source *s, const char *name)
{
    model_lock(m);
    g_string_append_printf(m->name, "%s%s", m->name->len > 0 ? ", " : "", name);
    m->log_count++;
    model_unlock(m);
    loader_add_source(m->loader, s);
}

bool model_add_source(model *m, const char *url, bool follow)
{
    source *s = source_open(url, follow, loader_reading(m->loader));
    if (s == NULL)
        return false;
    char *base = g_path_get_basename(url);
    add_source(m, s, strcmp(url, "-") == 0 ? "standard input" : base);
    g_free(base);
    return true;
}

void model_add_feed(model *m, feed *f, const char *name)
{
    source *s = source_open_feed(f, name, loader_reading(m->loader));
    if (s != NULL)
        add_source(m, s, name);
    else
        model_tell(m, g_strdup_printf("nlv does not read %s: %s", name, nl_error_message()));
}

void model_load(model *m)
{
    loader_load(m->loader);
}

void model_start(model *m)
{
    loader_start(m->loader);
}

void model_lock(model *m)
{
    pthread_mutex_lock(&m->turn);
    pthread_mutex_lock(&m->lock);
    pthread_mutex_unlock(&m->turn);
}

void model_unlock(model *m)
{
    pthread_mutex_unlock(&m->lock);
}

/* ---- for the loader ---- */

store *model_own_store(model *m)
{
    return m->store;
}

store *model_replace_store(model *m, store *fresh, drawing *d, colors_mode mode)
{
    model_lock(m);
    store *old_store = m->store;
    drawing *old_drawing = m->drawing;
    m->store = fresh;
    m->gap_store = NULL; /* a later store may have the address and the number of records of an earlier store */
    m->drawing = d;
    request_lines_forget(m->lines);
    model_assign_colors(m, mode, false);
    model_unlock(m);
    drawing_free(old_drawing);
    return old_store;
}

void model_add_found_points(model *m)
{
    const store *s = m->store;
    for (size_t i = m->drawing->points->len; i < s->point_count; i++) {
        const char *event = names_text(s->names.events, s->found[i - s->spec->point_count]);
        drawing_add_point(m->drawing, event, event);
    }
}

void model_assign_colors(model *m, colors_mode mode, bool often)
{
    if (often && g_get_monotonic_time() - m->colored_us < COLORS_EVERY_MS * INT64_C(1000))
        return;
    colors_assign(m->colors, m->store, mode);
    m->colored_us = g_get_monotonic_time();
}

void model_add_file(model *m, log_file *f)
{
    f->is_numbered = true;
    f->number = m->files->len;
    g_ptr_array_add(m->files, f);
}

const GPtrArray *model_files(const model *m)
{
    return m->files;
}

model_request model_take_request(model *m, bool clocks)
{
    model_request r = {.corrects_clocks = m->corrects_clocks};
    model_lock(m);
    r.has_filter = atomic_exchange(&m->filter_changed, false);
    r.has_drawing = atomic_exchange(&m->drawing_changed, false);
    r.has_extra = atomic_exchange(&m->extra_changed, false);
    r.has_clocks = clocks && atomic_exchange(&m->clocks_changed, false);
    r.drawing = m->next_drawing;
    r.extra = m->next_extra;
    m->next_drawing = m->next_extra = NULL;
    if (r.has_filter) {
        r.former_filter = m->filter != NULL ? g_strdup(m->filter->text) : NULL;
        filters_free(m->filter);
        m->filter = m->next_filter;
        m->next_filter = NULL;
    }
    model_unlock(m);
    return r;
}

bool model_has_request(const model *m)
{
    return m->filter_changed || m->drawing_changed || m->extra_changed;
}

const filters *model_current_filters(const model *m)
{
    return m->filter;
}

const correction *model_clocks(const model *m)
{
    return m->clocks;
}

void model_set_clocks(model *m, correction *c)
{
    model_lock(m);
    m->clocks = c;
    if (c != NULL)
        g_ptr_array_add(m->corrections, c);
    model_unlock(m);
}

const time_zones *model_zones(const model *m)
{
    return m->zones;
}

void model_set_zones(model *m, time_zones *z)
{
    model_lock(m);
    time_zones_unref(m->zones);
    m->zones = z;
    m->zone_corrections++;
    model_unlock(m);
}

void model_set_requests(model *m, request_list *requests)
{
    model_lock(m);
    request_list *old = m->requests;
    m->requests = requests;
    model_unlock(m);
    request_list_free(old);
}

void model_set_expected(model *m, time_range range)
{
    model_lock(m);
    m->expected = range;
    model_unlock(m);
}

void model_set_progress(model *m, uint64_t done_bytes, uint64_t all_bytes)
{
    m->done_bytes = done_bytes;
    m->all_bytes = all_bytes;
}

void model_changed(model *m, bool is_settled)
{
    m->is_unsettled = !is_settled;
    m->generation++;
}

void model_set_limit(model *m, size_t memory_max, bool is_silent, bool is_full)
{
    m->memory_max = memory_max;
    m->is_limit_silent = is_silent;
    m->is_full = is_full;
}

void model_tell(model *m, char *text)
{
    model_lock(m);
    if (g_hash_table_add(m->told, g_strdup(text)))
        g_ptr_array_add(m->notices, text);
    else
        g_free(text);
    model_unlock(m);
}

/* ---- finding requests ---- */

void model_find_requests(model *m, request_filter *filter)
{
    model_lock(m);
    request_filter_free(m->next_find);
    m->next_find = filter;
    m->find_changed = true;
    m->found_share = 0;
    if (m->found != NULL)
        g_array_free(m->found, TRUE);
    m->found = NULL;
    model_unlock(m);
}

const GArray *model_found_requests(const model *m)
{
    return m->found;
}

double model_find_progress(const model *m)
{
    return m->found_share / 1000.0;
}

bool model_take_find(model *m, const request_filter **filter)
{
    if (!m->find_changed)
        return false;
    model_lock(m);
    m->find_changed = false;
    request_filter_free(m->finding);
    *filter = m->finding = m->next_find;
    m->next_find = NULL;
    model_unlock(m);
    return true;
}

void model_set_found(model *m, GArray *found)
{
    model_lock(m);
    if (m->find_changed)
        g_array_free(found, TRUE);
    else
        m->found = found;
    model_unlock(m);
    m->generation++;
}

/* ---- comparisons ---- */

bool model_compare(model *m, const char *first, const char *second)
{
    compare_query *query = compare_query_parse(first, second);
    if (query == NULL)
        return false;
    model_lock(m);
    compare_query_free(m->next_query);
    m->next_query = query;
    comparison_free(m->comparison);
    m->comparison = NULL;
    m->found_share = 0;
    model_unlock(m);
    return true;
}

const comparison *model_comparison(const model *m)
{
    return m->comparison;
}

compare_query *model_take_compare(model *m)
{
    model_lock(m);
    compare_query *query = m->next_query;
    m->next_query = NULL;
    model_unlock(m);
    return query;
}

void model_set_comparison(model *m, comparison *c)
{
    model_lock(m);
    comparison *old = m->next_query == NULL ? m->comparison : c;
    if (m->next_query == NULL)
        m->comparison = c;
    model_unlock(m);
    comparison_free(old);
    m->generation++;
}

/* ---- threads ---- */

void model_want_threads(model *m)
{
    m->wants_threads = true;
}

const thread_list *model_threads(const model *m)
{
    return m->threads;
}

bool model_find_gap(const model *m, struct checks_gap *gap)
{
    model *own = (model *)m;
    if (own->gap_store != m->store || own->gap_count != m->store->count || own->gap_first != m->store->first) {
        own->gap_store = m->store;
        own->gap_count = m->store->count;
        own->gap_first = m->store->first;
        own->has_gap = checks_find_gap(m->store, &own->gap);
    }
    *gap = m->gap;
    return m->has_gap;
}

double model_threads_progress(const model *m)
{
    return m->threads_share / 1000.0;
}

atomic_bool *model_nanosecond_flag(model *m)
{
    return &m->has_nanoseconds;
}

bool model_has_nanoseconds(const model *m)
{
    return m->has_nanoseconds;
}

bool model_wants_threads(const model *m)
{
    return m->wants_threads;
}

void model_set_threads(model *m, thread_list *threads)
{
    model_lock(m);
    thread_list *old = m->threads;
    m->threads = threads;
    model_unlock(m);
    thread_list_free(old);
    m->generation++;
}

void model_set_threads_progress(model *m, double share)
{
    m->threads_share = (unsigned)(1000 * share);
}

void model_set_find_progress(model *m, double share)
{
    m->found_share = (unsigned)(1000 * share);
}

void model_set_requests_progress(model *m, double share)
{
    m->requests_share = (unsigned)(1000 * share);
}

double model_requests_progress(const model *m)
{
    return m->requests_share / 1000.0;
}

/* ---- requests ---- */

void model_set_drawing(model *m, drawing *d)
{
    model_lock(m);
    drawing_free(m->next_drawing);
    m->next_drawing = d;
    m->drawing_changed = m->is_unsettled = true;
    model_unlock(m);
}

void model_set_extra(model *m, drawing *extra)
{
    model_lock(m);
    drawing_free(m->next_extra);
    m->next_extra = extra;
    m->extra_changed = m->is_unsettled = true;
    model_unlock(m);
}

bool model_set_filters(model *m, const char *selects, const char *shows)
{
    const bool any = selects != NULL || shows != NULL;
    filters *filter = any ? filters_parse(selects, shows) : NULL;
    if (any && filter == NULL)
        return false;
    model_lock(m);
    filters_free(m->next_filter);
    m->next_filter = filter;
    m->filter_changed = m->is_unsettled = true;
    model_unlock(m);
    return true;
}

bool model_set_filter(model *m, const char *selects)
{
    return model_set_filters(m, selects, NULL);
}

const char *model_filter(const model *m)
{
    const filters *filter = m->filter_changed ? m->next_filter : m->filter;
    return filter != NULL ? filter->text : NULL;
}

const char *model_request_filter(const model *m)
{
    const filters *filter = m->filter_changed ? m->next_filter : m->filter;
    return filter != NULL ? filter->requests_text : NULL;
}

void model_correct_clocks(model *m, bool correct)
{
    m->corrects_clocks = correct;
    m->clocks_changed = m->is_unsettled = true;
}

bool model_corrects_clocks(const model *m)
{
    return m->corrects_clocks;
}

bool model_has_right_clocks(const model *m)
{
    return m->clocks != NULL;
}

unsigned model_zone_corrections(const model *m)
{
    return m->zone_corrections;
}

bool model_has_right_zones(const model *m)
{
    return m->zones != NULL;
}

/* ---- queries ---- */

static void clear_job(void *job)
{
    g_free((void *)((scan_job *)job)->blocks);
    time_zones_unref(((scan_job *)job)->zones);
}

GArray *model_jobs(const model *m)
{
    GArray *jobs = g_array_new(FALSE, FALSE, sizeof(scan_job));
    g_array_set_clear_func(jobs, clear_job);
    for (guint i = 0; i < m->files->len; i++) {
        const log_file *f = g_ptr_array_index(m->files, i);
        scan_job job = {.file = f, .from = f->forgotten, .to = f->scanned, .clocks = m->clocks};
        job.has_nanoseconds = (atomic_bool *)&m->has_nanoseconds;
        guint first = f->first_block, end = log_file_find_block(f, f->scanned);
        job.block_count = end - first;
        if (end > first)
            job.blocks = g_memdup2(&g_array_index(f->blocks, log_block, first), job.block_count * sizeof *job.blocks);
        job.zones = m->zones != NULL ? time_zones_ref(m->zones) : NULL;
        if (job.from < job.to)
            g_array_append_val(jobs, job);
        else
            clear_job(&job);
    }
    return jobs;
}

char *model_take_notice(model *m)
{
    model_lock(m);
    char *text = m->notices->len > 0 ? g_ptr_array_steal_index(m->notices, 0) : NULL;
    model_unlock(m);
    return text;
}

unsigned model_generation(const model *m)
{
    return m->generation;
}

double model_progress(const model *m)
{
    uint64_t all = m->all_bytes, done = m->done_bytes;
    return all > done ? (double)done / (double)all : 1;
}

bool model_has_read(const model *m)
{
    return m->has_read;
}

void model_set_read(model *m)
{
    m->has_read = true;
}

bool model_is_settled(const model *m)
{
    return !m->is_unsettled;
}

const store *model_store(const model *m)
{
    return m->store;
}

const request_list *model_requests(const model *m)
{
    return m->requests;
}

request_lines *model_request_lines(const model *m)
{
    return m->lines;
}

const drawing_lifeline *model_lifeline(const model *m, size_t lifeline)
{
    const GPtrArray *lifelines = model_drawing(m)->lifelines;
    return lifeline < lifelines->len ? g_ptr_array_index(lifelines, lifeline) : &drawing_threads;
}

const drawing *model_drawing(const model *m)
{
    return m->drawing;
}

size_t model_count(const model *m)
{
    return m->store->count - m->store->first + m->store->late.count;
}

char *model_missing(const model *m)
{
    uint64_t missing = m->is_limit_silent ? 0 : store_missing(m->store);
    if (missing == 0 && !m->is_full)
        return NULL;
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "The memory limit of %zu MiB is reached: ", m->memory_max >> 20);
    if (missing > 0)
        g_string_append_printf(text, "the oldest records (%" G_GUINT64_FORMAT ") are not shown", missing);
    if (m->is_full)
        g_string_append_printf(text, "%sthe rest of the log was not read", missing > 0 ? ", and " : "");
    g_string_append(text, "; select records with --where, or raise --max-memory");
    return g_string_free(text, FALSE);
}

bool model_time_range(const model *m, int64_t *from_ns, int64_t *to_ns)
{
    const store *s = m->store;
    bool any = s->count > s->first;
    if (any) {
        *from_ns = store_time(s, s->first);
        *to_ns = store_time(s, s->count - 1);
    }
    if (any && m->expected.is_known) {
        *from_ns = MIN(*from_ns, m->expected.from_ns);
        *to_ns = MAX(*to_ns, m->expected.to_ns);
    }
    return any;
}

size_t model_log_count(const model *m)
{
    return m->log_count;
}

const char *model_name(const model *m)
{
    return m->name->str;
}

size_t model_color_count(const model *m)
{
    return m->colors->texts->len;
}

const char *model_color_text(const model *m, size_t i)
{
    return g_ptr_array_index(m->colors->texts, i);
}

bool model_has_host_color(const model *m, uint16_t host)
{
    return m->colors->of[COLOR_BY_HOST][host] != NAMES_NONE;
}

unsigned model_host_color(const model *m, uint16_t host)
{
    return colors_get(m->colors, COLOR_BY_HOST, host);
}

unsigned model_object_color(const model *m, size_t lifeline, uint32_t object)
{
    return model_name_color(m, lifeline, store_color(m->store, object, m->store->spec->lifelines[lifeline].layer));
}

unsigned model_name_color(const model *m, size_t lifeline, uint16_t name)
{
    return colors_get(m->colors, m->store->spec->lifelines[lifeline].color, name);
}

bool model_record(const model *m, uint32_t record, void (*take)(void *user, const nl_record *record), void *user)
{
    const store *s = m->store;
    return record >= s->first && record < s->count && model_record_at(m, store_place(s, record), take, user);
}

/* The arguments of take_corrected, which corrects the time of a record and passes the record to `take`. */
typedef struct correcting {
    const model *model;
    uint64_t place;
    void (*take)(void *user, const nl_record *record);
    void *user;
} correcting;

static void take_corrected(void *user, const nl_record *record)
{
    const correcting *c = user;
    const int64_t time_ns = time_zones_record_time(c->model->zones, c->model->clocks, record, c->place);
    nl_record *corrected = nl_record_new();
    c->take(c->user, correction_set_time(record, time_ns, corrected) ? corrected : record);
    nl_record_free(corrected);
}

bool model_record_at(const model *m, uint64_t place, void (*take)(void *user, const nl_record *record), void *user)
{
    correcting c = {m, place, take, user};
    const bool corrects = m->clocks != NULL || m->zones != NULL;
    return place_file(place) < m->files->len &&
           log_file_record(g_ptr_array_index(m->files, place_file(place)), place_position(place),
                           corrects ? take_corrected : take, corrects ? (void *)&c : user);
}

static void append_fields(void *user, const nl_record *record)
{
    GString *text = user;
    for (size_t i = 0; i < record->field_count; i++) {
        char scratch[NL_FIELD_TEXT_SIZE];
        nl_string value = nl_field_text(&record->fields[i], scratch);
        g_string_append(text, "  ");
        g_string_append_len(text, record->fields[i].name.data, (gssize)record->fields[i].name.size);
        g_string_append_c(text, '=');
        g_string_append_len(text, value.data, (gssize)value.size);
    }
}

/* Appends the offset and the uncertainty of a host's clock, unless they are unknown or below a microsecond. */
static void append_clock(GString *text, store_clock clock)
{
    double middle_ns = (clock.low_ns + clock.high_ns) / 2, error_ns = (clock.high_ns - clock.low_ns) / 2;
    if (!clock.is_known)
        return;
    if (clock.low_ns > 0 || clock.high_ns < 0)
        g_string_append_printf(text, "  (clock %g ms %s \302\261 %g ms)", fabs(middle_ns) / 1e6,
                               middle_ns > 0 ? "slow" : "fast", error_ns / 1e6);
    else if (error_ns >= 1000)
        g_string_append_printf(text, "  (clock \302\261 %g ms)", error_ns / 1e6);
}

char *model_describe(const model *m, uint32_t record, const char *time)
{
    const store *s = m->store;
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%s  %s  %s  %s", time, names_text(s->names.events, store_event(s, record)),
                           names_text(s->names.hosts, store_host(s, record)),
                           names_text(s->names.progs, store_prog(s, record)));
    append_clock(text, store_clock_at(s, store_host(s, record), record));
    if (!model_record(m, record, append_fields, text))
        g_string_append(text, "  (no longer in the log)");
    char *valid = printable(text->str);
    g_string_free(text, TRUE);
    return valid;
}
