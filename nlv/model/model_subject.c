/* What the logs are about: what is drawn of them when nobody has said it. */
#include "config.h"

#include "model/model_private.h"

#include "requests/infer.h"

#include <string.h>

enum {
    SAMPLE_START = 4 << 20, /* bytes of a log that are looked at to find out what it is about */
    SAMPLE_ELSEWHERE = 512 << 10,
    INFER_AGAIN = 4, /* when a log has grown so many times */
};

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

static void sample_file(const log_file *f, sampling *s, size_t share)
{
    uint64_t size = log_file_size(f);
    if (size == 0 || f->format == NL_FORMAT_UNKNOWN)
        return;
    log_file_sample(f, 0, MAX(share, SAMPLE_ELSEWHERE / 8), sample_record, s);
    if (size <= share + 2 * SAMPLE_ELSEWHERE)
        return;
    if (s->trace != NULL)
        log_file_sample(f, size / 2, SAMPLE_ELSEWHERE, sample_record, s);
    log_file_sample(f, size - SAMPLE_ELSEWHERE, SAMPLE_ELSEWHERE, sample_record, s);
}

/* Looks at the start of every log, and at a bit of its middle and its end; of many files at the first and the last. */
static void take_samples(model *m, sampling *s)
{
    size_t share = s->trace != NULL ? SAMPLE_START / MAX(m->sources->len, 1) : SAMPLE_ELSEWHERE / 8;
    for (guint i = 0; i < m->sources->len; i++) {
        const source *from = g_ptr_array_index(m->sources, i);
        guint count = from->files->len;
        if (count > 0)
            sample_file(g_ptr_array_index(from->files, 0), s, share);
        if (count > 1)
            sample_file(g_ptr_array_index(from->files, count - 1), s, share);
    }
}

uint64_t model_bytes_there(const model *m)
{
    uint64_t sum = 0;
    for (guint i = 0; i < m->sources->len; i++)
        sum += source_size(g_ptr_array_index(m->sources, i));
    return sum;
}

static bool has_loadline(const drawing *d, const char *name)
{
    for (guint i = 0; i < d->loadlines->len; i++)
        if (strcmp(((const drawing_loadline *)g_ptr_array_index(d->loadlines, i))->name, name) == 0)
            return true;
    return false;
}

/* Adds to d, and gives it back, what is drawn beside it and it does not have itself. */
drawing *model_with_extra(const model *m, drawing *d)
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

bool model_prepare(model *m)
{
    bool begins_anew = false;
    uint64_t bytes = model_bytes_there(m);
    bool again = m->inferred && m->inferred_from < SAMPLE_START && bytes > m->inferred_from * INFER_AGAIN;
    if (bytes == 0 || (m->prepared && !again))
        return false;
    sampling s = {.trace = m->inferred ? trace_new() : NULL, .extra = m->extra};
    take_samples(m, &s);
    model_lock(m);
    m->has_expected = s.any;
    m->expected_from_ns = s.from_ns;
    m->expected_to_ns = s.to_ns;
    model_unlock(m);
    if (s.trace != NULL) {
        trace_sort(s.trace);
        drawing *d = model_with_extra(m, infer_drawing(s.trace));
        char *text = drawing_text(d);
        trace_free(s.trace);
        m->inferred_from = bytes;
        begins_anew = m->inferred_text == NULL || strcmp(text, m->inferred_text) != 0;
        if (begins_anew)
            model_begin_anew(m, d, COLORS_ANEW);
        else
            drawing_free(d);
        g_free(m->inferred_text);
        m->inferred_text = text;
    }
    m->prepared = true;
    return begins_anew;
}
