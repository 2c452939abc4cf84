#include "config.h"

#include "model/catalog.h"

#include <string.h>

enum {
    EVENLY = 1500,         /* number of sampled records, spread evenly over the log */
    EACH = 6,              /* number of first records of each event in the sample */
    SCANNED_MAX = 1 << 20, /* maximum number of records in which the module searches for the first records of events */
    FIELDS_MAX = 1 << 16,  /* maximum total number of fields of all events */
};

typedef struct gathering {
    /* Maps an event to a table, which maps a field to 2 if all its values were numbers, and to 1 otherwise. */
    GHashTable *events;
    size_t fields; /* number of fields in all tables */
} gathering;

static char *catalog_copy(nl_string text)
{
    return g_strndup(text.data, text.size);
}

static bool is_number(const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE], *end;
    nl_string value = nl_field_text(field, scratch);
    char *text = catalog_copy(value);
    g_ascii_strtod(text, &end);
    bool is = *text != '\0' && *end == '\0';
    g_free(text);
    return is;
}

static void catalog_take(void *user, const nl_record *record)
{
    gathering *g = user;
    char *event = catalog_copy(record->event);
    GHashTable *fields = g_hash_table_lookup(g->events, event);
    if (fields == NULL) {
        fields = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_hash_table_insert(g->events, g_strdup(event), fields);
    }
    g_free(event);
    for (size_t i = 0; i < record->field_count && g->fields < FIELDS_MAX; i++) {
        char *name = catalog_copy(record->fields[i].name);
        int known = GPOINTER_TO_INT(g_hash_table_lookup(fields, name));
        g->fields += known == 0;
        int number = is_number(&record->fields[i]);
        g_hash_table_insert(fields, name, GINT_TO_POINTER(1 + (known == 0 ? number : number && known == 2)));
    }
}

/* Collects the fields of the first records of each event, and of records from all parts of the log. */
static void catalog_look(const model *m, gathering *g)
{
    const store *s = model_store(m);
    unsigned char *met = g_new0(unsigned char, NAMES_NONE + 1);
    uint32_t count = s->count - s->first;
    for (uint32_t i = 0; i < MIN(count, SCANNED_MAX); i++) {
        uint16_t event = store_event(s, s->first + i);
        if (met[event] < EACH && ++met[event])
            model_record(m, s->first + i, catalog_take, g);
    }
    for (uint32_t i = 0; i < MIN(count, EVENLY); i++)
        model_record(m, s->first + (uint32_t)((uint64_t)i * count / MIN(count, EVENLY)), catalog_take, g);
    g_free(met);
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a,
                  *(const char *const *)b); /* each element is a name, or begins with a pointer to its name */
}

static GArray *fields_of(GHashTable *table)
{
    GArray *fields = g_array_new(FALSE, FALSE, sizeof(catalog_field));
    GHashTableIter iterator;
    gpointer name, kind;
    g_hash_table_iter_init(&iterator, table);
    while (g_hash_table_iter_next(&iterator, &name, &kind)) {
        catalog_field field = {g_strdup(name), GPOINTER_TO_INT(kind) == 2};
        g_array_append_val(fields, field);
    }
    g_array_sort(fields, by_name);
    return fields;
}

catalog *catalog_new(const model *m)
{
    gathering g = {g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_hash_table_destroy), 0};
    catalog_look(m, &g);
    catalog *c = g_new0(catalog, 1);
    c->events = g_array_new(FALSE, FALSE, sizeof(catalog_event));
    GHashTableIter iterator;
    gpointer name, fields;
    g_hash_table_iter_init(&iterator, g.events);
    while (g_hash_table_iter_next(&iterator, &name, &fields)) {
        if (*(const char *)name == '\0')
            continue;
        catalog_event event = {g_strdup(name), fields_of(fields)};
        g_array_append_val(c->events, event);
    }
    g_array_sort(c->events, by_name);
    g_hash_table_destroy(g.events);
    return c;
}

void catalog_free(catalog *c)
{
    if (c == NULL)
        return;
    for (guint i = 0; i < c->events->len; i++) {
        catalog_event *event = &g_array_index(c->events, catalog_event, i);
        for (guint j = 0; j < event->fields->len; j++)
            g_free(g_array_index(event->fields, catalog_field, j).name);
        g_array_free(event->fields, TRUE);
        g_free(event->name);
    }
    g_array_free(c->events, TRUE);
    g_free(c);
}

static void add_fields(GPtrArray *names, const catalog_event *event, bool numbers_only)
{
    for (guint i = 0; i < event->fields->len; i++) {
        const catalog_field *field = &g_array_index(event->fields, catalog_field, i);
        guint at;
        if ((field->is_number || !numbers_only) &&
            !g_ptr_array_find_with_equal_func(names, field->name, g_str_equal, &at))
            g_ptr_array_add(names, g_strdup(field->name));
    }
}

char **catalog_fields(const catalog *c, const char *event, bool numbers_only)
{
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; i < c->events->len; i++) {
        const catalog_event *one = &g_array_index(c->events, catalog_event, i);
        if (event == NULL || strcmp(one->name, event) == 0)
            add_fields(names, one, numbers_only);
    }
    g_ptr_array_sort(names, by_name);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}
