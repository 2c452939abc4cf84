#include "config.h"

#include "model/model.h"

#include "analysis/infer.h"

#include <string.h>

struct model {
    trace *trace;
    drawing *drawing;
    bool inferred;
    program_reading *reading;
    GPtrArray *logs; /* program_log, those that are still read */
    GPtrArray *lifelines;
    GArray *colors;
    GString *name;
    bool changed;
};

static void free_lifelines(gpointer data)
{
    lifelines_free(data);
}

model *model_new(drawing *d, program_reading *reading)
{
    model *m = g_new0(model, 1);
    m->trace = trace_new();
    m->drawing = d != NULL ? d : drawing_new();
    m->inferred = d == NULL;
    m->reading = reading;
    m->logs = g_ptr_array_new();
    m->lifelines = g_ptr_array_new_with_free_func(free_lifelines);
    m->colors = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    m->name = g_string_new(NULL);
    m->changed = true;
    model_update(m); /* so that an empty model can be drawn like any other */
    return m;
}

void model_free(model *m)
{
    g_ptr_array_free(m->lifelines, TRUE);
    g_array_free(m->colors, TRUE);
    for (guint i = 0; i < m->logs->len; i++)
        program_log_close(g_ptr_array_index(m->logs, i));
    g_ptr_array_free(m->logs, TRUE);
    drawing_free(m->drawing);
    trace_free(m->trace);
    g_string_free(m->name, TRUE);
    g_free(m);
}

bool model_add_source(model *m, const char *url, bool follow)
{
    program_log *log = program_log_open(m->reading, url, follow, follow);
    if (log == NULL)
        return false;
    g_ptr_array_add(m->logs, log);
    char *base = g_path_get_basename(url);
    g_string_append_printf(m->name, "%s%s", m->name->len > 0 ? ", " : "",
                           strcmp(url, "-") == 0 ? "standard input" : base);
    g_free(base);
    return true;
}

/* Reads one source on. NL_AGAIN: nothing now; NL_OK: there is more; otherwise it is at its end. */
static nl_status read_source(model *m, program_log *log, size_t most, size_t *count)
{
    while (*count < most) {
        const nl_record *record;
        nl_status status = program_log_next(log, NULL, &record);
        if (status != NL_OK)
            return status;
        trace_add(m->trace, record);
        ++*count;
    }
    return NL_OK;
}

size_t model_read(model *m, size_t most, bool *more)
{
    size_t count = 0;
    *more = false;
    for (guint i = 0; i < m->logs->len;) {
        program_log *log = g_ptr_array_index(m->logs, i);
        nl_status status = read_source(m, log, most, &count);
        *more = *more || status == NL_OK;
        if (status == NL_OK || status == NL_AGAIN) {
            i++;
            continue;
        }
        program_log_close(log);
        g_ptr_array_remove_index(m->logs, i);
    }
    m->changed = m->changed || count > 0;
    return count;
}

static gint by_string(gconstpointer a, gconstpointer b, gpointer user)
{
    const trace *t = user;
    return strcmp(trace_string(t, *(const uint32_t *)a), trace_string(t, *(const uint32_t *)b));
}

/* Puts a set of strings behind the colours, by name, less those that are there. */
static void append_colors(model *m, GHashTable *set)
{
    GArray *fresh = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    GHashTableIter iterator;
    gpointer key;
    g_hash_table_iter_init(&iterator, set);
    while (g_hash_table_iter_next(&iterator, &key, NULL)) {
        uint32_t string = GPOINTER_TO_UINT(key);
        bool known = false;
        for (guint i = 0; i < m->colors->len && !known; i++)
            known = g_array_index(m->colors, uint32_t, i) == string;
        if (!known)
            g_array_append_val(fresh, string);
    }
    g_array_sort_with_data(fresh, by_string, m->trace);
    g_array_append_vals(m->colors, fresh->data, fresh->len);
    g_array_free(fresh, TRUE);
}

static void mark_event(const model *m, bool *drawn, const char *event)
{
    uint32_t string = trace_find(m->trace, event);
    if (string != TRACE_NONE)
        drawn[string] = true;
}

static void give_colors(model *m)
{
    g_array_set_size(m->colors, 0);
    GHashTable *set = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (guint i = 0; i < m->lifelines->len; i++) {
        const lifelines *l = g_ptr_array_index(m->lifelines, i);
        for (size_t o = 0; o < l->object_count; o++)
            g_hash_table_add(set, GUINT_TO_POINTER(l->objects[o].color));
    }
    append_colors(m, set);
    g_hash_table_remove_all(set);
    bool *drawn = g_new0(bool, trace_string_count(m->trace) + 1);
    for (guint i = 0; i < m->drawing->loadlines->len; i++)
        mark_event(m, drawn, ((drawing_loadline *)g_ptr_array_index(m->drawing->loadlines, i))->event);
    for (guint i = 0; i < m->drawing->points->len; i++)
        mark_event(m, drawn, ((drawing_point *)g_ptr_array_index(m->drawing->points, i))->event);
    for (size_t i = 0; i < trace_count(m->trace); i++) {
        const trace_record *record = trace_get(m->trace, i);
        if (record->event != TRACE_NONE && drawn[record->event])
            g_hash_table_add(set, GUINT_TO_POINTER(record->host));
    }
    append_colors(m, set);
    g_free(drawn);
    g_hash_table_destroy(set);
}

const GArray *model_colors(const model *m)
{
    return m->colors;
}

bool model_update(model *m)
{
    if (!m->changed)
        return false;
    m->changed = false;
    trace_sort(m->trace);
    g_ptr_array_set_size(m->lifelines, 0);
    if (m->inferred) {
        drawing_free(m->drawing);
        m->drawing = infer_drawing(m->trace);
    }
    for (guint i = 0; i < m->drawing->lifelines->len; i++)
        g_ptr_array_add(m->lifelines, lifelines_build(m->trace, g_ptr_array_index(m->drawing->lifelines, i)));
    give_colors(m);
    return true;
}

const trace *model_trace(const model *m)
{
    return m->trace;
}

const drawing *model_drawing(const model *m)
{
    return m->drawing;
}

size_t model_lifelines_count(const model *m)
{
    return m->lifelines->len;
}

const lifelines *model_lifelines(const model *m, size_t i)
{
    return g_ptr_array_index(m->lifelines, i);
}

bool model_time_range(const model *m, int64_t *from_ns, int64_t *to_ns)
{
    size_t count = trace_count(m->trace);
    if (count == 0)
        return false;
    *from_ns = trace_get(m->trace, 0)->time_ns;
    *to_ns = trace_get(m->trace, count - 1)->time_ns;
    return true;
}

const char *model_name(const model *m)
{
    return m->name->str;
}

size_t model_find_time(const model *m, int64_t time_ns)
{
    size_t low = 0, high = trace_count(m->trace);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trace_get(m->trace, middle)->time_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

char *model_describe(const model *m, size_t i)
{
    const trace_record *record = trace_get(m->trace, i);
    char time[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(record->time_ns, time);
    GString *text = g_string_new(NULL);
    char *from = strchr(time, 'T');
    g_string_append_printf(text, "%s  %s  %s  %s", from != NULL ? from + 1 : time,
                           trace_string(m->trace, record->event), trace_string(m->trace, record->host),
                           trace_string(m->trace, record->prog));
    const trace_field *fields = trace_fields(m->trace, record);
    for (uint32_t f = 0; f < record->field_count; f++)
        g_string_append_printf(text, "  %s=%s", trace_string(m->trace, fields[f].name),
                               trace_string(m->trace, fields[f].value));
    char *valid = g_utf8_make_valid(text->str, (gssize)text->len);
    g_string_free(text, TRUE);
    return valid;
}
