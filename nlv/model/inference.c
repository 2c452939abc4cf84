#include "config.h"

#include "model/inference.h"

#include "model/event_order.h"
#include "requests/infer.h"

#include <string.h>

enum {
    SAMPLE_START = 4 << 20, /* maximum number of bytes to sample at the start of the logs */
    SAMPLE_ELSEWHERE = 512 << 10,
    GROWTH = 4, /* infer again if the logs have grown by this factor */
};

struct inference {
    drawing *given; /* NULL: the drawing is inferred */
    drawing *extra; /* NULL: no additional loadlines */
    bool is_prepared;
    uint64_t bytes; /* total size of the logs in bytes at the last inference */
    char *text;     /* the inferred drawing; NULL: not inferred yet */
};

inference *inference_new(const drawing *given)
{
    inference *f = g_new0(inference, 1);
    f->given = given != NULL ? drawing_copy(given) : NULL;
    return f;
}

void inference_free(inference *f)
{
    drawing_free(f->given);
    drawing_free(f->extra);
    g_free(f->text);
    g_free(f);
}

void inference_set_given(inference *f, drawing *d)
{
    drawing_free(f->given);
    f->given = d;
    inference_restart(f);
}

void inference_set_extra(inference *f, drawing *extra)
{
    drawing_free(f->extra);
    f->extra = extra;
    inference_restart(f);
}

bool inference_is_active(const inference *f)
{
    return f->given == NULL;
}

void inference_settle(inference *f, uint64_t bytes)
{
    f->is_prepared = true;
    f->bytes = MAX(f->bytes, bytes);
}

void inference_restart(inference *f)
{
    f->is_prepared = f->given != NULL && !event_order_can_learn(f->given);
    f->bytes = 0;
    g_clear_pointer(&f->text, g_free);
}

/* ---- extra loadlines ---- */

static bool has_loadline(const drawing *d, const char *name)
{
    for (guint i = 0; i < d->loadlines->len; i++)
        if (strcmp(((const drawing_loadline *)g_ptr_array_index(d->loadlines, i))->name, name) == 0)
            return true;
    return false;
}

static bool draws_field(const drawing *d, const drawing_loadline *l)
{
    for (guint i = 0; i < d->loadlines->len; i++) {
        const drawing_loadline *other = g_ptr_array_index(d->loadlines, i);
        if (strcmp(other->event, l->event) == 0 && strcmp(other->field, l->field) == 0)
            return true;
    }
    return false;
}

/* Adds the additional loadlines to d, and returns d. */
static drawing *with_extra(const inference *f, drawing *d)
{
    for (guint i = 0; f->extra != NULL && i < f->extra->loadlines->len; i++) {
        const drawing_loadline *l = g_ptr_array_index(f->extra->loadlines, i);
        if (draws_field(d, l))
            continue;
        char *longer = g_strdup_printf("%s of %s", l->name, l->event);
        drawing_add_loadline(d, has_loadline(d, l->name) ? longer : l->name, l->event, l->field, l->unit)->rate =
            l->rate;
        g_free(longer);
    }
    for (guint i = 0; f->extra != NULL && i < f->extra->quiet->len; i++)
        g_ptr_array_add(d->quiet, g_strdup(g_ptr_array_index(f->extra->quiet, i)));
    return d;
}

drawing *inference_first_drawing(const inference *f)
{
    return f->given != NULL ? with_extra(f, drawing_copy(f->given)) : drawing_new();
}

/* Returns the text of the drawing that nlv uses until it has learned the order of events. */
static char *first_text(const inference *f)
{
    drawing *first = inference_first_drawing(f);
    char *text = drawing_text(first);
    drawing_free(first);
    return text;
}

/* ---- samples ---- */

typedef struct sampling {
    trace *trace; /* NULL: only times are needed */
    const drawing *extra;
    time_range range;
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
    time_range *r = &s->range;
    if (s->trace != NULL && !is_quiet(s->extra, record))
        trace_add(s->trace, record);
    r->from_ns = r->is_known ? MIN(r->from_ns, record->time_ns) : record->time_ns;
    r->to_ns = r->is_known ? MAX(r->to_ns, record->time_ns) : record->time_ns;
    r->is_known = true;
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

/* Samples the start, middle and end of each log. If a log has several files, samples the first and the last file. */
static void take_samples(const GPtrArray *sources, sampling *s)
{
    size_t share = s->trace != NULL ? SAMPLE_START / MAX(sources->len, 1) : SAMPLE_ELSEWHERE / 8;
    for (guint i = 0; i < sources->len; i++) {
        const source *from = g_ptr_array_index(sources, i);
        guint count = from->files->len;
        if (count > 0)
            sample_file(g_ptr_array_index(from->files, 0), s, share);
        if (count > 1)
            sample_file(g_ptr_array_index(from->files, count - 1), s, share);
    }
}

bool inference_sample(inference *f, const GPtrArray *sources, time_range *range, drawing **d)
{
    uint64_t bytes = 0;
    for (guint i = 0; i < sources->len; i++)
        bytes += source_size(g_ptr_array_index(sources, i));
    bool is_active = inference_is_active(f), learns = is_active || event_order_can_learn(f->given);
    bool has_grown = learns && f->bytes < SAMPLE_START && bytes > f->bytes * GROWTH;
    if (bytes == 0 || (f->is_prepared && !has_grown))
        return false;
    sampling s = {.trace = learns ? trace_new() : NULL, .extra = f->extra};
    take_samples(sources, &s);
    *range = s.range;
    *d = NULL;
    f->is_prepared = true;
    if (!learns)
        return true;
    f->bytes = bytes;
    trace_sort(s.trace);
    *d = with_extra(f, is_active ? infer_drawing(s.trace) : drawing_copy(f->given));
    event_order_learn(*d, s.trace, is_active);
    trace_free(s.trace);
    char *text = drawing_text(*d);
    if (f->text == NULL && !is_active)
        f->text = first_text(f);
    if (g_strcmp0(text, f->text) == 0) {
        drawing_free(*d);
        *d = NULL;
    }
    g_free(f->text);
    f->text = text;
    return true;
}
