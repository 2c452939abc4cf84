#include "config.h"

#include "model/model_private.h"
#include "requests/printable.h"
#include "filter/filter_text.h"
#include "base/time_internal.h"

#include <math.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- life ---- */

static uint64_t new_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)g_get_monotonic_time();
    return seed;
}

static size_t default_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_size > 0 ? (size_t)pages / 2 * (size_t)page_size : (size_t)1 << 30;
}

store *model_new_store(const drawing *d, bool looks_out)
{
    batch_names names = {names_new(), names_new(), names_new(), names_new()};
    return store_new(spec_new(d, names.events, new_seed()), names, looks_out);
}

model *model_new(drawing *d, program_reading *reading)
{
    model *m = g_new0(model, 1);
    pthread_mutex_init(&m->turn, NULL);
    pthread_mutex_init(&m->lock, NULL);
    m->reading = reading;
    m->memory_max = default_memory();
    m->inferred = d == NULL;
    m->drawing = d != NULL ? d : drawing_new();
    m->given = d != NULL ? drawing_copy(d) : NULL;
    m->store = model_new_store(m->drawing, m->inferred);
    m->colors = colors_new();
    m->name = g_string_new(NULL);
    m->files = g_ptr_array_new();
    m->notices = g_ptr_array_new_with_free_func(g_free);
    m->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    m->corrections = g_ptr_array_new_with_free_func((GDestroyNotify)correction_free);
    m->fresh = g_ptr_array_new();
    m->sources = g_ptr_array_new();
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
    m->options = options;
    if (options.records_max > 0)
        model_set_records_max(m, options.records_max);
    if (options.memory_max > 0)
        m->memory_max = options.memory_max;
    if (options.fix_clocks)
        model_correct_clocks(m, true);
}

uint32_t model_records_max(const model *m)
{
    return m->has_records_max ? m->records_max : m->is_live ? MODEL_LIVE_MAX : 0;
}

void model_set_records_max(model *m, uint32_t records)
{
    m->records_max = records;
    m->has_records_max = true;
}

static void close_sources(GPtrArray *sources)
{
    for (guint i = 0; i < sources->len; i++)
        source_close(g_ptr_array_index(sources, i));
    g_ptr_array_free(sources, TRUE);
}

void model_free(model *m)
{
    m->stopping = true;
    if (m->started)
        pthread_join(m->thread, NULL);
    close_sources(m->sources);
    close_sources(m->fresh);
    g_ptr_array_free(m->notices, TRUE);
    g_hash_table_destroy(m->told);
    g_ptr_array_free(m->files, TRUE);
    nl_filter_free(m->filter);
    nl_filter_free(m->next_filter);
    drawing_free(m->next_drawing);
    drawing_free(m->next_extra);
    drawing_free(m->given);
    drawing_free(m->extra);
    colors_free(m->colors);
    model_forget_full(m);
    store_free(m->store);
    g_ptr_array_free(m->corrections, TRUE);
    drawing_free(m->drawing);
    g_string_free(m->name, TRUE);
    g_free(m->inferred_text);
    pthread_mutex_destroy(&m->turn);
    pthread_mutex_destroy(&m->lock);
    g_free(m);
}

bool model_add_source(model *m, const char *url, bool follow)
{
    source *s = source_open(url, follow, m->reading);
    if (s == NULL)
        return false;
    char *base = g_path_get_basename(url);
    model_lock(m);
    m->is_live = m->is_live || (follow && s->path == NULL);
    g_ptr_array_add(m->fresh, s);
    g_string_append_printf(m->name, "%s%s", m->name->len > 0 ? ", " : "",
                           strcmp(url, "-") == 0 ? "standard input" : base);
    model_unlock(m);
    g_free(base);
    return true;
}

/* ---- what is drawn of it ---- */

/* Another store and drawing, both taken over; gives the former store, the caller's. */
store *model_replace_store(model *m, store *fresh, drawing *d, colors_mode mode)
{
    model_lock(m);
    store *old_store = m->store;
    drawing *old_drawing = m->drawing;
    m->store = fresh;
    m->drawing = d;
    model_assign_colors(m, mode);
    model_unlock(m);
    drawing_free(old_drawing);
    return old_store;
}

/* All is read again, for another drawing. */
void model_begin_anew(model *m, drawing *d, colors_mode mode)
{
    model_forget_full(m);
    m->verifying = VERIFY_NOTHING;
    m->is_full = m->has_told_missing = false;
    store_free(model_replace_store(m, model_new_store(d, m->inferred), d, mode));
    for (guint i = 0; i < m->sources->len; i++)
        source_rewind(g_ptr_array_index(m->sources, i));
}

void model_assign_colors(model *m, colors_mode mode)
{
    colors_assign(m->colors, m->store, mode);
    m->colored_us = g_get_monotonic_time();
}

void model_set_drawing(model *m, drawing *d)
{
    model_lock(m);
    drawing_free(m->next_drawing);
    m->next_drawing = d;
    m->drawing_changed = true;
    m->unsettled = true;
    model_unlock(m);
}

void model_set_extra(model *m, drawing *extra)
{
    model_lock(m);
    drawing_free(m->next_extra);
    m->next_extra = extra;
    m->extra_changed = true;
    m->unsettled = true;
    model_unlock(m);
}

bool model_set_filter(model *m, const char *expression)
{
    nl_filter *filter = expression != NULL ? nl_filter_parse(expression) : NULL;
    if (expression != NULL && filter == NULL)
        return false;
    model_lock(m);
    nl_filter_free(m->next_filter);
    m->next_filter = filter;
    m->filter_changed = true;
    m->unsettled = true;
    model_unlock(m);
    return true;
}

const char *model_filter(const model *m)
{
    const nl_filter *filter = m->filter_changed ? m->next_filter : m->filter;
    return filter != NULL ? nl_filter_text(filter) : NULL;
}

static void free_blocks(void *job)
{
    g_free((void *)((scan_job *)job)->blocks);
}

GArray *model_jobs(const model *m)
{
    GArray *jobs = g_array_new(FALSE, FALSE, sizeof(scan_job));
    g_array_set_clear_func(jobs, free_blocks);
    for (guint i = 0; i < m->files->len; i++) {
        const log_file *f = g_ptr_array_index(m->files, i);
        scan_job job = {.file = f, .from = f->forgotten, .to = f->scanned, .clocks = m->clocks};
        guint first = f->first_block, end = log_file_find_block(f, f->scanned);
        job.block_count = end - first;
        if (end > first)
            job.blocks = g_memdup2(&g_array_index(f->blocks, log_block, first), job.block_count * sizeof *job.blocks);
        if (job.from < job.to)
            g_array_append_val(jobs, job);
    }
    return jobs;
}

/* ---- what is told ---- */

/* Tells it, once; text is taken over. */
void model_tell(model *m, char *text)
{
    if (g_hash_table_contains(m->told, text)) {
        g_free(text);
        return;
    }
    g_hash_table_add(m->told, g_strdup(text));
    model_lock(m);
    g_ptr_array_add(m->notices, text);
    model_unlock(m);
}

char *model_take_notice(model *m)
{
    model_lock(m);
    char *text = m->notices->len > 0 ? g_ptr_array_steal_index(m->notices, 0) : NULL;
    model_unlock(m);
    return text;
}

/* ---- asking ---- */

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

unsigned model_generation(const model *m)
{
    return m->generation;
}

double model_progress(const model *m)
{
    uint64_t all = m->all_bytes, done = m->done_bytes;
    return all > done ? (double)done / (double)all : 1;
}

bool model_is_settled(const model *m)
{
    return !m->unsettled;
}

const store *model_store(const model *m)
{
    return m->store;
}

const drawing *model_drawing(const model *m)
{
    return m->drawing;
}

size_t model_count(const model *m)
{
    return m->store->count - m->store->first + m->store->late.count;
}

size_t model_memory(const model *m)
{
    size_t sum = store_memory(m->store) + model_kept_memory(m);
    for (guint i = 0; i < m->files->len; i++)
        sum += ((const log_file *)g_ptr_array_index(m->files, i))->blocks->len * sizeof(log_block);
    return sum;
}

char *model_missing(const model *m)
{
    uint64_t missing = model_records_max(m) == 0 ? store_missing(m->store) : 0;
    if (missing == 0 && !m->is_full)
        return NULL;
    const char *rest = m->is_full ? ", and the rest of the log was not read" : "";
    return g_strdup_printf("The memory limit of %zu MiB is reached: the %" G_GUINT64_FORMAT
                           " oldest records are not shown%s; select records with --where, or raise --max-memory",
                           m->memory_max >> 20, missing, rest);
}

bool model_time_range(const model *m, int64_t *from_ns, int64_t *to_ns)
{
    const store *s = m->store;
    bool any = s->count > s->first;
    if (any) {
        *from_ns = store_time(s, s->first);
        *to_ns = store_time(s, s->count - 1);
    }
    if (any && m->has_expected) {
        *from_ns = MIN(*from_ns, m->expected_from_ns);
        *to_ns = MAX(*to_ns, m->expected_to_ns);
    }
    return any;
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

/* A record is handed on with its time set right, and the one that it was logged with. */
typedef struct correcting {
    const correction *clocks;
    void (*take)(void *user, const nl_record *record);
    void *user;
} correcting;

static void take_corrected(void *user, const nl_record *record)
{
    const correcting *c = user;
    nl_record *corrected = nl_record_new();
    c->take(c->user, correction_apply(c->clocks, record, corrected) ? corrected : record);
    nl_record_free(corrected);
}

bool model_record_at(const model *m, uint64_t place, void (*take)(void *user, const nl_record *record), void *user)
{
    correcting c = {m->clocks, take, user};
    return place_file(place) < m->files->len &&
           log_file_record(g_ptr_array_index(m->files, place_file(place)), place_position(place),
                           m->clocks != NULL ? take_corrected : take, m->clocks != NULL ? (void *)&c : user);
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

/* How right the record's time is, as far as that is told. */
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

char *model_describe(const model *m, uint32_t record)
{
    const store *s = m->store;
    char time[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(store_time(s, record), time);
    GString *text = g_string_new(NULL);
    char *from = strchr(time, 'T');
    g_string_append_printf(
        text, "%s  %s  %s  %s", from != NULL ? from + 1 : time, names_text(s->names.events, store_event(s, record)),
        names_text(s->names.hosts, store_host(s, record)), names_text(s->names.progs, store_prog(s, record)));
    append_clock(text, store_clock_at(s, store_host(s, record), record));
    if (!model_record(m, record, append_fields, text))
        g_string_append(text, "  (no longer in the log)");
    char *valid = printable(text->str);
    g_string_free(text, TRUE);
    return valid;
}
