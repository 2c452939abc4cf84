#include "config.h"

#include <math.h>

#include "diag/series.h"

#include "stat/text_key.h"

#include <stdlib.h>
#include <string.h>

struct series_set {
    GHashTable *by_key, *by_host; /* by_host maps a host to its series (GPtrArray) */
    GPtrArray *all;
    GString *key, *instance;
};

static void series_free_one(gpointer data)
{
    sensor_series *s = data;
    g_free(s->event);
    g_free(s->field);
    g_free(s->host);
    g_free(s->instance);
    g_array_free(s->samples, TRUE);
    g_free(s);
}

series_set *series_new(void)
{
    series_set *s = g_new0(series_set, 1);
    s->by_key = g_hash_table_new_full(text_key_hash, text_key_equal, g_free, NULL);
    s->by_host = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)g_ptr_array_unref);
    s->all = g_ptr_array_new_with_free_func(series_free_one);
    s->key = g_string_new("");
    s->instance = g_string_new("");
    return s;
}

void series_free(series_set *s)
{
    g_hash_table_destroy(s->by_key);
    g_hash_table_destroy(s->by_host);
    g_ptr_array_free(s->all, TRUE);
    g_string_free(s->key, TRUE);
    g_string_free(s->instance, TRUE);
    g_free(s);
}

/* Halves the number of samples: replaces each pair of adjacent samples with their mean. */
static void series_thin(sensor_series *s)
{
    guint half = s->samples->len / 2;
    for (guint i = 0; i < half; i++) {
        const series_sample *a = &g_array_index(s->samples, series_sample, 2 * i), *b = a + 1;
        g_array_index(s->samples, series_sample, i) = (series_sample){b->time_ns, (a->value + b->value) / 2};
    }
    g_array_set_size(s->samples, half);
    s->joined *= 2;
}

static void series_append(sensor_series *s, int64_t time_ns, double value)
{
    s->sum += value;
    if (++s->waiting < s->joined)
        return;
    series_sample sample = {time_ns, s->sum / s->joined};
    s->sum = 0;
    s->waiting = 0;
    g_array_append_val(s->samples, sample);
    if (s->samples->len == SERIES_SAMPLES_MAX)
        series_thin(s);
}

static bool is_one_of(nl_string name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (name.size == strlen(names[i]) && memcmp(name.data, names[i], name.size) == 0)
            return true;
    return false;
}

/* Builds the name of an instance from the texts and IDs of a record. Omits texts that are states, because the name must
 * not change. */
static void make_instance(const nl_record *record, GString *out)
{
    static const char *const ids[] = {"CPU.ID", "PROC.ID"};
    static const char *const states[] = {"TCP.STATE",  "TCP.ALGORITHM",   "TCP.RECOVERY", "TCP.PROGRAM",
                                         "TCP.CGROUP", "TCP.OWNER.STATE", "PROC.STATE"};
    g_string_truncate(out, 0);
    for (size_t i = 0; i < record->field_count && out->len < INSTANCE_SIZE_MAX; i++) {
        const nl_field *f = &record->fields[i];
        double number;
        char scratch[NL_FIELD_TEXT_SIZE];
        bool text = f->type == NL_TYPE_STRING && !nl_field_double(f, &number);
        if (is_one_of(f->name, states, G_N_ELEMENTS(states)) || (!text && !is_one_of(f->name, ids, G_N_ELEMENTS(ids))))
            continue;
        nl_string value = nl_field_text(f, scratch);
        if (out->len > 0)
            g_string_append_c(out, ' ');
        g_string_append_len(out, value.data, (gssize)MIN(value.size, INSTANCE_SIZE_MAX));
    }
}

static void series_add_to_host(series_set *s, sensor_series *of)
{
    GPtrArray *known = g_hash_table_lookup(s->by_host, of->host);
    if (known == NULL) {
        known = g_ptr_array_new();
        g_hash_table_insert(s->by_host, of->host, known);
    }
    g_ptr_array_add(known, of);
}

void series_set_add(series_set *s, const nl_record *record)
{
    if (record->event.size == 0)
        return;
    make_instance(record, s->instance);
    nl_string instance = {s->instance->str, s->instance->len};
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *f = &record->fields[i];
        double value;
        if (!nl_field_double(f, &value) || !isfinite(value))
            continue;
        g_string_truncate(s->key, 0);
        const nl_string parts[] = {record->event, f->name, record->host, instance};
        for (size_t p = 0; p < G_N_ELEMENTS(parts); p++) {
            if (parts[p].size > 0)
                g_string_append_len(s->key, parts[p].data, (gssize)parts[p].size);
            g_string_append_c(s->key, '\n');
        }
        nl_string key = {s->key->str, s->key->len};
        sensor_series *of = g_hash_table_lookup(s->by_key, &key);
        if (of == NULL) {
            if (s->all->len == SERIES_MAX)
                continue;
            of = g_new0(sensor_series, 1);
            of->event = g_strndup(record->event.data, record->event.size);
            of->field = g_strndup(f->name.data, f->name.size);
            of->host = record->host.size > 0 ? g_strndup(record->host.data, record->host.size) : g_strdup("");
            of->instance = g_strndup(instance.data, instance.size);
            of->samples = g_array_new(FALSE, FALSE, sizeof(series_sample));
            of->joined = 1;
            g_ptr_array_add(s->all, of);
            series_add_to_host(s, of);
            g_hash_table_insert(s->by_key, text_key_new(key), of);
        }
        series_append(of, record->time_ns, value);
    }
}

static int by_sample_time(const void *a, const void *b)
{
    const series_sample *x = a, *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

void series_finish(series_set *s)
{
    GHashTable *last = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL); /* last series of each kind */
    for (guint i = 0; i < s->all->len; i++) {
        sensor_series *of = g_ptr_array_index(s->all, i);
        qsort(of->samples->data, of->samples->len, sizeof(series_sample), by_sample_time);
        of->lowest = INFINITY;
        of->highest = -INFINITY;
        for (guint k = 0; k < of->samples->len; k++) {
            double value = g_array_index(of->samples, series_sample, k).value;
            of->lowest = fmin(of->lowest, value);
            of->highest = fmax(of->highest, value);
        }
        char *kind = g_strjoin("\n", of->event, of->field, of->instance, NULL);
        sensor_series *before = g_hash_table_lookup(last, kind);
        of->is_first = before == NULL;
        if (before != NULL)
            before->next = of;
        g_hash_table_replace(last, kind, of);
    }
    g_hash_table_destroy(last);
}

const GPtrArray *series_all(const series_set *s)
{
    return s->all;
}

const GPtrArray *series_of_host(const series_set *s, const char *host)
{
    return g_hash_table_lookup(s->by_host, host);
}

guint series_index(const sensor_series *s, int64_t time_ns)
{
    guint low = 0, high = s->samples->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(s->samples, series_sample, middle).time_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double series_at(const sensor_series *s, int64_t time_ns)
{
    /* a sample contains the mean over the time before it, so the next sample has the value for this time */
    guint low = series_index(s, time_ns);
    return low < s->samples->len ? g_array_index(s->samples, series_sample, low).value : NAN;
}
