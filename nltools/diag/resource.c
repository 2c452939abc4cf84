/* Resources: the samples of numeric fields. */
#include "config.h"

#include "diag/observed_inside.h"

#include <math.h>
#include <string.h>

/* Limits that no sensor reaches; they bound memory and time. */
enum {
    RESOURCES_MAX = 1 << 16,
    RESOURCE_SAMPLES = 1 << 14, /* of one resource */
    SAMPLES_MAX = 1 << 22,      /* of all resources */
    RECORD_FIELDS_MAX = 128,
    NAME_SIZE_MAX = 256, /* bytes */
    INSTANCE_SIZE_MAX = 1000,
    STRINGS_SIZE_MAX = 32 << 20,
};

/* Whether a field names an instance: text, or a number that is not an amount. */
static bool is_name(const nl_field *field, double *value)
{
    static const char *const names[] = {"CPU.ID", "PROC.ID", "PROC.PARENT", "TCP.INODE",
                                        "PID",    "TID",     "NL.PID",      "NL.TID"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (field->name.size == strlen(names[i]) && memcmp(field->name.data, names[i], field->name.size) == 0)
            return true;
    return !nl_field_double(field, value) || !isfinite(*value);
}

/* Whether a text field is a state, which changes without another instance. */
static bool is_state(const nl_field *field)
{
    static const char *const states[] = {"TCP.STATE", "TCP.ALGORITHM", "PROC.STATE", "PROC.PARENT", "TCP.INODE"};
    for (size_t i = 0; i < G_N_ELEMENTS(states); i++)
        if (field->name.size == strlen(states[i]) && memcmp(field->name.data, states[i], field->name.size) == 0)
            return true;
    return false;
}

static void make_instance(const nl_record *record, GString *out)
{
    g_string_truncate(out, 0);
    for (size_t i = 0; i < MIN(record->field_count, RECORD_FIELDS_MAX) && out->len < INSTANCE_SIZE_MAX; i++) {
        double value;
        char scratch[NL_FIELD_TEXT_SIZE];
        if (!is_name(&record->fields[i], &value) || is_state(&record->fields[i]))
            continue;
        nl_string text = nl_field_text(&record->fields[i], scratch);
        if (out->len > 0)
            g_string_append_c(out, ' ');
        g_string_append_len(out, text.data, (gssize)MIN(text.size, 100));
    }
}

/* Returns the resource of a host, event, field and instance. Returns NULL if there are too many resources. */
static resource *find_or_make(resources *all, guint host, nl_string event, nl_string field, const char *instance)
{
    GString *key = all->key;
    if (event.size > NAME_SIZE_MAX || field.size > NAME_SIZE_MAX)
        return NULL;
    g_string_printf(key, "%u\n%.*s\n%.*s\n%s", host, (int)event.size, event.data, (int)field.size, field.data,
                    instance);
    resource *found = g_hash_table_lookup(all->by_key, key->str);
    if (found != NULL || all->list->len >= RESOURCES_MAX || all->string_size + key->len > STRINGS_SIZE_MAX)
        return found;
    all->string_size += key->len;
    resource *made = g_new0(resource, 1);
    made->host = host;
    made->event = g_string_chunk_insert_len(all->strings, event.data, (gssize)event.size);
    made->field = g_string_chunk_insert_len(all->strings, field.data, (gssize)field.size);
    made->instance = g_string_chunk_insert(all->strings, instance);
    made->samples = g_array_new(FALSE, FALSE, sizeof(sample));
    made->joined = 1;
    g_ptr_array_add(all->list, made);
    g_hash_table_insert(all->by_key, g_strdup(key->str), made);
    return made;
}

/* Replaces each two neighbouring samples by their mean. */
static void halve(resources *all, resource *r)
{
    const sample *s = (const sample *)(void *)r->samples->data;
    GArray *halved = g_array_sized_new(FALSE, FALSE, sizeof(sample), r->samples->len / 2);
    for (guint i = 0; i + 1 < r->samples->len; i += 2) {
        sample joined = {s[i].time_ns, (s[i].value + s[i + 1].value) / 2};
        g_array_append_val(halved, joined);
    }
    all->sample_count -= r->samples->len - halved->len;
    g_array_free(r->samples, TRUE);
    r->samples = halved;
    r->joined *= 2;
}

static void add_value(resources *all, resource *r, int64_t time_ns, double value)
{
    r->last += value;
    if (++r->waiting < r->joined)
        return;
    sample s = {time_ns, r->last / r->waiting};
    r->last = 0;
    r->waiting = 0;
    g_array_append_val(r->samples, s);
    all->sample_count++;
    if (r->samples->len >= all->samples_max)
        halve(all, r);
    if (all->sample_count < SAMPLES_MAX)
        return;
    all->samples_max /= 2;
    for (guint i = 0; i < all->list->len; i++) {
        resource *each = g_ptr_array_index(all->list, i);
        while (each->samples->len >= all->samples_max)
            halve(all, each);
    }
}

void resources_add(resources *all, guint host, const nl_record *record)
{
    make_instance(record, all->instance);
    for (size_t i = 0; i < MIN(record->field_count, RECORD_FIELDS_MAX); i++) {
        double value;
        if (is_name(&record->fields[i], &value))
            continue;
        resource *r = find_or_make(all, host, record->event, record->fields[i].name, all->instance->str);
        if (r != NULL)
            add_value(all, r, record->time_ns, value);
    }
}

static gint compare_samples(gconstpointer a, gconstpointer b)
{
    const sample *first = a, *second = b;
    return (first->time_ns > second->time_ns) - (first->time_ns < second->time_ns);
}

static gint compare_hosts(gconstpointer a, gconstpointer b)
{
    const resource *first = *(resource *const *)a, *second = *(resource *const *)b;
    return (first->host > second->host) - (first->host < second->host);
}

void resources_finish(resources *all)
{
    g_ptr_array_sort(all->list, compare_hosts); /* it is stable */
    for (guint i = 0; i < all->list->len; i++) {
        resource *r = g_ptr_array_index(all->list, i);
        g_array_sort(r->samples, compare_samples);
    }
}

static void free_resource(gpointer data)
{
    resource *r = data;
    g_array_free(r->samples, TRUE);
    g_free(r);
}

void resources_init(resources *all)
{
    *all = (resources){
        .list = g_ptr_array_new_with_free_func(free_resource),
        .by_key = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .samples_max = RESOURCE_SAMPLES,
        .strings = g_string_chunk_new(4096),
        .key = g_string_new(NULL),
        .instance = g_string_new(NULL),
    };
}

void resources_clear(resources *all)
{
    g_hash_table_destroy(all->by_key);
    g_ptr_array_free(all->list, TRUE);
    g_string_chunk_free(all->strings);
    g_string_free(all->key, TRUE);
    g_string_free(all->instance, TRUE);
}

/* ---- results ---- */

/* Returns the index of the first sample at or after a time. */
static guint first_from(const resource *r, int64_t from_ns)
{
    guint low = 0, high = r->samples->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(r->samples, sample, middle).time_ns < from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double resource_mean(const resource *r, int64_t from_ns, int64_t to_ns)
{
    double sum = 0;
    guint first = first_from(r, from_ns), end = first_from(r, to_ns);
    for (guint i = first; i < end; i++)
        sum += g_array_index(r->samples, sample, i).value;
    return end > first ? sum / (end - first) : NAN;
}

double resource_rise(const resource *r, int64_t from_ns, int64_t to_ns)
{
    guint first = first_from(r, from_ns), end = first_from(r, to_ns);
    return end > first
               ? g_array_index(r->samples, sample, end - 1).value - g_array_index(r->samples, sample, first).value
               : 0;
}

double resource_share_above(const resource *r, double low, int64_t from_ns, int64_t to_ns)
{
    guint first = first_from(r, from_ns), end = first_from(r, to_ns), above = 0;
    for (guint i = first; i < end; i++)
        above += g_array_index(r->samples, sample, i).value >= low;
    return end > first ? (double)above / (end - first) : 0;
}

/* Returns the index of the first resource of a host or a later one. */
static guint first_of(const GPtrArray *all, guint host)
{
    guint low = 0, high = all->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (((const resource *)g_ptr_array_index(all, middle))->host < host)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

resource *const *observed_resources_of(const observed *o, guint host, guint *count)
{
    const GPtrArray *all = observed_resources(o);
    guint first = first_of(all, host);
    *count = first_of(all, host + 1) - first;
    return (resource *const *)all->pdata + first;
}

const resource *observed_find(const observed *o, guint host, const char *event, const char *field, const char *instance)
{
    guint count;
    resource *const *of_host = observed_resources_of(o, host, &count);
    for (guint i = 0; i < count; i++) {
        const resource *r = of_host[i];
        if (strcmp(r->event, event) == 0 && strcmp(r->field, field) == 0 &&
            (instance == NULL || strcmp(r->instance, instance) == 0))
            return r;
    }
    return NULL;
}
