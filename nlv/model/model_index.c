/* The index beside the only log: found, looked through, given up, written. */
#include "config.h"

#include "model/model_private.h"

#include "model/index.h"

enum {
    VERIFIED_AT_ONCE = 256 << 20,
    VERIFIED_EACH_TIME = 16 << 20, /* bytes, before it is looked whether there is something more urgent */
    VERIFY_AFTER_MS = 1000,        /* once the first picture had the disk for itself */
    VERIFIED_PIECES = 16,          /* of the log, likewise */
    INDEX_MIN = 64 << 20,          /* bytes of a text log: a smaller one is read again as fast */
    BLOCKS_ARE_DENSER = 8,         /* text has at least so many times the bytes of blocks */
};

static uint64_t index_least(const model *m, const log_file *f)
{
    uint64_t least = m->options.index_least > 0 ? m->options.index_least : INDEX_MIN;
    return f->format == NL_FORMAT_NLB ? (least + BLOCKS_ARE_DENSER - 1) / BLOCKS_ARE_DENSER : least;
}

/* The only log, when it is one whose store is worth keeping; NULL otherwise. */
source *model_indexed_source(const model *m)
{
    if (m->filter != NULL || m->clocks != NULL || m->options.no_index || model_records_max(m) > 0 || m->is_full ||
        m->sources->len != 1)
        return NULL;
    source *s = g_ptr_array_index(m->sources, 0);
    const log_file *f = s->files->len == 1 && s->archive == NULL ? source_file(s) : NULL;
    return f != NULL && !f->is_spill && log_file_size(f) >= index_least(m, f) ? s : NULL;
}

void model_try_index(model *m)
{
    source *s = model_indexed_source(m);
    if (m->index_tried || m->sources->len == 0)
        return;
    m->index_tried = true;
    if (s == NULL)
        return;
    index_found found;
    if (!index_read(s->path, source_file(s), m->inferred ? NULL : m->drawing, &found))
        return;
    store_free(model_replace_store(m, found.store, found.drawing, COLORS_ANEW));
    model_lock(m);
    source_skip_to(s, found.at);
    source_file(s)->scanned = found.at;
    if (source_file(s)->format == NL_FORMAT_NLB)
        log_file_add_blocks(source_file(s), found.blocks);
    model_unlock(m);
    g_array_free(found.blocks, TRUE);
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
    model_lock(m);
    source_forget_blocks(s);
    model_unlock(m);
    model_begin_anew(m, drawing_copy(m->drawing), COLORS_ANEW);
    m->generation++;
}

/*
 * Looks on whether the index that was found is as it was written, and, unless that is sure, whether the log is the one
 * that it is of. Returns whether there is more to be done.
 */
bool model_verify(model *m)
{
    source *s = m->verifying != VERIFY_NOTHING ? model_indexed_source(m) : NULL;
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
        if (!prints_is_same(&s->prints, m->verified_prints++, source_file(s)->fd)) {
            model_tell(m, g_strdup_printf("%s was changed since it was last opened: it is read anew.", s->url));
            discard_index(m, s);
            return true;
        }
    if (!m->is_sure && prints_to_verify(m, s))
        return true;
    if (!m->is_sure)
        index_confirm(m->store, s->path, source_file(s));
    m->verifying = VERIFY_NOTHING;
    return false;
}

/* An index is written anew when the log has grown by enough to be worth it: much, or, since it was opened, a little. */
void model_write_index(model *m)
{
    source *s = model_indexed_source(m);
    if (s == NULL || s->at < m->indexed_at || m->verifying != VERIFY_NOTHING)
        return;
    uint64_t enough =
        m->index_settled ? MAX(index_least(m, source_file(s)), m->indexed_at / 8) : index_least(m, source_file(s));
    m->index_settled = true;
    if (m->index_written && s->at - m->indexed_at < enough)
        return;
    m->index_written = true; /* or can't be */
    m->indexed_at = s->at;
    if (prints_complete(&s->prints, source_file(s)->fd))
        index_write(m->store, m->drawing, m->inferred, s->path, source_file(s), s->at, &s->prints, &m->stopping);
}
