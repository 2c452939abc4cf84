#include "config.h"

#include "model/full_store.h"

/* The position up to which the full store contains a source's records. */
typedef struct reached {
    guint file;
    uint64_t offset;
} reached;

struct full_store {
    store *store;
    GArray *reached; /* one element for each source */
};

full_store *full_store_new(void)
{
    full_store *f = g_new0(full_store, 1);
    f->reached = g_array_new(FALSE, FALSE, sizeof(reached));
    return f;
}

void full_store_free(full_store *f, const store *shown)
{
    full_store_forget(f, shown);
    g_array_free(f->reached, TRUE);
    g_free(f);
}

void full_store_keep(full_store *f, store *shown, const GPtrArray *sources)
{
    f->store = shown;
    g_array_set_size(f->reached, 0);
    for (guint i = 0; i < sources->len; i++) {
        const source *s = g_ptr_array_index(sources, i);
        reached r = {s->current, s->at};
        g_array_append_val(f->reached, r);
    }
}

store *full_store_get(const full_store *f)
{
    return f->store;
}

void full_store_skip(const full_store *f, const GPtrArray *sources)
{
    for (guint i = 0; i < f->reached->len; i++) {
        source *s = g_ptr_array_index(sources, i);
        const reached *r = &g_array_index(f->reached, reached, i);
        if (s->current == r->file)
            s->at = r->offset;
    }
}

bool full_store_is_behind(const full_store *f, const GPtrArray *sources)
{
    if (f->store == NULL)
        return false;
    bool is_behind = sources->len != f->reached->len;
    for (guint i = 0; i < f->reached->len && !is_behind; i++) {
        const source *s = g_ptr_array_index(sources, i);
        const reached *r = &g_array_index(f->reached, reached, i);
        is_behind = s->current != r->file || s->at > r->offset;
    }
    return is_behind;
}

void full_store_forget(full_store *f, const store *shown)
{
    if (f->store != shown)
        store_free(f->store);
    f->store = NULL;
}
