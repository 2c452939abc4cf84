#include "config.h"

#include "model/index_keeper.h"

enum {
    VERIFIED_AT_ONCE = 256 << 20,  /* maximum size in bytes of an index whose checksums nlv verifies without a window */
    VERIFIED_EACH_TIME = 16 << 20, /* number of bytes of the index to verify per call */
    VERIFIED_PIECES = 16,          /* number of pieces of the log to verify per call */
    VERIFY_AFTER_MS = 1000,        /* delay of verification, so that at first the disk serves only the picture */
    BYTES_MIN_DEFAULT = 64 << 20,  /* minimum size of a text log with an index; nlv reads smaller logs fast */
    BLOCKS_ARE_DENSER = 8,         /* text has at least 8 times as many bytes as blocks with the same records */
    GROWTH_SHARE = 8,              /* nlv writes the index again after the log has grown by 1/8 */
};

struct index_keeper {
    uint64_t bytes_min;
    bool is_tried, is_written, is_settled;
    enum { VERIFY_NOTHING, VERIFY_INDEX, VERIFY_LOG } verifying;
    index_position position; /* position of verification in the index */
    size_t pieces;           /* number of verified pieces of the log */
    bool is_sure;            /* the log is unchanged since the index was written */
    gint64 opened_us;
    uint64_t indexed; /* number of bytes of the log that the index covers */
};

index_keeper *index_keeper_new(uint64_t bytes_min)
{
    index_keeper *k = g_new0(index_keeper, 1);
    k->bytes_min = bytes_min > 0 ? bytes_min : BYTES_MIN_DEFAULT;
    return k;
}

void index_keeper_free(index_keeper *k)
{
    g_free(k);
}

static uint64_t bytes_min_of(const index_keeper *k, const log_file *f)
{
    return f->format == NL_FORMAT_NLB ? (k->bytes_min + BLOCKS_ARE_DENSER - 1) / BLOCKS_ARE_DENSER : k->bytes_min;
}

bool index_keeper_wants(const index_keeper *k, const source *s)
{
    const log_file *f = s->files->len == 1 && s->archive == NULL ? source_file(s) : NULL;
    return f != NULL && !f->is_spill && log_file_size(f) >= bytes_min_of(k, f);
}

bool index_keeper_open(index_keeper *k, const source *s, const drawing *wanted, bool waits, index_found *found)
{
    bool tries = !k->is_tried;
    k->is_tried = true;
    if (!tries || s == NULL || !index_read(s->path, source_file(s), wanted, found))
        return false;
    k->is_written = true;
    k->indexed = found->at;
    k->is_sure = found->is_sure;
    k->position = (index_position){0};
    k->pieces = 0;
    k->opened_us = g_get_monotonic_time();
    k->verifying = waits || found->store->mapped_size < VERIFIED_AT_ONCE ? VERIFY_INDEX : VERIFY_LOG;
    return true;
}

void index_keeper_reset(index_keeper *k, bool tries)
{
    k->is_tried = !tries;
    k->is_written = k->is_settled = false;
    k->verifying = VERIFY_NOTHING;
}

void index_keeper_pause(index_keeper *k)
{
    k->is_tried = true;
}

bool index_keeper_has_written(const index_keeper *k)
{
    return k->is_written;
}

bool index_keeper_is_verifying(const index_keeper *k)
{
    return k->verifying != VERIFY_NOTHING;
}

static bool has_more_pieces(const index_keeper *k, const source *log)
{
    return !k->is_sure && k->pieces < log->prints.count && log->prints.all[k->pieces].end <= k->indexed;
}

index_verdict index_keeper_verify(index_keeper *k, const store *s, const source *log, bool waits)
{
    if (k->verifying == VERIFY_NOTHING ||
        (waits && g_get_monotonic_time() - k->opened_us < VERIFY_AFTER_MS * INT64_C(1000)))
        return INDEX_KEEPER_DONE;
    if (k->verifying == VERIFY_INDEX) {
        index_state state = index_check(s, &k->position, VERIFIED_EACH_TIME);
        if (state == INDEX_SOUND)
            k->verifying = VERIFY_LOG;
        return state == INDEX_DAMAGED ? INDEX_KEEPER_DAMAGED : INDEX_KEEPER_MORE;
    }
    for (unsigned i = 0; i < VERIFIED_PIECES && has_more_pieces(k, log); i++)
        if (!prints_is_same(&log->prints, k->pieces++, source_file(log)->fd))
            return INDEX_KEEPER_CHANGED;
    if (has_more_pieces(k, log))
        return INDEX_KEEPER_MORE;
    if (!k->is_sure)
        index_confirm(s, log->path, source_file(log));
    k->verifying = VERIFY_NOTHING;
    return INDEX_KEEPER_DONE;
}

void index_keeper_discard(index_keeper *k, source *log)
{
    index_remove(log->path);
    prints_free(&log->prints);
    index_keeper_reset(k, false);
    k->indexed = 0;
}

void index_keeper_write(index_keeper *k, const store *s, const drawing *d, bool is_inferred, source *log,
                        const atomic_bool *stopping)
{
    if (log->at < k->indexed || k->verifying != VERIFY_NOTHING)
        return;
    uint64_t growth_min = bytes_min_of(k, source_file(log));
    if (k->is_settled)
        growth_min = MAX(growth_min, k->indexed / GROWTH_SHARE);
    k->is_settled = true;
    if (k->is_written && log->at - k->indexed < growth_min)
        return;
    k->is_written = true; /* set even on failure, so that nlv does not try again */
    k->indexed = log->at;
    if (prints_complete(&log->prints, source_file(log)->fd))
        index_write(s, d, is_inferred, log->path, source_file(log), log->at, &log->prints, stopping);
}
