#include "config.h"

#include "model/model.h"

#include "model/checks.h"
#include "model/colors.h"
#include "model/index.h"
#include "model/source.h"
#include "model/subset.h"

#include "analysis/infer.h"

#include <glib/gstdio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

enum {
    SAMPLE_START = 4 << 20, /* bytes of a log that are looked at to find out what it is about */
    SAMPLE_ELSEWHERE = 512 << 10,
    INFER_AGAIN = 4, /* when a log has grown so many times */
    WAIT_MS = 20,
    COLORS_EVERY_MS = 200,
    VERIFIED_AT_ONCE = 256 << 20,
    VERIFIED_EACH_TIME = 16 << 20, /* bytes, before it is looked whether there is something more urgent */
    VERIFY_AFTER_MS = 1000,        /* once the first picture had the disk for itself */
    VERIFIED_PIECES = 16,          /* of the log, likewise */
    KEPT_MOST = 8,                 /* results of filters */
    LAST_LINE = 1 << 20,           /* bytes of a line that is not whole yet, at most */
    INDEX_LEAST = 64 << 20,        /* bytes of a log: a smaller one is read again as fast */
};

struct model {
    pthread_mutex_t lock; /* of all below but what says otherwise */
    store *store;
    drawing *drawing;
    colors *colors;
    GString *name;
    GArray *texts;                   /* text_file, by number */
    GPtrArray *notices;              /* char *: not told yet */
    GPtrArray *fresh;                /* source: to be taken over by the loader */
    GArray *jobs;                    /* scan_job: what was read of each text */
    nl_filter *filter, *next_filter; /* the latter is to take the former's place */
    atomic_bool filter_changed;
    drawing *next_drawing; /* likewise; NULL: to be found out */
    atomic_bool drawing_changed;
    drawing *next_extra; /* what is drawn beside it */
    atomic_bool extra_changed;
    bool has_expected;
    int64_t expected_from_ns, expected_to_ns; /* of what was not read yet */
    atomic_uint generation;
    atomic_ullong done_bytes, all_bytes;

    /* The loader's own. */
    model_options options;
    atomic_uint records_most;
    atomic_bool is_most_said, is_live; /* a source is live when it goes on and is no file */
    program_reading *reading;
    GPtrArray *sources;
    atomic_bool inferred;
    drawing *given, *extra; /* NULL: it is inferred; nothing is drawn beside it */
    bool prepared;
    uint64_t inferred_from; /* bytes */
    char *inferred_text;    /* the drawing then */
    atomic_bool unsettled;
    bool index_tried, index_written, index_settled;
    enum {
        VERIFY_NOTHING,
        VERIFY_INDEX,
        VERIFY_LOG
    } verifying;             /* what is yet to be looked at of the index that was found */
    index_position verified; /* of the index */
    gint64 opened_us;        /* the index, then */
    size_t verified_prints;  /* of the log */
    bool is_sure;            /* that the log is the one that the index is of */
    uint64_t indexed_at;     /* bytes of the log that the index knows */
    gint64 colored_us;
    GQueue kept;      /* kept: what former filters have left of the full one, the latest first */
    store *full;      /* once there was a filter: all that was read before; NULL: not known any more */
    GHashTable *told; /* what was told once, so as not to be told again */
    bool checked;     /* what is odd about the logs was told */
    pthread_t thread;
    bool started;
    atomic_bool stopping;
};

/* What a filter has left, for when it is asked for again. */
typedef struct kept {
    char *filter;
    store *store;
    drawing *drawing;
} kept;

/* ---- life ---- */

static uint64_t new_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)g_get_monotonic_time();
    return seed;
}

static store *new_store(const drawing *d, bool looks_out)
{
    batch_names names = {names_new(), names_new(), names_new(), names_new()};
    return store_new(spec_new(d, names.events, new_seed()), names, looks_out);
}

model *model_new(drawing *d, program_reading *reading)
{
    model *m = g_new0(model, 1);
    pthread_mutex_init(&m->lock, NULL);
    m->reading = reading;
    m->inferred = d == NULL;
    m->drawing = d != NULL ? d : drawing_new();
    m->given = d != NULL ? drawing_copy(d) : NULL;
    m->store = new_store(m->drawing, m->inferred);
    m->colors = colors_new();
    m->name = g_string_new(NULL);
    m->texts = g_array_new(FALSE, FALSE, sizeof(text_file));
    m->jobs = g_array_new(FALSE, TRUE, sizeof(scan_job));
    m->notices = g_ptr_array_new_with_free_func(g_free);
    m->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
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
    if (options.records_most > 0)
        model_keep_most(m, options.records_most);
}

uint32_t model_records_most(const model *m)
{
    return m->is_most_said ? m->records_most : m->is_live ? MODEL_LIVE_MOST : 0;
}

void model_keep_most(model *m, uint32_t records)
{
    m->records_most = records;
    m->is_most_said = true;
}

static void free_kept(kept *k)
{
    if (k == NULL)
        return;
    g_free(k->filter);
    store_free(k->store);
    drawing_free(k->drawing);
    g_free(k);
}

static void forget_full(model *m)
{
    while (m->kept.length > 0)
        free_kept(g_queue_pop_head(&m->kept));
    if (m->full != m->store)
        store_free(m->full);
    m->full = NULL;
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
    for (guint i = 0; i < m->texts->len; i++)
        text_file_close(&g_array_index(m->texts, text_file, i));
    g_ptr_array_free(m->notices, TRUE);
    g_hash_table_destroy(m->told);
    g_array_free(m->texts, TRUE);
    g_array_free(m->jobs, TRUE);
    nl_filter_free(m->filter);
    nl_filter_free(m->next_filter);
    drawing_free(m->next_drawing);
    drawing_free(m->next_extra);
    drawing_free(m->given);
    drawing_free(m->extra);
    colors_free(m->colors);
    forget_full(m);
    store_free(m->store);
    drawing_free(m->drawing);
    g_string_free(m->name, TRUE);
    g_free(m->inferred_text);
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

/* ---- what the log is about ---- */

typedef struct sampling {
    trace *trace;
    const drawing *extra; /* events that it knows are not to be found out about */
    bool any;
    int64_t from_ns, to_ns;
} sampling;

static bool is_quiet(const drawing *extra, const nl_record *record)
{
    for (guint i = 0; extra != NULL && i < extra->quiet->len; i++) {
        const char *event = g_ptr_array_index(extra->quiet, i);
        if (strlen(event) == record->event.size && memcmp(event, record->event.data, record->event.size) == 0)
            return true;
    }
    return false;
}

static void sample_record(void *user, const nl_record *record)
{
    sampling *s = user;
    if (s->trace != NULL && !is_quiet(s->extra, record))
        trace_add(s->trace, record);
    s->from_ns = s->any ? MIN(s->from_ns, record->time_ns) : record->time_ns;
    s->to_ns = s->any ? MAX(s->to_ns, record->time_ns) : record->time_ns;
    s->any = true;
}

/* Looks at the start of every log, and at a bit of its middle and its end. */
static void take_samples(model *m, sampling *s)
{
    size_t share = s->trace != NULL ? SAMPLE_START / MAX(m->sources->len, 1) : SAMPLE_ELSEWHERE / 8;
    for (guint i = 0; i < m->sources->len; i++) {
        const source *from = g_ptr_array_index(m->sources, i);
        uint64_t size = from->text.fd >= 0 ? text_file_size(&from->text) : 0;
        if (size == 0)
            continue;
        text_file_sample(&from->text, 0, MAX(share, SAMPLE_ELSEWHERE / 8), sample_record, s);
        if (size > share + 2 * SAMPLE_ELSEWHERE) {
            if (s->trace != NULL)
                text_file_sample(&from->text, size / 2, SAMPLE_ELSEWHERE, sample_record, s);
            text_file_sample(&from->text, size - SAMPLE_ELSEWHERE, SAMPLE_ELSEWHERE, sample_record, s);
        }
    }
}

static uint64_t bytes_there(const model *m)
{
    uint64_t sum = 0;
    for (guint i = 0; i < m->sources->len; i++) {
        const source *s = g_ptr_array_index(m->sources, i);
        sum += s->text.fd >= 0 ? text_file_size(&s->text) : 0;
    }
    return sum;
}

/* Another store and drawing, both taken over; gives the former store, the caller's. */
static store *replace_store(model *m, store *fresh, drawing *d, colors_mode mode)
{
    model_lock(m);
    store *old_store = m->store;
    drawing *old_drawing = m->drawing;
    m->store = fresh;
    m->drawing = d;
    colors_assign(m->colors, m->store, mode);
    model_unlock(m);
    drawing_free(old_drawing);
    return old_store;
}

/* All is read again, for another drawing. */
static void begin_anew(model *m, drawing *d, colors_mode mode)
{
    forget_full(m);
    m->verifying = VERIFY_NOTHING;
    store_free(replace_store(m, new_store(d, m->inferred), d, mode));
    for (guint i = 0; i < m->sources->len; i++)
        source_rewind(g_ptr_array_index(m->sources, i));
}

static bool has_loadline(const drawing *d, const char *name)
{
    for (guint i = 0; i < d->loadlines->len; i++)
        if (strcmp(((const drawing_loadline *)g_ptr_array_index(d->loadlines, i))->name, name) == 0)
            return true;
    return false;
}

/* Adds to d, and gives it back, what is drawn beside it and it does not have itself. */
static drawing *with_extra(const model *m, drawing *d)
{
    for (guint i = 0; m->extra != NULL && i < m->extra->loadlines->len; i++) {
        const drawing_loadline *l = g_ptr_array_index(m->extra->loadlines, i);
        bool there = false;
        for (guint j = 0; j < d->loadlines->len && !there; j++) {
            const drawing_loadline *other = g_ptr_array_index(d->loadlines, j);
            there = strcmp(other->event, l->event) == 0 && strcmp(other->field, l->field) == 0;
        }
        if (there)
            continue;
        char *longer = g_strdup_printf("%s of %s", l->name, l->event);
        drawing_add_loadline(d, has_loadline(d, l->name) ? longer : l->name, l->event, l->field, l->unit);
        g_free(longer);
    }
    for (guint i = 0; m->extra != NULL && i < m->extra->quiet->len; i++)
        g_ptr_array_add(d->quiet, g_strdup(g_ptr_array_index(m->extra->quiet, i)));
    return d;
}

/* Finds out what to draw, when there is enough more of the logs than when it was last done. */
static void prepare(model *m)
{
    uint64_t bytes = bytes_there(m);
    bool again = m->inferred && m->inferred_from < SAMPLE_START && bytes > m->inferred_from * INFER_AGAIN;
    if (bytes == 0 || (m->prepared && !again))
        return;
    sampling s = {.trace = m->inferred ? trace_new() : NULL, .extra = m->extra};
    take_samples(m, &s);
    model_lock(m);
    m->has_expected = s.any;
    m->expected_from_ns = s.from_ns;
    m->expected_to_ns = s.to_ns;
    model_unlock(m);
    if (s.trace != NULL) {
        trace_sort(s.trace);
        drawing *d = with_extra(m, infer_drawing(s.trace));
        char *text = drawing_text(d);
        trace_free(s.trace);
        m->inferred_from = bytes;
        if (m->inferred_text != NULL && strcmp(text, m->inferred_text) == 0)
            drawing_free(d);
        else
            begin_anew(m, d, COLORS_ANEW);
        g_free(m->inferred_text);
        m->inferred_text = text;
    }
    m->prepared = true;
}

/* ---- reading ---- */

static void count_bytes(model *m)
{
    uint64_t done = 0;
    for (guint i = 0; i < m->sources->len; i++)
        done += ((const source *)g_ptr_array_index(m->sources, i))->at;
    m->done_bytes = done;
    m->all_bytes = MAX(bytes_there(m), done);
}

/* Events that the store has met and the drawing does not have become points of it. */
static void add_found_points(model *m)
{
    const store *s = m->store;
    for (size_t i = m->drawing->points->len; i < s->point_count; i++) {
        const char *event = names_text(s->names.events, s->found[i - s->spec->point_count]);
        drawing_add_point(m->drawing, event, event);
    }
}

static void assign_colors(model *m, colors_mode mode)
{
    colors_assign(m->colors, m->store, mode);
    m->colored_us = g_get_monotonic_time();
}

/* Forgets the oldest records beyond what is to be kept, and their text where that is the model's own. */
static void drop_oldest(model *m)
{
    store *s = m->store;
    uint32_t first = s->first;
    store_drop(s, model_records_most(m));
    if (s->first == first || s->first == s->count)
        return;
    unsigned text = place_text(store_place(s, s->first));
    uint64_t least = UINT64_MAX;
    for (uint32_t record = s->first; record < MIN(s->count, s->first + STORE_CHUNK); record++)
        if (place_text(store_place(s, record)) == text)
            least = MIN(least, place_offset(store_place(s, record)));
    text_file_forget(&g_array_index(m->texts, text_file, text), least);
}

static void take_rows(model *m, batch *rows)
{
    model_lock(m);
    store_append(m->store, rows);
    if (model_records_most(m) > 0)
        drop_oldest(m);
    add_found_points(m);
    if (g_get_monotonic_time() - m->colored_us > COLORS_EVERY_MS * 1000)
        assign_colors(m, COLORS_MORE);
    model_unlock(m);
    m->generation++;
    m->unsettled = true;
}

/* Whether somebody wants something else than what is being read. */
static bool is_interrupted(const model *m)
{
    return m->stopping || m->filter_changed || m->drawing_changed || m->extra_changed;
}

typedef struct reading_part {
    model *model;
    source *source;
    extractor *extractor;
    bool met_nul;
} reading_part;

static bool take_part(void *user, scan_part *part)
{
    reading_part *r = user;
    if (part->met_nul && !r->source->text.is_spill) {
        r->met_nul = true;
        return false;
    }
    source_decode_odd(r->source, part, r->extractor);
    if (part->end > part->from) {
        r->source->at = part->end;
        if (part->print != 0)
            prints_add(&r->source->prints, part->from, part->end, part->print);
        model_lock(r->model);
        g_array_index(r->model->jobs, scan_job, r->source->number).to = part->end;
        model_unlock(r->model);
    }
    if (part->rows.count > 0)
        take_rows(r->model, &part->rows);
    count_bytes(r->model);
    return !is_interrupted(r->model);
}

static extractor *new_extractor(const model *m)
{
    extractor *x = g_new0(extractor, 1);
    x->spec = m->store->spec;
    x->names = m->store->names;
    x->filter = m->filter;
    return x;
}

static uint64_t index_least(const model *m)
{
    return m->options.index_least > 0 ? m->options.index_least : INDEX_LEAST;
}

/* The only log, when it is one whose store is worth keeping; NULL otherwise. */
static source *indexed_source(const model *m)
{
    if (m->filter != NULL || m->options.no_index || model_records_most(m) > 0 || m->sources->len != 1)
        return NULL;
    source *s = g_ptr_array_index(m->sources, 0);
    return s->path != NULL && s->text.fd >= 0 && !s->text.is_spill && text_file_size(&s->text) >= index_least(m) ? s
                                                                                                                 : NULL;
}

static void scan_source(model *m, source *s)
{
    scan_job job = source_job(s);
    reading_part r = {m, s, new_extractor(m), false};
    job.spec = m->store->spec;
    job.names = m->store->names;
    job.filter = m->filter;
    job.has_prints = m->filter == NULL && indexed_source(m) == s;
    scan_run(&job, take_part, &r);
    g_free(r.extractor);
    if (r.met_nul && source_read_as_records(s)) { /* blocks among the text: all of it comes as records instead */
        m->prepared = false;
        m->inferred_from = 0;
        g_clear_pointer(&m->inferred_text, g_free);
        begin_anew(m, drawing_copy(m->drawing), COLORS_ANEW);
    }
}

static void finish_source(model *m, source *s)
{
    extractor *x = new_extractor(m);
    batch rows = {0};
    batch_clear(&rows, m->store->spec->layers);
    source_finish(s, &rows, x);
    if (rows.count > 0)
        take_rows(m, &rows);
    batch_free(&rows);
    g_free(x);
}

static void number_text(model *m, source *s)
{
    model_lock(m);
    s->number = m->texts->len;
    g_array_append_val(m->texts, s->text);
    scan_job job = source_job(s);
    job.to = job.from = 0;
    g_array_append_val(m->jobs, job);
    model_unlock(m);
}

static void take_over_sources(model *m)
{
    model_lock(m);
    for (guint i = 0; i < m->fresh->len; i++)
        g_ptr_array_add(m->sources, g_ptr_array_index(m->fresh, i));
    m->checked = m->checked && m->fresh->len == 0;
    guint first = m->sources->len - m->fresh->len;
    g_ptr_array_set_size(m->fresh, 0);
    model_unlock(m);
    for (guint i = first; i < m->sources->len; i++) {
        source *s = g_ptr_array_index(m->sources, i);
        if (s->text.fd >= 0)
            number_text(m, s);
    }
}

static void try_index(model *m)
{
    source *s = indexed_source(m);
    if (m->index_tried || m->sources->len == 0)
        return;
    m->index_tried = true;
    if (s == NULL)
        return;
    index_found found;
    if (!index_read(s->path, &s->text, m->inferred ? NULL : m->drawing, &found))
        return;
    model_lock(m);
    store *old_store = m->store;
    drawing *old_drawing = m->drawing;
    m->store = found.store;
    m->drawing = found.drawing;
    assign_colors(m, COLORS_ANEW);
    s->at = found.at;
    g_array_index(m->jobs, scan_job, s->number).to = found.at;
    model_unlock(m);
    store_free(old_store);
    drawing_free(old_drawing);
    prints_free(&s->prints);
    s->prints = found.prints;
    m->prepared = m->index_written = true;
    m->inferred_from = m->indexed_at = found.at;
    m->generation++;
    m->is_sure = found.is_sure;
    m->verified = (index_position){0};
    m->verified_prints = 0;
    m->opened_us = g_get_monotonic_time();
    /* What is large is looked at only where somebody has a picture meanwhile. */
    m->verifying = m->started || found.store->mapped_size < VERIFIED_AT_ONCE ? VERIFY_INDEX : VERIFY_LOG;
}

static void tell(model *m, char *text);

/* Whether what the index is of has pieces that were not looked at yet. */
static bool prints_to_verify(const model *m, const source *s)
{
    return m->verified_prints < s->prints.count && s->prints.all[m->verified_prints].end <= m->indexed_at;
}

/* The index was of no use: all is read again. */
static void discard_index(model *m, source *s)
{
    index_remove(s->path);
    m->prepared = m->index_written = m->index_settled = false;
    m->inferred_from = m->indexed_at = 0;
    m->verifying = VERIFY_NOTHING;
    prints_free(&s->prints);
    begin_anew(m, drawing_copy(m->drawing), COLORS_ANEW);
    m->generation++;
}

/*
 * Looks on whether the index that was found is as it was written, and, unless that is sure, whether the log is the one
 * that it is of. Returns whether there is more to be done.
 */
static bool verify(model *m)
{
    source *s = m->verifying != VERIFY_NOTHING ? indexed_source(m) : NULL;
    if (s == NULL)
        return false; /* while there is a filter it waits */
    if (m->started && g_get_monotonic_time() - m->opened_us < VERIFY_AFTER_MS * 1000)
        return false;
    if (m->verifying == VERIFY_INDEX) {
        index_state state = index_check(m->store, &m->verified, VERIFIED_EACH_TIME);
        if (state == INDEX_DAMAGED)
            discard_index(m, s);
        else if (state == INDEX_SOUND)
            m->verifying = VERIFY_LOG;
        return true;
    }
    for (unsigned i = 0; i < VERIFIED_PIECES && !m->is_sure && prints_to_verify(m, s); i++)
        if (!prints_is_same(&s->prints, m->verified_prints++, s->text.fd)) {
            tell(m, g_strdup_printf("%s was changed since it was last opened: it is read anew.", s->url));
            discard_index(m, s);
            return true;
        }
    if (!m->is_sure && prints_to_verify(m, s))
        return true;
    if (!m->is_sure)
        index_confirm(m->store, s->path, &s->text);
    m->verifying = VERIFY_NOTHING;
    return false;
}

static bool has_read_all(const model *m)
{
    for (guint i = 0; i < m->sources->len; i++) {
        const source *s = g_ptr_array_index(m->sources, i);
        bool is_open = s->reader != NULL && !s->reader_ended;
        if (is_open || s->text.fd < 0 || s->at + LAST_LINE < text_file_size(&s->text))
            return false;
    }
    return m->sources->len > 0;
}

/* The store is of all that there is: keeps it so. */
static void keep_full(model *m)
{
    for (guint i = 0; i < m->sources->len; i++) {
        source *s = g_ptr_array_index(m->sources, i);
        s->full_at = s->at;
    }
    model_lock(m);
    store_settle(m->store);
    model_unlock(m);
    m->full = m->store;
}

/* Keeps what a filter has left, when it is of all that the full store is of, and there is room beside the others. */
static void keep(model *m, const char *filter, const drawing *d, store *s)
{
    uint64_t records = s->count;
    bool is_whole = true;
    for (guint i = 0; i < m->sources->len; i++) {
        const source *from = g_ptr_array_index(m->sources, i);
        is_whole = is_whole && from->at == from->full_at;
    }
    if (!is_whole || filter == NULL || records > m->full->count / 2) {
        store_free(s);
        return;
    }
    for (GList *at = m->kept.head; at != NULL; at = at->next)
        records += ((const kept *)at->data)->store->count;
    for (; m->kept.length > 0 && (records > m->full->count || m->kept.length >= KEPT_MOST);) {
        kept *oldest = g_queue_pop_tail(&m->kept);
        records -= oldest->store->count;
        free_kept(oldest);
    }
    kept *fresh = g_new0(kept, 1);
    *fresh = (kept){g_strdup(filter), s, drawing_copy(d)};
    g_queue_push_head(&m->kept, fresh);
}

/* What the filter has left before, its drawing in *d; NULL when that is not known. */
static store *take_kept(model *m, drawing **d)
{
    for (GList *at = m->kept.head; at != NULL && m->filter != NULL; at = at->next) {
        kept *k = at->data;
        if (strcmp(k->filter, nl_filter_text(m->filter)) != 0)
            continue;
        store *s = k->store;
        drawing_free(*d);
        *d = k->drawing;
        k->store = NULL;
        k->drawing = NULL;
        free_kept(k);
        g_queue_delete_link(&m->kept, at);
        return s;
    }
    return NULL;
}

/*
 * Shows what the filter leaves without reading the logs again, where the store of all is here and that is enough, or
 * the same filter was there before; or all, when there is no filter any more. The store of all is kept as long as
 * nothing new comes. former is the text of the filter until now; NULL: there was none.
 */
static bool take_from_full(model *m, const char *former)
{
    if (m->full == NULL && former == NULL && model_records_most(m) == 0 && has_read_all(m))
        keep_full(m);
    if (m->full == NULL)
        return false;
    drawing *d = drawing_copy(m->drawing);
    store *fresh = m->filter == NULL ? m->full : take_kept(m, &d);
    if (fresh == NULL && subset_is_enough(m->filter))
        fresh = subset_new(m->full, m->filter, d, &m->stopping);
    bool read_again = fresh == NULL;
    if (read_again)
        fresh = new_store(d, m->inferred);
    drawing *old_drawing = drawing_copy(m->drawing);
    store *old = replace_store(m, fresh, d, COLORS_AGAIN);
    if (old != m->full)
        keep(m, former, old_drawing, old);
    drawing_free(old_drawing);
    for (guint i = 0; i < m->sources->len; i++) {
        source *s = g_ptr_array_index(m->sources, i);
        if (read_again)
            source_rewind(s);
        else
            s->at = s->full_at;
    }
    return true;
}

static void take_over_filter(model *m)
{
    model_lock(m);
    bool changed = m->filter_changed;
    nl_filter *old = m->filter;
    if (changed) {
        m->filter = m->next_filter;
        m->next_filter = NULL;
        m->filter_changed = false;
    }
    model_unlock(m);
    if (!changed)
        return;
    char *former = old != NULL ? g_strdup(nl_filter_text(old)) : NULL;
    nl_filter_free(old);
    if (take_from_full(m, former)) {
        m->index_tried = true;
    } else {
        begin_anew(m, drawing_copy(m->drawing), COLORS_AGAIN);
        m->index_tried = m->filter != NULL;
        m->index_written = m->index_settled = false;
    }
    g_free(former);
    m->prepared = true;
    m->unsettled = true;
    m->generation++;
}

/* Another drawing than before, or something else beside it: likewise, unless an index has it. */
static void take_over_drawing(model *m)
{
    model_lock(m);
    bool changed = m->drawing_changed, has_extra = m->extra_changed;
    if (changed) {
        drawing_free(m->given);
        m->given = m->next_drawing;
    }
    if (has_extra) {
        drawing_free(m->extra);
        m->extra = m->next_extra;
    }
    m->next_drawing = m->next_extra = NULL;
    m->drawing_changed = m->extra_changed = false;
    model_unlock(m);
    if (!changed && !has_extra)
        return;
    drawing *d = m->given != NULL ? with_extra(m, drawing_copy(m->given)) : NULL;
    m->inferred = d == NULL;
    m->prepared = d != NULL;
    m->inferred_from = 0;
    g_clear_pointer(&m->inferred_text, g_free);
    begin_anew(m, d != NULL ? d : drawing_new(), COLORS_ANEW);
    m->index_tried = m->filter != NULL;
    m->index_written = false;
    m->unsettled = true;
    m->generation++;
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

bool model_is_inferred(const model *m)
{
    return m->inferred;
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

GArray *model_jobs(const model *m)
{
    GArray *jobs = g_array_new(FALSE, FALSE, sizeof(scan_job));
    g_array_append_vals(jobs, m->jobs->data, m->jobs->len);
    return jobs;
}

/* ---- what is told ---- */

/* Tells it, once; text is taken over. */
static void tell(model *m, char *text)
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

static void take_notice(model *m, source *s)
{
    if (s->notice == NULL)
        return;
    tell(m, s->notice);
    s->notice = NULL;
}

static bool is_empty_file(const source *s)
{
    GStatBuf status;
    return s->path != NULL && s->at == 0 && g_stat(s->path, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_size == 0;
}

/* What is odd about the logs, once all there is was read, the first time. */
static void check(model *m)
{
    if (m->checked || m->sources->len == 0 || m->filter != NULL)
        return;
    m->checked = true;
    for (guint i = 0; i < m->sources->len; i++) {
        const source *s = g_ptr_array_index(m->sources, i);
        if (is_empty_file(s))
            tell(m, g_strdup_printf("%s is empty so far; what is written to it will be shown.", s->url));
        else if (s->text.fd >= 0 && !s->text.is_spill && text_file_size(&s->text) > s->at)
            tell(m, g_strdup_printf("The last line of %s is cut short; it is shown once it is whole.", s->url));
    }
    const source *only = m->sources->len == 1 ? g_ptr_array_index(m->sources, 0) : NULL;
    GPtrArray *found = g_ptr_array_new();
    checks_add(m->store, only != NULL && only->path != NULL, found);
    for (guint i = 0; i < found->len; i++)
        tell(m, g_ptr_array_index(found, i));
    g_ptr_array_free(found, TRUE);
}

/* Reads on wherever there is something. False when nothing was, *ended when nothing will be. */
static bool read_on(model *m, bool *ended)
{
    bool any = false;
    *ended = true;
    take_over_sources(m);
    take_over_filter(m);
    take_over_drawing(m);
    try_index(m);
    for (guint i = 0; i < m->sources->len && !m->stopping; i++) {
        source *s = g_ptr_array_index(m->sources, i);
        bool had_ended = s->ended;
        source_state state = source_look(s);
        take_notice(m, s);
        if (state == SOURCE_NEW) {
            number_text(m, s);
            any = true;
        }
        prepare(m);
        if (state == SOURCE_MORE) {
            scan_source(m, s);
            if (s->at > s->full_at)
                forget_full(m); /* there is more now, of which it does not know */
            any = true;
        }
        if (state == SOURCE_ENDED && !had_ended)
            finish_source(m, s);
        *ended = *ended && state == SOURCE_ENDED;
    }
    count_bytes(m);
    return any;
}

/* Nothing more for the moment: what was laid by gets its place, and a large log its index. */
static void settle(model *m)
{
    if (!m->unsettled)
        return;
    model_lock(m);
    store_settle(m->store);
    model_unlock(m);
    store_color_objects(m->store); /* takes long: nobody waits for it */
    model_lock(m);
    add_found_points(m);
    /* By name, once all is known; but who has seen them in another order, before there was a filter, goes on so. */
    bool is_first = !m->index_written && m->filter == NULL && m->full == NULL;
    assign_colors(m, is_first ? COLORS_ANEW : COLORS_MORE);
    m->has_expected = false;
    model_unlock(m);
    m->unsettled = false;
    m->generation++;
}

/* An index is written anew when the log has grown by enough to be worth it: much, or, since it was opened, a little. */
static void write_index(model *m)
{
    source *s = indexed_source(m);
    if (s == NULL || s->at < m->indexed_at || m->verifying != VERIFY_NOTHING)
        return;
    uint64_t enough = m->index_settled ? MAX(index_least(m), m->indexed_at / 8) : index_least(m);
    m->index_settled = true;
    if (m->index_written && s->at - m->indexed_at < enough)
        return;
    m->index_written = true; /* or can't be */
    m->indexed_at = s->at;
    if (prints_complete(&s->prints, s->text.fd))
        index_write(m->store, m->drawing, m->inferred, s->path, &s->text, s->at, &s->prints, &m->stopping);
}

void model_load(model *m)
{
    for (bool ended = false; !ended;) {
        bool any = read_on(m, &ended);
        if (!any && !ended)
            g_usleep(1000);
        while (ended && verify(m))
            ended = m->verifying != VERIFY_NOTHING; /* otherwise it was of no use */
    }
    settle(m);
    write_index(m);
}

static void *load(void *user)
{
    model *m = user;
    while (!m->stopping) {
        bool ended;
        if (read_on(m, &ended))
            continue;
        settle(m);
        check(m);
        if (verify(m))
            continue;
        write_index(m);
        g_usleep(WAIT_MS * 1000);
    }
    return NULL;
}

void model_start(model *m)
{
    m->started = pthread_create(&m->thread, NULL, load, m) == 0;
    if (!m->started)
        program_fail(PROGRAM_PROBLEM, "no thread can be made");
}

/* ---- asking ---- */

void model_lock(model *m)
{
    pthread_mutex_lock(&m->lock);
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

bool model_record_at(const model *m, uint64_t place, void (*take)(void *user, const nl_record *record), void *user)
{
    return place_text(place) < m->texts->len &&
           text_file_record(&g_array_index(m->texts, text_file, place_text(place)), place_offset(place), take, user);
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
    double error_ns = store_clock_error_ns(s, store_host(s, record), record);
    if (error_ns >= 1000)
        g_string_append_printf(text, "  (clock \302\261 %g ms)", error_ns / 1e6);
    if (!model_record(m, record, append_fields, text))
        g_string_append(text, "  (no longer in the log)");
    char *valid = g_utf8_make_valid(text->str, (gssize)text->len);
    g_string_free(text, TRUE);
    return valid;
}
