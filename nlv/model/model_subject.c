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

uint64_t model_bytes_there(const model *m)
{
    uint64_t sum = 0;
    for (guint i = 0; i < m->sources->len; i++) {
        const source *s = g_ptr_array_index(m->sources, i);
        sum += s->text.fd >= 0 ? text_file_size(&s->text) : 0;
    }
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

/* Finds out what to draw, when there is enough more of the logs than when it was last done. */
void model_prepare(model *m)
{
    uint64_t bytes = model_bytes_there(m);
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
        drawing *d = model_with_extra(m, infer_drawing(s.trace));
        char *text = drawing_text(d);
        trace_free(s.trace);
        m->inferred_from = bytes;
        if (m->inferred_text != NULL && strcmp(text, m->inferred_text) == 0)
            drawing_free(d);
        else
            model_begin_anew(m, d, COLORS_ANEW);
        g_free(m->inferred_text);
        m->inferred_text = text;
    }
    m->prepared = true;
}
