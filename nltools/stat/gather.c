#include "config.h"

#include "stat/gather.h"

#include "base/hash_bytes.h"
#include "stat/text_key.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum { NAMES_MAX = 1 << 30 /* bytes */, BY_MAX = 65534, BY_OTHERS = 65535, IDS_MAX = 16, PLACES_MAX = 65535 };

#define HASH_BIT (UINT64_C(1) << 63) /* no hash is 0 */

/* Steps aside, what is known of an object. */
typedef struct object {
    uint64_t hash;
    size_t name; /* in names */
    uint32_t name_size;
    uint32_t steps;
    uint32_t latest; /* step */
    uint16_t by;
} object;

struct gather {
    const drawing_lifeline *definition;
    const char *by;
    bool by_host;
    guint ids;
    gather_take *take;
    void *user;

    GHashTable *places;  /* an event, nl_string, to its place + 1 */
    GHashTable *by_ids;  /* a value of by, nl_string, to its number */
    GPtrArray *by_texts; /* numbers to NUL-terminated values */
    GArray *by_objects;  /* for hosts: how many objects visit one */
    GStringChunk *strings;

    gather_step *steps;
    size_t step_count, step_room, steps_most;
    GArray *objects;   /* object */
    GByteArray *names; /* of objects, beside each other */
    uint32_t *slots;   /* open addressing, linear probing: the number of an object + 1; 0: empty */
    size_t slot_count; /* a power of two */
    uint64_t seed;     /* so that nobody can choose names that collide */
    GByteArray *name;  /* of the present record */
    uint64_t early;
};

/* ---- strings ---- */

static nl_string *keep_string(gather *g, nl_string text)
{
    nl_string *kept = g_new(nl_string, 1);
    *kept = (nl_string){g_string_chunk_insert_len(g->strings, text.data, (gssize)text.size), text.size};
    return kept;
}

/* ---- objects ---- */

static bool same_name(const gather *g, guint a, guint b)
{
    const object *first = &g_array_index(g->objects, object, a), *second = &g_array_index(g->objects, object, b);
    return first->hash == second->hash && first->name_size == second->name_size &&
           memcmp(g->names->data + first->name, g->names->data + second->name, first->name_size) == 0;
}

static void grow_slots(gather *g, size_t count)
{
    g_free(g->slots);
    g->slots = g_new0(uint32_t, count);
    g->slot_count = count;
    for (guint i = 0; i < g->objects->len; i++) {
        size_t at = g_array_index(g->objects, object, i).hash & (count - 1);
        while (g->slots[at] != 0 && !same_name(g, g->slots[at] - 1, i))
            at = (at + 1) & (count - 1);
        g->slots[at] = i + 1; /* of several of one name the last is meant */
    }
}

static bool is_named(const gather *g, const object *o, uint64_t hash)
{
    return o->hash == hash && o->name_size == g->name->len &&
           memcmp(g->names->data + o->name, g->name->data, o->name_size) == 0;
}

/* The number of the object that name is of, a new one where there is none yet, or when it begins anew. */
static uint32_t find_object(gather *g, bool anew)
{
    uint64_t hash = hash_bytes(g->seed, (const char *)g->name->data, g->name->len) | HASH_BIT;
    size_t at = hash & (g->slot_count - 1);
    for (; g->slots[at] != 0; at = (at + 1) & (g->slot_count - 1))
        if (is_named(g, &g_array_index(g->objects, object, g->slots[at] - 1), hash)) {
            if (anew)
                break;
            return g->slots[at] - 1;
        }
    object o = {.hash = hash, .name = g->names->len, .name_size = g->name->len};
    g_byte_array_append(g->names, g->name->data, g->name->len);
    g_array_append_val(g->objects, o);
    g->slots[at] = g->objects->len;
    if (g->objects->len > g->slot_count / 2)
        grow_slots(g, 2 * g->slot_count);
    return g->objects->len - 1;
}

/* Puts the values of the record's id fields together. False when it lacks one. */
static bool make_name(gather *g, const nl_record *record)
{
    g_byte_array_set_size(g->name, 0);
    for (guint i = 0; i < g->ids; i++) {
        nl_field field;
        char scratch[NL_FIELD_TEXT_SIZE];
        if (!drawing_find_id(record, g->definition->ids[i], &field))
            return false;
        nl_string text = nl_field_text(&field, scratch);
        if (i > 0)
            g_byte_array_append(g->name, (const guint8 *)"/", 1);
        g_byte_array_append(g->name, (const guint8 *)text.data, (guint)text.size);
    }
    return true;
}

/* ---- what tells objects apart ---- */

static uint16_t number_of_by(gather *g, const nl_record *record)
{
    nl_field field;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (g->by == NULL || !nl_record_find(record, g->by, &field))
        return 0;
    nl_string text = nl_field_text(&field, scratch);
    gpointer found = g_hash_table_lookup(g->by_ids, &text);
    if (found != NULL)
        return (uint16_t)GPOINTER_TO_UINT(found);
    if (g->by_texts->len > BY_MAX)
        return BY_OTHERS;
    nl_string *kept = keep_string(g, text);
    guint number = g->by_texts->len;
    g_ptr_array_add(g->by_texts, (gpointer)kept->data);
    g_hash_table_insert(g->by_ids, kept, GUINT_TO_POINTER(number));
    return (uint16_t)number;
}

const char *gather_by(const gather *g, uint16_t by)
{
    return by == BY_OTHERS ? "(others)" : g_ptr_array_index(g->by_texts, by);
}

/* NOLINTBEGIN(clang-analyzer-core.*): in take_out an object has as many steps as were put beside each other for it */

static bool is_first_with(const gather_step *steps, size_t i)
{
    for (size_t before = 0; before < i; before++)
        if (steps[before].by == steps[i].by)
            return false;
    return true;
}

/* Counts whom an object visits: once each, among the first steps, which do for telling the common from the rare. */
static void count_visits(gather *g, const gather_step *steps, size_t count)
{
    for (size_t i = 0; i < count && i < 64; i++) {
        if (!is_first_with(steps, i))
            continue;
        if (steps[i].by >= g->by_objects->len)
            g_array_set_size(g->by_objects, steps[i].by + 1u);
        g_array_index(g->by_objects, uint32_t, steps[i].by)++;
    }
}

/* By host: the one that the fewest objects visit says most about this one (a server rather than the client of all). */
static uint16_t rarest_host(const gather *g, const gather_step *steps, size_t count)
{
    uint16_t rarest = 0;
    for (size_t i = 0; i < count; i++) {
        uint16_t by = steps[i].by;
        if (by != 0 && by < g->by_objects->len &&
            (rarest == 0 ||
             g_array_index(g->by_objects, uint32_t, by) < g_array_index(g->by_objects, uint32_t, rarest)))
            rarest = by;
    }
    return rarest;
}

/* ---- handing out ---- */

/* Few, and nearly in order. */
static void sort_by_time(gather_step *steps, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        gather_step step = steps[i];
        size_t at = i;
        for (; at > 0 && steps[at - 1].time_ns > step.time_ns; at--)
            steps[at] = steps[at - 1];
        steps[at] = step;
    }
}

static gint compare_times(gconstpointer a, gconstpointer b, gpointer unused)
{
    (void)unused;
    const gather_step *first = a, *second = b;
    return (first->time_ns > second->time_ns) - (first->time_ns < second->time_ns);
}

static void sort_steps(gather_step *steps, size_t count)
{
    bool sorted = true;
    for (size_t i = 1; i < count && sorted; i++)
        sorted = steps[i - 1].time_ns <= steps[i].time_ns;
    if (sorted)
        return;
    if (count < 64)
        sort_by_time(steps, count);
    else
        g_qsort_with_data(steps, (gint)count, sizeof *steps, compare_times, NULL); /* it is stable */
}

static void hand_out(gather *g, const object *o, const gather_step *steps, size_t count)
{
    uint16_t by = g->by_host ? rarest_host(g, steps, count) : o->by;
    gather_object whole = {(const char *)g->names->data + o->name, o->name_size, o->hash, steps, count, by};
    g->take(g->user, &whole);
}

/*
 * Puts the steps of the objects that go beside each other and hands those objects out. goes[i] says of object i whether
 * it goes. The steps of the others stay, in their order.
 */
static void take_out(gather *g, const bool *goes)
{
    size_t *ends = g_new(size_t, g->objects->len + 1), total = 0, kept = 0;
    for (guint i = 0; i < g->objects->len; i++) {
        ends[i] = total;
        total += goes[i] ? g_array_index(g->objects, object, i).steps : 0;
    }
    gather_step *apart = g_new(gather_step, total + 1);
    for (size_t i = 0; i < g->step_count; i++) {
        gather_step step = g->steps[i];
        if (goes[step.object])
            apart[ends[step.object]++] = step;
        else
            g->steps[kept++] = step;
    }
    g->step_count = kept;
    for (int pass = g->by_host ? 0 : 1; pass < 2; pass++)
        for (guint i = 0; i < g->objects->len; i++) {
            const object *o = &g_array_index(g->objects, object, i);
            gather_step *steps = apart + (ends[i] - o->steps);
            if (!goes[i])
                continue;
            if (pass == 0) {
                count_visits(g, steps, o->steps);
            } else {
                sort_steps(steps, o->steps);
                hand_out(g, o, steps, o->steps);
            }
        }
    g_free(apart);
    g_free(ends);
}
/* NOLINTEND(clang-analyzer-core.*) */

/* Forgets the objects that went: those that stay are numbered anew. */
static void gather_forget(gather *g, const bool *gone)
{
    uint32_t *numbers = g_new(uint32_t, g->objects->len + 1);
    GByteArray *names = g_byte_array_new();
    guint count = 0;
    for (guint i = 0; i < g->objects->len; i++) {
        object o = g_array_index(g->objects, object, i);
        if (gone[i])
            continue;
        g_byte_array_append(names, g->names->data + o.name, o.name_size);
        o.name = names->len - o.name_size;
        numbers[i] = count;
        g_array_index(g->objects, object, count++) = o;
    }
    g_array_set_size(g->objects, count);
    g_byte_array_unref(g->names);
    g->names = names;
    for (size_t i = 0; i < g->step_count; i++) {
        g->steps[i].object = numbers[g->steps[i].object];
        g_array_index(g->objects, object, g->steps[i].object).latest = (uint32_t)i;
    }
    grow_slots(g, g->slot_count);
    g_free(numbers);
}

/* Steps are too many: objects without one in the latest half go; when that is nearly none, all do. */
static void gather_make_room(gather *g)
{
    bool *goes = g_new(bool, g->objects->len + 1);
    size_t freed = 0, before = g->early;
    for (int attempt = 0; attempt < 2 && freed < g->step_count / 8; attempt++) {
        g->early = before;
        freed = 0;
        for (guint i = 0; i < g->objects->len; i++) {
            const object *o = &g_array_index(g->objects, object, i);
            goes[i] = attempt == 1 || o->latest < g->step_count / 2;
            freed += goes[i] ? o->steps : 0;
            g->early += goes[i];
        }
    }
    take_out(g, goes);
    gather_forget(g, goes);
    g_free(goes);
}

/* ---- adding ---- */

static gather_step *new_step(gather *g)
{
    if (g->step_count == g->step_room) {
        g->step_room = MIN(2 * g->step_room, g->steps_most);
        g->steps = g_renew(gather_step, g->steps, g->step_room);
    }
    return &g->steps[g->step_count++];
}

uint64_t gather_add(gather *g, const nl_record *record)
{
    gpointer place = record->event.data != NULL ? g_hash_table_lookup(g->places, &record->event) : NULL;
    if (place == NULL || !make_name(g, record))
        return 0;
    if (g->step_count == g->steps_most || g->names->len > NAMES_MAX)
        gather_make_room(g);
    bool anew = g->definition->again && GPOINTER_TO_UINT(place) == 1;
    uint32_t number = find_object(g, anew);
    uint16_t by = number_of_by(g, record);
    object *o = &g_array_index(g->objects, object, number);
    o->steps++;
    o->latest = (uint32_t)g->step_count;
    o->by = o->by == 0 ? by : o->by;
    /* Years 1824 to 2116, so that differences are times too. */
    int64_t time_ns = CLAMP(record->time_ns, INT64_MIN / 2, INT64_MAX / 2);
    *new_step(g) = (gather_step){time_ns, number, (uint16_t)(GPOINTER_TO_UINT(place) - 1), by};
    return g_array_index(g->objects, object, number).hash;
}

void gather_finish(gather *g)
{
    bool *goes = g_new(bool, g->objects->len + 1);
    memset(goes, true, g->objects->len + 1);
    take_out(g, goes);
    g_free(goes);
}

uint64_t gather_early(const gather *g)
{
    return g->early;
}

/* ---- life ---- */

gather *gather_new(const drawing_lifeline *definition, const char *by, size_t steps_most, gather_take *take, void *user)
{
    gather *g = g_new0(gather, 1);
    g->definition = definition;
    g->by = by;
    g->by_host = by != NULL && g_ascii_strcasecmp(by, "HOST") == 0;
    g->ids = MIN(g_strv_length(definition->ids), IDS_MAX);
    g->take = take;
    g->user = user;
    g->strings = g_string_chunk_new(64 << 10);
    g->places = g_hash_table_new_full(text_key_hash, text_key_equal, g_free, NULL);
    for (guint i = 0; i < PLACES_MAX && definition->events[i] != NULL; i++)
        g_hash_table_insert(g->places,
                            keep_string(g, (nl_string){definition->events[i], strlen(definition->events[i])}),
                            GUINT_TO_POINTER(i + 1));
    g->by_ids = g_hash_table_new_full(text_key_hash, text_key_equal, g_free, NULL);
    g->by_texts = g_ptr_array_new();
    g_ptr_array_add(g->by_texts, (gpointer) "");
    g->by_objects = g_array_new(FALSE, TRUE, sizeof(uint32_t));
    g->steps_most = CLAMP(steps_most, 1024, UINT32_MAX / 2);
    g->step_room = 1024;
    g->steps = g_new(gather_step, g->step_room);
    g->objects = g_array_new(FALSE, FALSE, sizeof(object));
    g->names = g_byte_array_new();
    g->name = g_byte_array_new();
    if (getrandom(&g->seed, sizeof g->seed, GRND_NONBLOCK) != sizeof g->seed)
        g->seed = (uint64_t)g_get_monotonic_time();
    grow_slots(g, 1024);
    return g;
}

void gather_free(gather *g)
{
    if (g == NULL)
        return;
    g_hash_table_destroy(g->places);
    g_hash_table_destroy(g->by_ids);
    g_ptr_array_free(g->by_texts, TRUE);
    g_array_free(g->by_objects, TRUE);
    g_string_chunk_free(g->strings);
    g_array_free(g->objects, TRUE);
    g_byte_array_unref(g->names);
    g_byte_array_unref(g->name);
    g_free(g->steps);
    g_free(g->slots);
    g_free(g);
}
