#include "config.h"

#include "model/inference.h"

#include "model/event_order.h"
#include "requests/infer.h"
#include "requests/key_map.h"

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
    trace *trace; /* NULL: sample only times */
    const drawing *extra;
    guint log;      /* index of the current log */
    GArray *starts; /* uint64_t, for each log: first_field of its first record in the trace */
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

/* Adds a record to the trace. Adds all records of a log before the records of the next log. */
static void add_to_trace(sampling *s, const nl_record *record)
{
    trace_add(s->trace, record);
    while (s->starts->len <= s->log)
        g_array_append_val(s->starts, trace_get(s->trace, trace_count(s->trace) - 1)->first_field);
}

static void sample_record(void *user, const nl_record *record)
{
    sampling *s = user;
    time_range *r = &s->range;
    if (s->trace != NULL && !is_quiet(s->extra, record))
        add_to_trace(s, record);
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
        s->log = i;
        if (count > 0)
            sample_file(g_ptr_array_index(from->files, 0), s, share);
        if (count > 1)
            sample_file(g_ptr_array_index(from->files, count - 1), s, share);
    }
}

/* ---- logs with equal IDs ---- */

/* Returns the log of a record of the trace. */
static guint sampled_log(const sampling *s, const trace_record *record)
{
    guint log = 0, end = s->starts->len;
    while (log + 1 < end) {
        const guint middle = log + (end - log) / 2;
        if (g_array_index(s->starts, uint64_t, middle) <= record->first_field)
            log = middle;
        else
            end = middle;
    }
    return log;
}

/* Sets *key to a hash of the ID values of a record. Returns false if the record lacks one of them. */
static bool sampled_key(const trace *t, const drawing_lifeline *l, const trace_record *record, uint64_t *key)
{
    *key = 0;
    for (char **id = l->ids; *id != NULL; id++) {
        const uint32_t name = trace_find(t, *id);
        const uint32_t value = name != TRACE_NONE ? trace_value(t, record, name) : TRACE_NONE;
        if (value == TRACE_NONE)
            return false;
        *key = (*key + value + 1) * UINT64_C(0x9e3779b97f4a7c15);
        *key ^= *key >> 29;
    }
    *key |= 1;
    return true;
}

/*
 * Returns whether the IDs of a lifeline begin again in another log, as in the logs of two runs of a program. The
 * criterion is that most requests that occur in several logs begin with the same event of the same program in these
 * logs. Logs of a client and a server also have equal IDs, but begin with different events.
 */
static bool repeats_ids(const sampling *s, const drawing_lifeline *l)
{
    enum { REPEATED_MIN = 2 };
    key_map first = {0}, seen = {0}; /* first: maps an ID to 1 plus its first record; seen: maps an ID and a log to 1 */
    size_t shared = 0, repeated = 0;
    for (size_t i = 0; i < trace_count(s->trace); i++) {
        const trace_record *record = trace_get(s->trace, i), *other;
        uint64_t key;
        if (record->event == TRACE_NONE || !sampled_key(s->trace, l, record, &key) ||
            !g_strv_contains((const char *const *)l->events, trace_string(s->trace, record->event)))
            continue;
        uint64_t *met = key_map_add(&seen, key + 2 * sampled_log(s, record)), *known = key_map_add(&first, key);
        if ((*met)++ > 0)
            continue;
        if (*known == 0) {
            *known = i + 1;
            continue;
        }
        other = trace_get(s->trace, *known - 1);
        shared++;
        repeated += other->event == record->event && other->prog == record->prog;
    }
    key_map_free(&first);
    key_map_free(&seen);
    return repeated >= REPEATED_MIN && 2 * repeated > shared;
}

/* In the lifelines whose IDs begin again in another log, gives each log a different color. */
static void color_by_log(const sampling *s, drawing *d)
{
    for (guint i = 0; s->starts->len > 1 && i < d->lifelines->len; i++) {
        drawing_lifeline *l = g_ptr_array_index(d->lifelines, i);
        if (repeats_ids(s, l)) {
            g_free(l->color);
            l->color = g_strdup(DRAWING_COLOR_LOG);
        }
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
    sampling s = {
        .trace = learns ? trace_new() : NULL, .extra = f->extra, .starts = g_array_new(FALSE, FALSE, sizeof(uint64_t))};
    take_samples(sources, &s);
    *range = s.range;
    *d = NULL;
    f->is_prepared = true;
    if (!learns) {
        g_array_free(s.starts, TRUE);
        return true;
    }
    f->bytes = bytes;
    trace_sort(s.trace);
    *d = with_extra(f, is_active ? infer_drawing(s.trace) : drawing_copy(f->given));
    event_order_learn(*d, s.trace, is_active);
    if (is_active)
        color_by_log(&s, *d);
    trace_free(s.trace);
    g_array_free(s.starts, TRUE);
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
