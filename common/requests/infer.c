#include "config.h"

#include "requests/infer.h"

#include "requests/hash64.h"

#include <string.h>

enum {
    LIFELINES_MAX = 3,
    IDS_MAX = 4,
    EVENTS_MAX = 64, /* of one lifeline: more cannot be told apart in a drawing */
    LOADLINES_PER_EVENT = 2,
    LOADLINES_MAX = 6,
    POINTS_MAX = 16,
    LOADLINE_RECORDS = 3,
};

static const double least_links = 0.05; /* links per record of an id */

typedef struct inference {
    const trace *t;
    size_t count; /* records looked at: the first ones, up to INFER_RECORDS */
    size_t strings;
    bool *used; /* by an event's string: it has its place in the drawing */
    drawing *result;
} inference;

typedef struct group {
    uint32_t records;
    uint32_t events; /* different ones */
} group;

/* Records grouped by something, and in each group the different events. */
typedef struct grouping {
    GHashTable *groups; /* key to index + 1 */
    GHashTable *pairs;  /* (index, event) seen */
    GArray *members;    /* group */
} grouping;

static grouping grouping_new(void)
{
    return (grouping){
        .groups = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL),
        .pairs = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL),
        .members = g_array_new(FALSE, TRUE, sizeof(group)),
    };
}

static void grouping_free(grouping *g)
{
    g_hash_table_destroy(g->groups);
    g_hash_table_destroy(g->pairs);
    g_array_free(g->members, TRUE);
}

static gint64 *boxed(guint64 value)
{
    gint64 *box = g_new(gint64, 1);
    *box = (gint64)value;
    return box;
}

/* The number of the group of key, made when it is new. */
static guint group_of(grouping *g, guint64 key)
{
    gpointer found = g_hash_table_lookup(g->groups, &key);
    if (found != NULL)
        return GPOINTER_TO_UINT(found) - 1;
    group empty = {0};
    g_array_append_val(g->members, empty);
    g_hash_table_insert(g->groups, boxed(key), GUINT_TO_POINTER(g->members->len));
    return g->members->len - 1;
}

static void add_to_group(grouping *g, guint64 key, uint32_t event)
{
    guint index = group_of(g, key);
    group *member = &g_array_index(g->members, group, index);
    member->records++;
    guint64 pair = (guint64)index << 32 | event;
    if (g_hash_table_contains(g->pairs, &pair))
        return;
    g_hash_table_add(g->pairs, boxed(pair));
    member->events++;
}

/* How good a field, or several, is at tying events together. */
typedef struct tie {
    uint64_t links;
    uint64_t records;
    uint64_t objects; /* groups that tie anything */
} tie;

static tie tie_of(const grouping *g)
{
    tie result = {0};
    for (guint i = 0; i < g->members->len; i++) {
        const group *member = &g_array_index(g->members, group, i);
        result.links += member->events - 1;
        result.records += member->records;
        result.objects += member->events > 1;
    }
    return result;
}

/* A field's name and how its groups are numbered: one pass over the log serves all fields. */
static uint32_t best_field(const inference *in, tie *best)
{
    grouping g = grouping_new();
    GArray *names = g_array_new(FALSE, FALSE, sizeof(uint32_t)); /* of each group */
    for (size_t i = 0; i < in->count; i++) {
        const trace_record *record = trace_get(in->t, i);
        if (record->event == TRACE_NONE || in->used[record->event])
            continue;
        const trace_field *fields = trace_fields(in->t, record);
        for (uint32_t f = 0; f < record->field_count; f++) {
            add_to_group(&g, (guint64)fields[f].name << 32 | fields[f].value, record->event);
            if (names->len < g.members->len)
                g_array_append_val(names, fields[f].name);
        }
    }
    tie *ties = g_new0(tie, in->strings + 1);
    for (guint i = 0; i < g.members->len; i++) {
        const group *member = &g_array_index(g.members, group, i);
        tie *t = &ties[g_array_index(names, uint32_t, i)];
        t->links += member->events - 1;
        t->records += member->records;
        t->objects += member->events > 1;
    }
    uint32_t name = TRACE_NONE;
    *best = (tie){0};
    /* A single object is worth a lifeline when it is all that there is. */
    uint64_t least_objects = in->result->lifelines->len > 0 ? 2 : 1;
    for (uint32_t i = 0; i < in->strings; i++)
        if (ties[i].links > best->links && ties[i].objects >= least_objects &&
            (double)ties[i].links >= least_links * (double)ties[i].records) {
            *best = ties[i];
            name = i;
        }
    g_free(ties);
    g_array_free(names, TRUE);
    grouping_free(&g);
    return name;
}

/* A lifeline that is being found. */
typedef struct candidate {
    uint32_t ids[IDS_MAX];
    unsigned id_count;
} candidate;

/* A number for the object that a record belongs to: a hash of its id values, good enough to count with. False without
 * them. */
static bool object_key(const inference *in, const candidate *c, const trace_record *record, guint64 *key)
{
    *key = 0;
    for (unsigned i = 0; i < c->id_count; i++) {
        uint32_t value = trace_value(in->t, record, c->ids[i]);
        if (value == TRACE_NONE)
            return false;
        *key = (*key ^ value) * UINT64_C(0x9e3779b97f4a7c15);
        *key ^= *key >> 29;
    }
    return true;
}

static grouping group_objects(const inference *in, const candidate *c)
{
    grouping g = grouping_new();
    for (size_t i = 0; i < in->count; i++) {
        const trace_record *record = trace_get(in->t, i);
        guint64 key;
        if (record->event != TRACE_NONE && !in->used[record->event] && object_key(in, c, record, &key))
            add_to_group(&g, key, record->event);
    }
    return g;
}

/* The fields of the first record that has the id so far: only they can refine it. */
static const trace_record *example_of(const inference *in, const candidate *c)
{
    for (size_t i = 0; i < in->count; i++) {
        const trace_record *record = trace_get(in->t, i);
        guint64 key;
        if (record->event != TRACE_NONE && !in->used[record->event] && object_key(in, c, record, &key))
            return record;
    }
    return NULL;
}

/* Adds the field that makes the most further links, while one does (by a twentieth at least). */
static void refine(const inference *in, candidate *c, tie *links)
{
    while (c->id_count < IDS_MAX) {
        const trace_record *example = example_of(in, c);
        uint32_t best = TRACE_NONE;
        const trace_field *fields = example == NULL ? NULL : trace_fields(in->t, example);
        for (uint32_t f = 0; example != NULL && f < example->field_count; f++) {
            candidate with = *c;
            with.ids[with.id_count++] = fields[f].name;
            grouping g = group_objects(in, &with);
            tie t = tie_of(&g);
            grouping_free(&g);
            if (t.links > links->links + links->links / 20) {
                *links = t;
                best = fields[f].name;
            }
        }
        if (best == TRACE_NONE)
            return;
        c->ids[c->id_count++] = best;
    }
}

/* The events that objects share, each with its first record's place, and how often one precedes another. */
typedef struct precedence {
    uint32_t events[EVENTS_MAX];
    unsigned count;
    uint32_t before[EVENTS_MAX][EVENTS_MAX];
} precedence;

static int infer_place_of(const precedence *p, uint32_t event)
{
    for (unsigned i = 0; i < p->count; i++)
        if (p->events[i] == event)
            return (int)i;
    return -1;
}

/* An object's events so far, as bits by their place. */
static void count_precedence(const inference *in, const candidate *c, const grouping *g, precedence *p)
{
    uint64_t *seen = g_new0(uint64_t, g->members->len + 1);
    for (size_t i = 0; i < in->count; i++) {
        const trace_record *record = trace_get(in->t, i);
        guint64 key;
        if (record->event == TRACE_NONE || in->used[record->event] || !object_key(in, c, record, &key))
            continue;
        guint index = GPOINTER_TO_UINT(g_hash_table_lookup(g->groups, &key)) - 1;
        if (g_array_index(g->members, group, index).events < 2)
            continue;
        int place = infer_place_of(p, record->event);
        if (place < 0 && p->count < EVENTS_MAX) {
            place = (int)p->count;
            p->events[p->count++] = record->event;
        }
        if (place < 0 || (seen[index] >> place & 1))
            continue;
        for (unsigned other = 0; other < p->count; other++)
            p->before[other][place] += seen[index] >> other & 1;
        seen[index] |= UINT64_C(1) << place;
    }
    g_free(seen);
}

/* Orders the events: more of the others follow than precede it, the earlier it stands. Fills order with places. */
static void order_events(const precedence *p, unsigned order[EVENTS_MAX])
{
    int score[EVENTS_MAX] = {0};
    for (unsigned i = 0; i < p->count; i++) {
        order[i] = i;
        for (unsigned j = 0; j < p->count; j++)
            score[i] += (p->before[i][j] > p->before[j][i]) - (p->before[i][j] < p->before[j][i]);
    }
    for (unsigned i = 1; i < p->count; i++)
        for (unsigned j = i; j > 0 && score[order[j - 1]] < score[order[j]]; j--) {
            unsigned swap = order[j];
            order[j] = order[j - 1];
            order[j - 1] = swap;
        }
}

/* Adds the lifeline of an id. False when no two events share it. */
static bool add_lifeline_of(inference *in, candidate c)
{
    grouping g = group_objects(in, &c);
    precedence *p = g_new0(precedence, 1);
    count_precedence(in, &c, &g, p);
    grouping_free(&g);
    unsigned order[EVENTS_MAX];
    order_events(p, order);
    const char *events[EVENTS_MAX + 1] = {NULL}, *ids[IDS_MAX + 1] = {NULL};
    for (unsigned i = 0; i < p->count; i++) {
        events[i] = trace_string(in->t, p->events[order[i]]);
        in->used[p->events[i]] = true;
    }
    for (unsigned i = 0; i < c.id_count; i++)
        ids[i] = trace_string(in->t, c.ids[i]);
    bool found = p->count >= 2;
    if (found)
        drawing_add_lifeline(in->result, ids[c.id_count - 1], events, ids, "HOST");
    g_free(p);
    return found;
}

/* Finds one more lifeline among the events that are left. False when there is none. */
static bool add_lifeline(inference *in)
{
    tie links;
    candidate c = {.id_count = 1};
    c.ids[0] = best_field(in, &links);
    if (c.ids[0] == TRACE_NONE)
        return false;
    refine(in, &c, &links);
    return add_lifeline_of(in, c);
}

/* What is known of one field of an event that may be a loadline. */
typedef struct series {
    uint32_t event, field;
    uint32_t records;
    uint32_t numbers;
    double least, most;
} series;

static GArray *find_series(const inference *in)
{
    GArray *all = g_array_new(FALSE, TRUE, sizeof(series));
    GHashTable *places = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
    for (size_t i = 0; i < in->count; i++) {
        const trace_record *record = trace_get(in->t, i);
        if (record->event == TRACE_NONE || in->used[record->event])
            continue;
        const trace_field *fields = trace_fields(in->t, record);
        for (uint32_t f = 0; f < record->field_count; f++) {
            guint64 key = (guint64)record->event << 32 | fields[f].name;
            gpointer found = g_hash_table_lookup(places, &key);
            double value;
            bool number = trace_number(in->t, fields[f].value, &value);
            if (found == NULL) {
                series fresh = {.event = record->event, .field = fields[f].name, .least = value, .most = value};
                g_array_append_val(all, fresh);
                found = GUINT_TO_POINTER(all->len);
                g_hash_table_insert(places, boxed(key), found);
            }
            series *s = &g_array_index(all, series, GPOINTER_TO_UINT(found) - 1);
            s->records++;
            if (!number)
                continue;
            s->least = s->numbers == 0 || value < s->least ? value : s->least;
            s->most = s->numbers == 0 || value > s->most ? value : s->most;
            s->numbers++;
        }
    }
    g_hash_table_destroy(places);
    return all;
}

static void add_loadlines(inference *in)
{
    GArray *all = find_series(in);
    bool *drawn = g_new0(bool, in->strings + 1);
    for (guint i = 0; i < all->len && in->result->loadlines->len < LOADLINES_MAX; i++) {
        const series *s = &g_array_index(all, series, i);
        if (s->numbers < LOADLINE_RECORDS || s->numbers < s->records || s->least == s->most)
            continue;
        unsigned of_event = 0;
        for (guint j = 0; j < in->result->loadlines->len; j++) {
            const drawing_loadline *l = g_ptr_array_index(in->result->loadlines, j);
            of_event += strcmp(l->event, trace_string(in->t, s->event)) == 0;
        }
        if (of_event >= LOADLINES_PER_EVENT)
            continue;
        const char *field = trace_string(in->t, s->field);
        drawing_add_loadline(in->result, field, trace_string(in->t, s->event), field, "");
        drawn[s->event] = true;
    }
    for (size_t i = 0; i < in->strings; i++)
        in->used[i] |= drawn[i];
    g_free(drawn);
    g_array_free(all, TRUE);
}

static void add_points(inference *in)
{
    for (size_t i = 0; i < trace_count(in->t) && in->result->points->len < POINTS_MAX; i++) {
        uint32_t event = trace_get(in->t, i)->event;
        if (event == TRACE_NONE || in->used[event])
            continue;
        in->used[event] = true;
        drawing_add_point(in->result, trace_string(in->t, event), trace_string(in->t, event));
    }
}

static bool add_given_lifeline(inference *in, const char *const *ids)
{
    candidate c = {0};
    for (; *ids != NULL && c.id_count < IDS_MAX; ids++)
        c.ids[c.id_count++] = trace_find(in->t, *ids);
    return add_lifeline_of(in, c);
}

drawing *infer_drawing_by(const trace *t, const char *const *ids)
{
    inference in = {
        .t = t,
        .count = trace_count(t) < INFER_RECORDS ? trace_count(t) : INFER_RECORDS,
        .strings = trace_string_count(t),
        .used = g_new0(bool, trace_string_count(t) + 1),
        .result = drawing_new(),
    };
    if (ids != NULL)
        add_given_lifeline(&in, ids);
    else
        while (in.result->lifelines->len < LIFELINES_MAX && add_lifeline(&in))
            continue;
    add_loadlines(&in);
    add_points(&in);
    g_free(in.used);
    return in.result;
}

drawing *infer_drawing(const trace *t)
{
    return infer_drawing_by(t, NULL);
}
