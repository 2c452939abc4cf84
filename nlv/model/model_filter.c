/* Another filter or drawing than before: what it shows is had without reading all again, where that is possible. */
#include "config.h"

#include "model/model_private.h"

#include "model/subset.h"
#include "filter/filter_text.h"

#include <string.h>

enum {
    KEPT_MAX = 8, /* results of filters */
};

/* What a filter has left, for when it is asked for again. */
typedef struct kept {
    char *filter;
    store *store;
    drawing *drawing;
} kept;

static void free_kept(kept *k)
{
    if (k == NULL)
        return;
    g_free(k->filter);
    store_free(k->store);
    drawing_free(k->drawing);
    g_free(k);
}

void model_forget_full(model *m)
{
    while (m->kept.length > 0)
        free_kept(g_queue_pop_head(&m->kept));
    if (m->full != m->store)
        store_free(m->full);
    m->full = NULL;
}

size_t model_kept_memory(const model *m)
{
    size_t sum = m->full != NULL && m->full != m->store ? store_memory(m->full) : 0;
    for (const GList *at = m->kept.head; at != NULL; at = at->next)
        sum += store_memory(((const kept *)at->data)->store);
    return sum;
}

static bool has_read_all(const model *m)
{
    for (guint i = 0; i < m->sources->len; i++)
        if (!source_has_read_all(g_ptr_array_index(m->sources, i)))
            return false;
    return m->sources->len > 0;
}

/* The store is of all that there is: keeps it so. */
static void keep_full(model *m)
{
    for (guint i = 0; i < m->sources->len; i++) {
        source *s = g_ptr_array_index(m->sources, i);
        s->full_current = s->current;
        s->full_at = s->at;
    }
    model_lock(m);
    store_settle(m->store);
    model_unlock(m);
    m->full = m->store;
}

/* Keeps what a filter has left, when it is of all that the full store is of, and there is room beside the others. */
static void model_filter_keep(model *m, const char *filter, const drawing *d, store *s)
{
    uint64_t records = s->count;
    bool is_whole = true;
    for (guint i = 0; i < m->sources->len; i++) {
        const source *from = g_ptr_array_index(m->sources, i);
        is_whole = is_whole && from->current == from->full_current && from->at == from->full_at;
    }
    if (!is_whole || filter == NULL || records > m->full->count / 2) {
        store_free(s);
        return;
    }
    for (GList *at = m->kept.head; at != NULL; at = at->next)
        records += ((const kept *)at->data)->store->count;
    while (m->kept.length > 0 &&
           (records > m->full->count || m->kept.length >= KEPT_MAX || model_memory(m) > m->memory_max)) {
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
    if (m->full == NULL && former == NULL && model_records_max(m) == 0 && has_read_all(m) && !m->is_full &&
        store_missing(m->store) == 0 && model_memory(m) <= m->memory_max / 2)
        keep_full(m);
    if (m->full == NULL)
        return false;
    drawing *d = drawing_copy(m->drawing);
    store *fresh = m->filter == NULL ? m->full : take_kept(m, &d);
    if (fresh == NULL && subset_is_enough(m->filter))
        fresh = subset_new(m->full, m->filter, d, &m->stopping);
    bool read_again = fresh == NULL;
    if (read_again)
        fresh = model_new_store(d, m->inferred);
    drawing *old_drawing = drawing_copy(m->drawing);
    store *old = model_replace_store(m, fresh, d, COLORS_AGAIN);
    if (old != m->full)
        model_filter_keep(m, former, old_drawing, old);
    drawing_free(old_drawing);
    for (guint i = 0; i < m->sources->len; i++) {
        source *s = g_ptr_array_index(m->sources, i);
        if (read_again)
            source_rewind(s);
        else if (s->current == s->full_current)
            s->at = s->full_at;
    }
    return true;
}

void model_take_over_filter(model *m)
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
        model_begin_anew(m, drawing_copy(m->drawing), COLORS_AGAIN);
        m->index_tried = m->filter != NULL;
        m->index_written = m->index_settled = false;
    }
    g_free(former);
    m->prepared = true;
    m->unsettled = true;
    m->generation++;
}

/* Another drawing than before, or something else beside it: likewise, unless an index has it. */
void model_take_over_drawing(model *m)
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
    drawing *d = m->given != NULL ? model_with_extra(m, drawing_copy(m->given)) : NULL;
    m->inferred = d == NULL;
    m->prepared = d != NULL;
    m->inferred_from = 0;
    g_clear_pointer(&m->inferred_text, g_free);
    model_begin_anew(m, d != NULL ? d : drawing_new(), COLORS_ANEW);
    m->index_tried = m->filter != NULL;
    m->index_written = false;
    m->unsettled = true;
    m->generation++;
}
