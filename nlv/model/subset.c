#include "config.h"

#include "model/subset.h"

#include "requests/hash64.h"
#include "filter/filter_internal.h"

#include <string.h>

enum { ROWS_AT_ONCE = 1 << 14 };

bool subset_is_enough(const nl_filter *filter)
{
    for (size_t i = 0; i < filter->test_count; i++) {
        nl_member member = filter->tests[i].member;
        if (member != NL_MEMBER_EVENT && member != NL_MEMBER_HOST && member != NL_MEMBER_PROG)
            return false;
    }
    return true;
}

typedef struct subsetting {
    const store *full;
    store *part;
    const nl_filter *filter; /* NULL: all records */
    const GArray *places;    /* places of the selected records, sorted; NULL: all records */
    guint next;              /* index in places of the likely place of the next record */
    nl_record *record;
    GHashTable *known; /* maps event, host and program (in 64 bits) to 2 if they match the filter, and to 1 otherwise */
    uint16_t *events, *hosts, *progs,
        *colors;      /* maps the numbers of names in the full store to the numbers in the part */
    bool *is_clock;   /* indexed by event: records of this event describe a clock */
    size_t **cursors; /* positions in the lists of loadlines, by loadline and index of the host */
    batch rows;
} subsetting;

/* ---- matching ---- */

static nl_string string_of(const names *n, uint16_t number)
{
    const char *text = names_text(n, number);
    return number == NAMES_NONE ? (nl_string){NULL, 0} : (nl_string){text, strlen(text)};
}

/* Returns whether a record is selected. First compares the likely place, because consecutive records are usually at
 * consecutive places. */
static bool is_selected(subsetting *s, uint32_t record)
{
    if (s->places == NULL)
        return true;
    const uint64_t place = store_place(s->full, record), *all = (const uint64_t *)(const void *)s->places->data;
    const guint count = s->places->len;
    if (s->next < count && all[s->next] == place) {
        s->next++;
        return true;
    }
    guint low = 0, high = count;
    if (s->next < count && all[s->next] > place && (s->next == 0 || all[s->next - 1] < place))
        return false;
    while (low < high) {
        const guint middle = low + (high - low) / 2;
        if (all[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < count && all[low] == place;
    s->next = low + found;
    return found;
}

static bool matches(subsetting *s, uint32_t record)
{
    if (s->filter == NULL)
        return true;
    const store *full = s->full;
    uint16_t event = store_event(full, record), host = store_host(full, record), prog = store_prog(full, record);
    guint64 key = (guint64)event | (guint64)host << 16 | (guint64)prog << 32;
    gpointer known = g_hash_table_lookup(s->known, &key);
    if (known != NULL)
        return GPOINTER_TO_INT(known) == 2;
    s->record->event = string_of(full->names.events, event);
    s->record->host = string_of(full->names.hosts, host);
    s->record->prog = string_of(full->names.progs, prog);
    bool is = nl_filter_matches(s->filter, s->record);
    g_hash_table_insert(s->known, g_memdup2(&key, sizeof key), GINT_TO_POINTER(1 + is));
    return is;
}

/* ---- names ---- */

static uint16_t *map_names(const names *from, names *to)
{
    uint16_t *map = g_new(uint16_t, NAMES_NONE + 1);
    memset(map, 0xff, (NAMES_NONE + 1) * sizeof *map);
    for (size_t i = 0; i < names_count(from); i++)
        map[i] = names_put(to, string_of(from, (uint16_t)i));
    return map;
}

static bool *find_clocks(const store *full)
{
    bool *is = g_new0(bool, NAMES_NONE + 1);
    for (size_t event = 0; event < names_count(full->names.events); event++)
        for (unsigned i = 0; i < SPEC_CLOCKS; i++)
            is[event] = is[event] || strcmp(names_text(full->names.events, (uint16_t)event), spec_clocks[i].event) == 0;
    return is;
}

/* ---- records ---- */

static void add_value(subsetting *s, uint32_t record, size_t loadline, batch_row *row)
{
    const loadline_lists *l = &s->full->loadlines[loadline];
    uint16_t owner = store_loadline_owner(s->full, loadline, store_event(s->full, record), store_host(s->full, record));
    for (size_t i = 0; i < l->count; i++) {
        const list *own = l->hosts[i].list;
        size_t *at = &s->cursors[loadline][i];
        if (l->hosts[i].host != owner)
            continue;
        while (*at < own->count && list_at(own, *at) < record)
            ++*at;
        for (; *at < own->count && list_at(own, *at) == record; ++*at)
            batch_add_value(&s->rows, row, (uint16_t)loadline, list_value(own, *at));
        return;
    }
}

static void add_steps(subsetting *s, uint32_t record, uint16_t event)
{
    const store *full = s->full;
    batch_step *steps = &s->rows.steps[(s->rows.count - 1) * s->rows.layers];
    for (unsigned layer = 0; layer < s->rows.layers; layer++) {
        uint32_t object = store_object(full, record, layer);
        spec_step what = spec_step_of(full->spec, event, layer);
        if (object == STORE_NONE || what.lifeline == SPEC_NONE)
            continue;
        const objects_chunk *c = &full->objects[layer].chunks[object / STORE_CHUNK];
        steps[layer].key = c->keys[object % STORE_CHUNK];
        uint16_t color = c->colors[object % STORE_CHUNK];
        steps[layer].color =
            full->spec->lifelines[what.lifeline].color == COLOR_BY_FIELD ? s->colors[color] : NAMES_NONE;
    }
}

static void add_record(subsetting *s, uint32_t record)
{
    const store *full = s->full;
    uint16_t event = store_event(full, record);
    batch_row *row = batch_add(&s->rows);
    row->time_ns = store_time(full, record);
    row->place = store_place(full, record);
    row->event = s->events[event];
    row->host = s->hosts[store_host(full, record)];
    row->prog = s->progs[store_prog(full, record)];
    for (unsigned i = 0; i < SPEC_HIDDEN_LOADLINES; i++)
        if (i == SPEC_DURATION || s->is_clock[event])
            add_value(s, record, full->spec->drawn_loadlines + i, row);
    if (event < full->spec->event_count) {
        const spec_event *plan = &full->spec->events[event];
        for (unsigned i = 0; i < plan->loadline_count; i++)
            add_value(s, record, plan->loadlines[i], row);
    }
    add_steps(s, record, event);
}

static bool add_records(subsetting *s, const atomic_bool *stopping)
{
    batch_clear(&s->rows, s->full->spec->layers);
    for (uint32_t record = s->full->first; record < s->full->count; record++) {
        if (is_selected(s, record) && matches(s, record))
            add_record(s, record);
        if (s->rows.count < ROWS_AT_ONCE)
            continue;
        store_append(s->part, &s->rows);
        batch_clear(&s->rows, s->full->spec->layers);
        if (*stopping)
            return false;
    }
    store_append(s->part, &s->rows);
    return true;
}

store *subset_new(const store *full, const nl_filter *filter, const GArray *places, const drawing *d,
                  const atomic_bool *stopping)
{
    const names *all[] = {full->names.events, full->names.hosts, full->names.progs};
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        if (names_count(all[i]) >= NAMES_MAX)
            return NULL;
    batch_names own = {names_new(), names_new(), names_new(), names_new()};
    subsetting s = {.full = full, .filter = filter, .places = places, .record = nl_record_new()};
    s.part = store_new(spec_new(d, own.events, full->spec->seed), own, full->looks_out);
    s.known = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
    s.events = map_names(full->names.events, own.events);
    s.hosts = map_names(full->names.hosts, own.hosts);
    s.progs = map_names(full->names.progs, own.progs);
    s.colors = map_names(full->names.colors, own.colors);
    s.is_clock = find_clocks(full);
    s.cursors = g_new0(size_t *, full->spec->loadline_count + 1);
    for (size_t i = 0; i < full->spec->loadline_count; i++)
        s.cursors[i] = g_new0(size_t, full->loadlines[i].count + 1);
    bool done = full->spec->layers == s.part->spec->layers && add_records(&s, stopping);
    for (size_t i = 0; i < full->spec->loadline_count; i++)
        g_free(s.cursors[i]);
    g_free(s.cursors);
    g_free(s.is_clock);
    g_free(s.events);
    g_free(s.hosts);
    g_free(s.progs);
    g_free(s.colors);
    g_hash_table_destroy(s.known);
    batch_free(&s.rows);
    s.record->event = s.record->host = s.record->prog = (nl_string){NULL, 0};
    nl_record_free(s.record);
    if (done)
        return s.part;
    store_free(s.part);
    return NULL;
}
