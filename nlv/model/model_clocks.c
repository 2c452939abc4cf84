/* The hosts' clocks set right: what the logs hold of them is learnt, and all is read again with other times. */
#include "config.h"

#include "model/model_private.h"

#include "model/checks.h"

#include <math.h>

enum { HOSTS_NAMED = 5 };

void model_correct_clocks(model *m, bool correct)
{
    m->corrects_clocks = correct;
    m->clocks_changed = true;
    m->unsettled = true;
}

bool model_corrects_clocks(const model *m)
{
    return m->corrects_clocks;
}

bool model_has_right_clocks(const model *m)
{
    return m->clocks != NULL;
}

/* ---- learning ---- */

typedef struct learning {
    model *model;
    correction *clocks;
    uint64_t done; /* bytes of the files before */
} learning;

static void learn(void *user, const nl_record *record)
{
    const learning *l = user;
    correction_learn(l->clocks, record);
}

static bool go_on(void *user, uint64_t at)
{
    const learning *l = user;
    l->model->done_bytes = l->done + at;
    return !l->model->stopping;
}

/* What the logs say of the clocks, all of them read for it. */
static correction *learn_clocks(model *m)
{
    learning l = {m, correction_new(&(correction_options){0}), 0};
    m->all_bytes = 0;
    for (guint i = 0; i < m->files->len; i++)
        m->all_bytes += ((const log_file *)g_ptr_array_index(m->files, i))->scanned;
    for (guint i = 0; i < m->files->len; i++) {
        const log_file *f = g_ptr_array_index(m->files, i);
        log_file_each(f, learn, go_on, &l);
        l.done += f->scanned;
    }
    correction_solve(l.clocks);
    return l.clocks;
}

/* ---- telling ---- */

static void append_host(GString *text, const correction_host *h)
{
    char *off = checks_time_text(fabs(h->offset_ns)), *error = checks_time_text(h->error_ns);
    g_string_append_printf(text, "%s%s %s%s", text->len > 0 ? ", " : "", h->name,
                           h->offset_ns < 0 ? "\342\210\222" : "+", off);
    if (isfinite(h->error_ns))
        g_string_append_printf(text, " (\302\261 %s)", error);
    g_free(off);
    g_free(error);
}

static void model_clocks_tell(model *m, const correction *c)
{
    GString *corrected = g_string_new(NULL), *unknown = g_string_new(NULL);
    size_t corrected_count = 0, unknown_count = 0;
    for (size_t i = 0; i < correction_host_count(c); i++) {
        correction_host h = correction_get_host(c, i);
        if (!h.is_known && ++unknown_count <= HOSTS_NAMED)
            g_string_append_printf(unknown, "%s%s", unknown->len > 0 ? ", " : "", h.name);
        if (h.is_known && !h.is_reference && ++corrected_count <= HOSTS_NAMED)
            append_host(corrected, &h);
    }
    if (corrected_count > HOSTS_NAMED)
        g_string_append_printf(corrected, " and %zu more", corrected_count - HOSTS_NAMED);
    if (unknown_count > HOSTS_NAMED)
        g_string_append_printf(unknown, " and %zu more", unknown_count - HOSTS_NAMED);
    GString *text = g_string_new(NULL);
    if (corrected_count == 0)
        g_string_append(text,
                        "No clock could be set right: the log has no measurements of them (programs that log with "
                        "format=nlb to a collector make them), and no messages between hosts.");
    else
        g_string_append_printf(text, "Times are by the clock of %s now; added: %s.", correction_reference(c),
                               corrected->str);
    if (corrected_count > 0 && unknown_count > 0)
        g_string_append_printf(text, " Nothing is known of %s, whose times are as they were logged.", unknown->str);
    model_tell(m, g_string_free(text, FALSE));
    g_string_free(corrected, TRUE);
    g_string_free(unknown, TRUE);
}

bool model_take_over_clocks(model *m)
{
    if (m->sources->len == 0 || !atomic_exchange(&m->clocks_changed, false))
        return false;
    bool correct = m->corrects_clocks;
    if (!correct && m->clocks == NULL)
        return false;
    correction *fresh = correct ? learn_clocks(m) : NULL;
    if (fresh != NULL)
        model_clocks_tell(m, fresh);
    model_lock(m);
    m->clocks = fresh;
    if (fresh != NULL)
        g_ptr_array_add(m->corrections, fresh);
    model_unlock(m);
    model_begin_anew(m, drawing_copy(m->drawing), COLORS_AGAIN);
    m->index_tried = m->filter != NULL || fresh != NULL;
    m->index_written = m->index_settled = false;
    m->prepared = true;
    m->unsettled = true;
    m->generation++;
    return true;
}
