/* The thread that reads the logs, and all that it does in turn. */
#include "config.h"

#include "model/model_private.h"

#include "model/checks.h"

#include <glib/gstdio.h>
#include <sys/stat.h>

enum { WAIT_MS = 20, COLORS_EVERY_MS = 200 };

static void count_bytes(model *m)
{
    uint64_t done = 0;
    for (guint i = 0; i < m->sources->len; i++)
        done += source_done(g_ptr_array_index(m->sources, i));
    m->done_bytes = done;
    m->all_bytes = m->is_full ? done : MAX(model_bytes_there(m), done);
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

/* Forgets the bytes of the records that were forgotten, where the file is the model's own. */
static void forget_bytes(model *m)
{
    const store *s = m->store;
    unsigned file = place_file(store_place(s, s->first));
    uint64_t first_left = UINT64_MAX;
    for (uint32_t record = s->first; record < MIN(s->count, s->first + STORE_CHUNK); record++)
        if (place_file(store_place(s, record)) == file)
            first_left = MIN(first_left, place_position(store_place(s, record)));
    log_file_forget(g_ptr_array_index(m->files, file), first_left);
}

/* Forgets the oldest records beyond the number that is kept. */
static void drop_oldest(model *m)
{
    uint32_t first = m->store->first;
    store_drop(m->store, model_records_max(m));
    if (m->store->first > first && m->store->first < m->store->count)
        forget_bytes(m);
}

/* Forgets what is kept for filters, then the oldest records, until the model keeps within its memory limit. */
static void keep_within_memory(model *m)
{
    if (model_memory(m) <= m->memory_max)
        return;
    model_forget_full(m);
    size_t others = model_memory(m) - store_memory(m->store);
    uint32_t first = m->store->first;
    bool shrunk = others < m->memory_max && store_shrink(m->store, m->memory_max - others);
    if (shrunk && m->store->first > first)
        forget_bytes(m);
    m->is_full = !shrunk;
}

static void take_rows(model *m, batch *rows)
{
    model_lock(m);
    store_append(m->store, rows);
    keep_within_memory(m);
    if (model_records_max(m) > 0)
        drop_oldest(m);
    add_found_points(m);
    if (g_get_monotonic_time() - m->colored_us > COLORS_EVERY_MS * 1000)
        model_assign_colors(m, COLORS_MORE);
    model_unlock(m);
    m->generation++;
    m->unsettled = true;
}

/* Whether somebody wants something else than what is being read. */
static bool is_interrupted(const model *m)
{
    return m->stopping || m->is_full || m->filter_changed || m->drawing_changed || m->extra_changed;
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
    if (part->met_nul) {
        r->met_nul = true;
        return false;
    }
    source_decode_odd(r->source, part, r->extractor);
    if (part->end > part->from) {
        r->source->at = part->end;
        if (part->print != 0)
            prints_add(&r->source->prints, part->from, part->end, part->print);
        model_lock(r->model);
        log_file *f = source_file(r->source);
        f->scanned = MAX(f->scanned, part->end);
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
    x->clocks = m->clocks;
    return x;
}

/* In a log of blocks, finds those that come next. */
static void cut_blocks(model *m, source *s)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(log_block));
    source_cut(s, found);
    model_lock(m);
    if (found->len > 0)
        log_file_add_blocks(source_file(s), found);
    keep_within_memory(m);
    model_unlock(m);
    g_array_free(found, TRUE);
}

static void scan_source(model *m, source *s)
{
    cut_blocks(m, s);
    scan_job job = source_job(s);
    reading_part r = {m, s, new_extractor(m), false};
    job.spec = m->store->spec;
    job.names = m->store->names;
    job.filter = m->filter;
    job.clocks = m->clocks;
    job.has_prints = m->filter == NULL && model_indexed_source(m) == s;
    scan_run(&job, take_part, &r);
    g_free(r.extractor);
    if (r.met_nul) { /* there are blocks among the text */
        model_lock(m);
        source_expect_blocks(s);
        model_unlock(m);
        m->prepared = false;
        m->inferred_from = 0;
        g_clear_pointer(&m->inferred_text, g_free);
        model_begin_anew(m, drawing_copy(m->drawing), COLORS_ANEW);
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

/* Gives the files that a source has opened since their numbers. */
static void number_files(model *m, const source *s)
{
    for (guint i = 0; i < s->files->len; i++) {
        log_file *f = g_ptr_array_index(s->files, i);
        if (f->is_numbered)
            continue;
        if (m->files->len == PLACE_FILES_MAX)
            program_fail(PROGRAM_PROBLEM, "too many files");
        model_lock(m);
        f->is_numbered = true;
        f->number = m->files->len;
        g_ptr_array_add(m->files, f);
        model_unlock(m);
    }
}

static void take_over_sources(model *m)
{
    model_lock(m);
    for (guint i = 0; i < m->fresh->len; i++)
        g_ptr_array_add(m->sources, g_ptr_array_index(m->fresh, i));
    m->checked = m->checked && m->fresh->len == 0;
    g_ptr_array_set_size(m->fresh, 0);
    model_unlock(m);
    for (guint i = 0; i < m->sources->len; i++)
        number_files(m, g_ptr_array_index(m->sources, i));
}

static void take_notice(model *m, source *s)
{
    if (s->notice == NULL)
        return;
    model_tell(m, s->notice);
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
            model_tell(m, g_strdup_printf("%s is empty so far; what is written to it will be shown.", s->url));
        else if (source_file(s) != NULL && !source_file(s)->is_spill && source_file(s)->format != NL_FORMAT_NLB &&
                 log_file_size(source_file(s)) > s->at)
            model_tell(m, g_strdup_printf("The last line of %s is cut short; it is shown once it is whole.", s->url));
    }
    const source *only = m->sources->len == 1 ? g_ptr_array_index(m->sources, 0) : NULL;
    GPtrArray *found = g_ptr_array_new();
    checks_add(m->store, only != NULL && only->path != NULL, found);
    for (guint i = 0; i < found->len; i++)
        model_tell(m, g_ptr_array_index(found, i));
    g_ptr_array_free(found, TRUE);
}

/* Reads on wherever there is something. False when nothing was, *ended when nothing will be. */
static bool read_on(model *m, bool *ended)
{
    bool any = false;
    *ended = true;
    take_over_sources(m);
    model_take_over_filter(m);
    model_take_over_drawing(m);
    model_try_index(m);
    for (guint i = 0; i < m->sources->len && !m->stopping && !m->is_full; i++) {
        source *s = g_ptr_array_index(m->sources, i);
        source_state state = source_look(s);
        take_notice(m, s);
        number_files(m, s);
        if (model_prepare(m)) {
            *ended = false;
            any = true;
            break;
        }
        if (state == SOURCE_MORE) {
            scan_source(m, s);
            if (s->current != s->full_current || s->at > s->full_at)
                model_forget_full(m); /* there is more now, of which it does not know */
            any = true;
        }
        if (state == SOURCE_LAST) {
            finish_source(m, s);
            source_go_on(s);
            any = true;
        }
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
    model_assign_colors(m, is_first ? COLORS_ANEW : COLORS_MORE);
    m->has_expected = false;
    char *missing = m->has_told_missing ? NULL : model_missing(m);
    model_unlock(m);
    if (missing != NULL)
        model_tell(m, missing);
    m->has_told_missing = m->has_told_missing || missing != NULL;
    m->unsettled = false;
    m->generation++;
}

void model_load(model *m)
{
    for (bool ended = false; !ended;) {
        bool any = read_on(m, &ended);
        if (!any && !ended)
            g_usleep(1000);
        while (ended && model_verify(m))
            ended = m->verifying != VERIFY_NOTHING; /* otherwise it was of no use */
        ended = ended && !model_take_over_clocks(m);
    }
    settle(m);
    model_write_index(m);
}

static void *load(void *user)
{
    model *m = user;
    while (!m->stopping) {
        bool ended;
        if (read_on(m, &ended) || model_take_over_clocks(m))
            continue;
        settle(m);
        check(m);
        if (model_verify(m))
            continue;
        model_write_index(m);
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
