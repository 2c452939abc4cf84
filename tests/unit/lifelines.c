#include "config.h"

#include "lifelines.h"

#include "requests/hash64.h"

#include <string.h>

/* Returns the index of each string in the lifeline's events; -1: not an event of the lifeline. */
static int32_t *places_of_events(const trace *t, lifelines *l)
{
    size_t strings = trace_string_count(t);
    int32_t *places = g_new(int32_t, strings + 1);
    memset(places, -1, (strings + 1) * sizeof *places);
    for (uint32_t i = 0; i < l->event_count; i++) {
        l->events[i] = trace_find(t, l->definition->events[i]);
        if (l->events[i] != TRACE_NONE)
            places[l->events[i]] = (int32_t)i;
    }
    return places;
}

enum { CHOICES = 4 /* fields joined by | */, IDS_MAX = 16, ROOT = 0x7fffffff };

/* Finds requests by their ID values: each pair of a prefix and the next value has a number, which is the next prefix.
 */

typedef struct object_finder {
    GHashTable *numbers; /* maps a pair, packed into 64 bits, to its number + 1 */
    guint ids;
    uint32_t names[IDS_MAX][CHOICES]; /* ended by TRACE_NONE */
} object_finder;

static void look_up_names(const trace *t, const char *id, uint32_t names[CHOICES])
{
    char **choices = g_strsplit(id, "|", CHOICES);
    guint count = g_strv_length(choices), known = 0;
    for (guint i = 0; i < CHOICES; i++)
        names[i] = TRACE_NONE;
    for (guint i = 0; i < count; i++) {
        names[known] = trace_find(t, choices[i]);
        known += names[known] != TRACE_NONE;
    }
    g_strfreev(choices);
}

static uint32_t value_of(const trace *t, const trace_record *record, const uint32_t names[CHOICES])
{
    uint32_t value = TRACE_NONE;
    for (guint i = 0; i < CHOICES && names[i] != TRACE_NONE && value == TRACE_NONE; i++)
        value = trace_value(t, record, names[i]);
    return value;
}

uint32_t lifelines_id_value(const trace *t, const trace_record *record, const char *id)
{
    uint32_t names[CHOICES];
    look_up_names(t, id, names);
    return value_of(t, record, names);
}

static bool find_object(object_finder *f, const trace *t, const trace_record *record, guint64 *key, uint32_t *last)
{
    uint32_t node = ROOT;
    for (guint i = 0; i < f->ids; i++) {
        uint32_t value = value_of(t, record, f->names[i]);
        if (value == TRACE_NONE)
            return false;
        guint64 pair = (guint64)node << 32 | value;
        *last = value;
        *key = pair;
        if (i + 1 == f->ids)
            return true;
        gpointer found = g_hash_table_lookup(f->numbers, &pair);
        if (found == NULL) {
            found = GUINT_TO_POINTER(g_hash_table_size(f->numbers) + 1);
            g_hash_table_insert(f->numbers, g_memdup2(&pair, sizeof pair), found);
        }
        node = GPOINTER_TO_UINT(found);
    }
    return false;
}

/* First pass: finds the request of each record. Returns the requests with their step_count. */
static GArray *number_objects(const trace *t, lifelines *l, const int32_t *places)
{
    object_finder finder = {.numbers = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL)};
    GHashTable *objects_by_key = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
    GArray *objects = g_array_new(FALSE, TRUE, sizeof(lifeline_object));
    for (finder.ids = 0; finder.ids < IDS_MAX && l->definition->ids[finder.ids] != NULL; finder.ids++)
        look_up_names(t, l->definition->ids[finder.ids], finder.names[finder.ids]);
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_record *record = trace_get(t, i);
        guint64 key;
        uint32_t last;
        l->object_of_record[i] = -1;
        if (record->event == TRACE_NONE || places[record->event] < 0 || !find_object(&finder, t, record, &key, &last))
            continue;
        gpointer found = g_hash_table_lookup(objects_by_key, &key);
        if (found == NULL || (l->definition->again && places[record->event] == 0)) {
            lifeline_object object = {.color = TRACE_NONE, .name = last};
            g_array_append_val(objects, object);
            found = GUINT_TO_POINTER(objects->len);
            g_hash_table_insert(objects_by_key, g_memdup2(&key, sizeof key), found);
        }
        uint32_t number = GPOINTER_TO_UINT(found) - 1;
        g_array_index(objects, lifeline_object, number).step_count++;
        l->object_of_record[i] = (int32_t)number;
        l->step_count++;
    }
    g_hash_table_destroy(finder.numbers);
    g_hash_table_destroy(objects_by_key);
    return objects;
}

/* Second pass: stores the steps of each request one after the other. */
static void place_steps(const trace *t, lifelines *l, const int32_t *places)
{
    l->steps = g_new(lifeline_step, l->step_count + 1);
    uint32_t next = 0;
    for (size_t i = 0; i < l->object_count; i++) {
        l->objects[i].first_step = next;
        next += l->objects[i].step_count;
        l->objects[i].step_count = 0;
    }
    for (size_t i = 0; i < trace_count(t); i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): number_objects set it for every record */
        if (l->object_of_record[i] < 0)
            continue;
        lifeline_object *object = &l->objects[l->object_of_record[i]];
        l->steps[object->first_step + object->step_count++] =
            (lifeline_step){(uint32_t)i, (uint32_t)places[trace_get(t, i)->event]};
    }
}

static uint32_t host_of(const trace *t, const lifelines *l, const lifeline_object *object, uint32_t step)
{
    return trace_get(t, l->steps[object->first_step + step].record)->host;
}

/* The host that the fewest requests visit characterizes a request best: a server, and not the common client. */
static void color_by_host(const trace *t, lifelines *l)
{
    uint32_t *visits = g_new0(uint32_t, trace_string_count(t) + 1);
    int64_t *visitor = g_new(int64_t, trace_string_count(t) + 1);
    memset(visitor, -1, (trace_string_count(t) + 1) * sizeof *visitor);
    for (size_t i = 0; i < l->object_count; i++)
        for (uint32_t s = 0; s < l->objects[i].step_count; s++) {
            uint32_t host = host_of(t, l, &l->objects[i], s);
            if (host != TRACE_NONE && visitor[host] != (int64_t)i) {
                visitor[host] = (int64_t)i;
                visits[host]++;
            }
        }
    for (size_t i = 0; i < l->object_count; i++)
        for (uint32_t s = 0; s < l->objects[i].step_count; s++) {
            uint32_t host = host_of(t, l, &l->objects[i], s);
            uint32_t *color = &l->objects[i].color;
            if (host != TRACE_NONE && (*color == TRACE_NONE || visits[host] < visits[*color]))
                *color = host;
        }
    g_free(visits);
    g_free(visitor);
}

static void color_objects(const trace *t, lifelines *l)
{
    const char *field = l->definition->color;
    if (strcmp(field, "HOST") == 0 || strcmp(field, "host") == 0) {
        color_by_host(t, l);
        return;
    }
    bool by_program = strcmp(field, "PROG") == 0;
    uint32_t name = trace_find(t, field);
    for (size_t i = 0; i < l->object_count; i++)
        for (uint32_t s = 0; s < l->objects[i].step_count && l->objects[i].color == TRACE_NONE; s++) {
            const trace_record *record = trace_get(t, l->steps[l->objects[i].first_step + s].record);
            l->objects[i].color = by_program ? record->prog : trace_value(t, record, name);
        }
}

lifelines *lifelines_build(const trace *t, const drawing_lifeline *definition)
{
    lifelines *l = g_new0(lifelines, 1);
    l->definition = definition;
    l->event_count = g_strv_length(definition->events);
    l->events = g_new(uint32_t, l->event_count + 1);
    l->object_of_record = g_new(int32_t, trace_count(t) + 1);
    int32_t *places = places_of_events(t, l);
    GArray *objects = number_objects(t, l, places);
    l->object_count = objects->len;
    l->objects = (lifeline_object *)(void *)g_array_free(objects, FALSE);
    place_steps(t, l, places);
    color_objects(t, l);
    g_free(places);
    return l;
}

void lifelines_free(lifelines *l)
{
    if (l == NULL)
        return;
    g_free(l->events);
    g_free(l->objects);
    g_free(l->steps);
    g_free(l->object_of_record);
    g_free(l);
}

int64_t lifelines_time_ns(const lifelines *l, const trace *t, const lifeline_step *step)
{
    (void)l;
    return trace_get(t, step->record)->time_ns;
}
