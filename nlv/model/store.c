#include "config.h"

#include "model/edges.h"
#include "model/store.h"
#include "requests/clock_bounds.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS_MIN = 1024, TAIL_MAX = 4 * STORE_CHUNK, LATE_SHARE = 4, FEW_SHARE = 64, SHRUNK_SHARE = 16 };

/* ---- creation and destruction ---- */

store *store_new(spec *s, batch_names names, bool looks_out)
{
    store *st = g_new0(store, 1);
    st->spec = s;
    st->names = names;
    st->looks_out = looks_out;
    st->lifelines = g_new0(lifeline_lists, s->lifeline_count + 1);
    for (size_t i = 0; i < s->lifeline_count; i++) {
        unsigned rows = s->lifelines[i].rows;
        st->lifelines[i] =
            (lifeline_lists){rows, g_new0(list *, (size_t)rows * rows + 1), NULL, g_new0(list *, rows + 1)};
    }
    st->loadlines = g_new0(loadline_lists, s->loadline_count + 1);
    st->point_count = s->point_count;
    st->points = g_new0(list, s->point_count + STORE_POINTS_MAX);
    st->found = g_new0(uint16_t, STORE_POINTS_MAX);
    st->visits = g_new0(uint32_t, NAMES_NONE + 1);
    st->point_hosts = g_new0(uint8_t, NAMES_NONE + 1);
    st->late.layers = s->layers;
    return st;
}

static void free_list(list *l)
{
    if (l == NULL)
        return;
    list_free(l);
    g_free(l);
}

static void free_chunk(chunk *c)
{
    if (!c->borrowed)
        g_free(c->times); /* one allocation for all arrays */
    *c = (chunk){0};
}

static void free_objects(objects *o)
{
    for (uint32_t i = 0; i * (uint64_t)STORE_CHUNK < o->count; i++)
        if (!o->chunks[i].borrowed)
            g_free(o->chunks[i].keys); /* one allocation for all arrays */
    g_free(o->chunks);
    g_free(o->slots);
}

/* Calls `function` for every list. Passes the layer of the list's lifeline, or 0 for other lists. */
static void each_list(store *s, void (*function)(store *s, list *l, unsigned layer, const void *user), const void *user)
{
    for (size_t i = 0; i < s->spec->lifeline_count; i++) {
        lifeline_lists *l = &s->lifelines[i];
        unsigned layer = s->spec->lifelines[i].layer;
        for (size_t j = 0; j < (size_t)l->rows * l->rows; j++)
            if (l->segments[j] != NULL)
                function(s, l->segments[j], layer, user);
        for (size_t j = 0; l->violations != NULL && j < (size_t)l->rows * l->rows; j++)
            if (l->violations[j] != NULL)
                function(s, l->violations[j], layer, user);
        for (unsigned row = 0; row < l->rows; row++)
            if (l->starts[row] != NULL)
                function(s, l->starts[row], layer, user);
    }
    for (size_t i = 0; i < s->spec->loadline_count; i++)
        for (size_t j = 0; j < s->loadlines[i].count; j++)
            function(s, s->loadlines[i].hosts[j].list, 0, user);
    for (size_t i = 0; i < s->point_count; i++)
        function(s, &s->points[i], 0, user);
}

void store_free(store *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->spec->lifeline_count; i++) {
        lifeline_lists *l = &s->lifelines[i];
        for (size_t j = 0; j < (size_t)l->rows * l->rows; j++)
            free_list(l->segments[j]);
        for (size_t j = 0; l->violations != NULL && j < (size_t)l->rows * l->rows; j++)
            free_list(l->violations[j]);
        for (unsigned row = 0; row < l->rows; row++)
            free_list(l->starts[row]);
        g_free(l->segments);
        g_free(l->violations);
        g_free(l->starts);
    }
    for (size_t i = 0; i < s->spec->loadline_count; i++) {
        for (size_t j = 0; j < s->loadlines[i].count; j++)
            free_list(s->loadlines[i].hosts[j].list);
        g_free(s->loadlines[i].hosts);
    }
    for (size_t i = 0; i < s->point_count; i++)
        list_free(&s->points[i]);
    for (uint32_t i = 0; i * (uint64_t)STORE_CHUNK < s->count; i++)
        free_chunk(&s->chunks[i]);
    for (unsigned layer = 0; layer < SPEC_LAYERS; layer++)
        free_objects(&s->objects[layer]);
    g_free(s->lifelines);
    g_free(s->loadlines);
    g_free(s->points);
    g_free(s->found);
    g_free(s->chunks);
    g_free(s->marks);
    g_free(s->visits);
    g_free(s->point_hosts);
    batch_free(&s->late);
    names_free(s->names.events);
    names_free(s->names.hosts);
    names_free(s->names.progs);
    names_free(s->names.colors);
    spec_free(s->spec);
    if (s->mapped != NULL) {
        munmap(s->mapped, s->mapped_size);
        close(s->mapped_fd);
    }
    g_free(s);
}

/* ---- objects ---- */

static uint64_t key_of(const objects *o, uint32_t number)
{
    const uint64_t *keys = o->chunks[number / STORE_CHUNK].keys;
    return keys != NULL ? keys[number % STORE_CHUNK] : 0;
}

static void grow_slots(objects *o)
{
    size_t count = MAX(o->slot_count, SLOTS_MIN);
    while (o->count + 1 > count / 3 * 2)
        count *= 2;
    g_free(o->slots);
    o->slots = g_new0(uint32_t, count);
    o->slot_count = count;
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->chunks[i / STORE_CHUNK].keys == NULL)
            continue;
        size_t at = o->chunks[i / STORE_CHUNK].keys[i % STORE_CHUNK] & (count - 1);
        /* the current object is the latest object with the key */
        while (o->slots[at] != 0 && key_of(o, o->slots[at] - 1) != key_of(o, i))
            at = (at + 1) & (count - 1);
        o->slots[at] = i + 1;
    }
}

static void own_objects_chunk(objects_chunk *c)
{
    if (!c->borrowed && c->keys != NULL)
        return;
    objects_chunk own = {
        .keys = g_malloc0((size_t)STORE_CHUNK * (8 + 4 + 2))}; /* zeroed, because the index stores whole chunks */
    own.last = (uint32_t *)(void *)(own.keys + STORE_CHUNK);
    own.colors = (uint16_t *)(void *)(own.last + STORE_CHUNK);
    if (c->borrowed) {
        memcpy(own.keys, c->keys, STORE_CHUNK * sizeof *own.keys);
        memcpy(own.last, c->last, STORE_CHUNK * sizeof *own.last);
        memcpy(own.colors, c->colors, STORE_CHUNK * sizeof *own.colors);
    }
    *c = own;
}

static uint32_t add_object(objects *o, uint64_t key, uint16_t color)
{
    uint32_t number = o->count;
    if (number / STORE_CHUNK >= o->capacity) {
        uint32_t capacity = MAX(2 * o->capacity, 4);
        o->chunks = g_renew(objects_chunk, o->chunks, capacity);
        memset(o->chunks + o->capacity, 0, (capacity - o->capacity) * sizeof *o->chunks);
        o->capacity = capacity;
    }
    objects_chunk *c = &o->chunks[number / STORE_CHUNK];
    own_objects_chunk(c);
    c->keys[number % STORE_CHUNK] = key;
    c->last[number % STORE_CHUNK] = STORE_NONE;
    c->colors[number % STORE_CHUNK] = color;
    o->count++;
    return number;
}

/* Returns the object of a key. Adds an object if the key is new, or if `create` is true. */
static uint32_t find_object(objects *o, uint64_t key, uint16_t color, bool create)
{
    if (o->slots == NULL || o->count + 1 > o->slot_count / 3 * 2)
        grow_slots(o);
    size_t at = key & (o->slot_count - 1);
    for (; o->slots[at] != 0; at = (at + 1) & (o->slot_count - 1)) {
        uint32_t number = o->slots[at] - 1;
        if (key_of(o, number) == key) {
            if (create)
                break;
            return number;
        }
    }
    uint32_t number = add_object(o, key, color);
    o->slots[at] = number + 1;
    return number;
}

static uint32_t *last_of(store *s, uint32_t object, unsigned layer)
{
    return &s->objects[layer].chunks[object / STORE_CHUNK].last[object % STORE_CHUNK];
}

/* Sets step->object for each step of a row, and adds new objects. */
static void resolve_objects(store *s, batch *b, size_t row)
{
    for (unsigned layer = 0; layer < b->layers; layer++) {
        batch_step *step = &b->steps[row * b->layers + layer];
        spec_step what = spec_step_of(s->spec, b->rows[row].event, layer);
        bool again = step->key != 0 && what.row == 0 && s->spec->lifelines[what.lifeline].again;
        step->object =
            step->key != 0 ? find_object(&s->objects[layer], step->key, step->color, again) : (uint32_t)STORE_NONE;
        uint32_t last = step->key != 0 ? *last_of(s, step->object, layer) : (uint32_t)STORE_NONE;
        const spec_order *order = last != STORE_NONE ? s->spec->lifelines[what.lifeline].order : NULL;
        if (order != NULL && (order->first >> what.row & 1) && last >= s->first &&
            edges_begin_again(s, last, layer, &b->rows[row]))
            step->object = find_object(&s->objects[layer], step->key, step->color, true);
    }
}

static uint16_t *color_of(store *s, uint32_t object, unsigned layer)
{
    return &s->objects[layer].chunks[object / STORE_CHUNK].colors[object % STORE_CHUNK];
}

/* ---- lists ---- */

/* Returns 0. A list_measure for truncating lists whose nodes need no measure. */
static float no_measure(const void *unused, uint32_t record)
{
    (void)unused, (void)record;
    return 0;
}

static list *made(list **l, bool has_values)
{
    if (*l == NULL) {
        *l = g_new0(list, 1);
        (*l)->has_values = has_values;
    }
    return *l;
}

list *store_loadline_list(store *s, uint16_t loadline, uint16_t host)
{
    loadline_lists *l = &s->loadlines[loadline];
    for (size_t i = 0; i < l->count; i++)
        if (l->hosts[i].host == host)
            return l->hosts[i].list;
    if (l->count == STORE_HOSTS_MAX)
        return NULL;
    l->hosts = g_renew(host_list, l->hosts, l->count + 1);
    l->hosts[l->count] = (host_list){.host = host};
    return made(&l->hosts[l->count++].list, true);
}

static list *found_loadline_list(const store *s, size_t loadline, uint16_t host)
{
    const loadline_lists *l = &s->loadlines[loadline];
    for (size_t i = 0; i < l->count; i++)
        if (l->hosts[i].host == host)
            return l->hosts[i].list;
    return NULL;
}

const list *store_durations(const store *s, uint16_t event)
{
    const list *l = found_loadline_list(s, s->spec->drawn_loadlines + SPEC_DURATION, event);
    return l != NULL && l->count > l->start ? l : NULL;
}

double store_duration(const store *s, uint32_t record)
{
    const list *l = store_durations(s, store_event(s, record));
    const size_t at = l != NULL ? list_find(l, record, l->start) : 0;
    return l != NULL && at < l->count && list_at(l, at) == record ? list_value(l, at) : 0;
}

static const list *machine_list(const store *s, uint16_t host)
{
    const list *l = found_loadline_list(s, s->spec->drawn_loadlines + SPEC_MACHINE, host);
    return l != NULL && l->count > l->start ? l : NULL;
}

static void note_machine(store *s, float machine)
{
    s->has_machines = s->has_machines || (s->has_machine && machine != s->machine);
    s->has_machine = true;
    s->machine = machine;
}

void store_note_machines(store *s)
{
    const loadline_lists *all = &s->loadlines[s->spec->drawn_loadlines + SPEC_MACHINE];
    for (size_t i = 0; i < all->count; i++)
        if (all->hosts[i].list->count > all->hosts[i].list->start)
            note_machine(s, list_value(all->hosts[i].list, all->hosts[i].list->count - 1));
}

/* Returns the index of the last value at or before a record, or of the first value if all values are later. The list
 * must not be empty. */
static size_t place_that_holds(const list *l, uint32_t record)
{
    size_t at = list_find(l, record + 1, l->start);
    return at > l->start ? at - 1 : at;
}

/* Returns the error of a host's clock according to one kind of clock record. Sets *said_at to the number of the clock
 * record. Requires that the lists of offsets and errors have the same records. */
static store_clock clock_of_kind(const store *s, unsigned kind, uint16_t host, uint32_t record, uint32_t *said_at)
{
    size_t loadline = s->spec->drawn_loadlines + 2 * kind;
    const list *offsets = found_loadline_list(s, loadline, host), *errors = found_loadline_list(s, loadline + 1, host);
    if (offsets == NULL || errors == NULL || offsets->count == offsets->start || errors->count == errors->start)
        return (store_clock){0};
    size_t at = place_that_holds(offsets, record);
    double offset_ns = list_value(offsets, at), error_ns = list_value(errors, place_that_holds(errors, record));
    *said_at = list_at(offsets, at);
    if (s->has_machine && !s->has_machines && fabs(offset_ns) <= error_ns && machine_list(s, host) != NULL)
        return (store_clock){0};
    return (store_clock){true, kind == SPEC_MEASURED, offset_ns - error_ns, offset_ns + error_ns};
}

static store_clock store_clock_measured(const store *s, uint16_t host, uint32_t record)
{
    uint32_t said_at;
    return clock_of_kind(s, SPEC_MEASURED, host, record, &said_at);
}

store_clock store_clock_furthest(const store *s, uint16_t host)
{
    size_t loadline = s->spec->drawn_loadlines + 2 * SPEC_MEASURED;
    const list *offsets = found_loadline_list(s, loadline, host), *errors = found_loadline_list(s, loadline + 1, host);
    store_clock found = {0};
    double max_ns = 0;
    for (size_t at = offsets != NULL ? offsets->start : 0; offsets != NULL && errors != NULL && at < offsets->count;
         at++) {
        double offset_ns = list_value(offsets, at), error_ns = list_value(errors, MIN(at, errors->count - 1));
        if (fabs(offset_ns) - error_ns <= max_ns)
            continue;
        max_ns = fabs(offset_ns) - error_ns;
        found = (store_clock){true, true, offset_ns - error_ns, offset_ns + error_ns};
    }
    return found;
}

/* Uses the most accurate of the latest values before the record. If all values are later, uses the first value. */
store_clock store_clock_said(const store *s, uint16_t host, uint32_t record)
{
    store_clock best = {0};
    uint32_t best_at = STORE_NONE;
    for (unsigned i = 0; i < SPEC_CLOCKS; i++) {
        if (i == SPEC_MEASURED)
            continue;
        uint32_t at = STORE_NONE;
        store_clock own = clock_of_kind(s, i, host, record, &at);
        if (!own.is_known)
            continue;
        bool is_before = at <= record, best_is_before = best.is_known && best_at <= record;
        bool is_better =
            !best.is_known || (is_before && !best_is_before) ||
            (is_before ? own.high_ns - own.low_ns < best.high_ns - best.low_ns : !best_is_before && at < best_at);
        if (is_better) {
            best = own;
            best_at = at;
        }
    }
    return best;
}

/* Uses the limits on which the measurement and the host's own values agree, or only the measurement if they contradict
 * each other. */
store_clock store_clock_at(const store *s, uint16_t host, uint32_t record)
{
    store_clock measured = store_clock_measured(s, host, record), said = store_clock_said(s, host, record);
    if (!measured.is_known || !said.is_known)
        return measured.is_known ? measured : said;
    store_clock both = {true, true, MAX(measured.low_ns, said.low_ns), MIN(measured.high_ns, said.high_ns)};
    return both.low_ns <= both.high_ns ? both : measured;
}

double store_clock_bound_ns(const store *s, uint16_t host, uint16_t other, uint32_t record)
{
    const list *machine = machine_list(s, host), *other_machine = machine_list(s, other);
    if (host == other ||
        (machine != NULL && other_machine != NULL &&
         list_value(machine, machine->count - 1) == list_value(other_machine, other_machine->count - 1)))
        return 0;
    store_clock a = store_clock_at(s, host, record), b = store_clock_at(s, other, record);
    if (!a.is_known && !b.is_known)
        return (double)CLOCK_BOUND_UNKNOWN;
    /* if only one clock is known, use its error as the error relative to the other clock */
    return (a.is_known ? (a.high_ns - a.low_ns) / 2 : 0) + (b.is_known ? (b.high_ns - b.low_ns) / 2 : 0);
}

/* Returns the list of points of an event, or NULL if nlv does not draw the event as points. If the store looks for
 * events outside the drawing, adds a list for a new event. */
static list *point_list(store *s, uint16_t event)
{
    const spec *sp = s->spec;
    if (event < sp->event_count)
        return sp->events[event].point != SPEC_NONE ? &s->points[sp->events[event].point] : NULL;
    if (!s->looks_out || event == NAMES_NONE)
        return NULL;
    size_t found = s->point_count - sp->point_count, i = 0;
    while (i < found && s->found[i] != event)
        i++;
    if (i == found) {
        if (found == STORE_POINTS_MAX)
            return NULL;
        s->found[found] = event;
        s->points[s->point_count++] = (list){0};
    }
    return &s->points[sp->point_count + i];
}

/* ---- adding in order ---- */

static void add_chunk(store *s)
{
    uint32_t number = s->count / STORE_CHUNK;
    if (number >= s->capacity) {
        s->capacity = MAX(2 * s->capacity, 16);
        s->chunks = g_renew(chunk, s->chunks, s->capacity);
        s->marks = g_renew(int64_t, s->marks, (size_t)s->capacity * (STORE_CHUNK / STORE_MARK));
    }
    size_t stride = 8 + 8 + 3 * 2 + s->spec->layers * 8;
    chunk c = {.times = g_malloc(stride * STORE_CHUNK)};
    c.places = (uint64_t *)(c.times + STORE_CHUNK);
    uint32_t *next = (uint32_t *)(void *)(c.places + STORE_CHUNK);
    for (unsigned layer = 0; layer < s->spec->layers; layer++) {
        c.objects[layer] = next;
        c.previous[layer] = next + STORE_CHUNK;
        next += 2 * STORE_CHUNK;
    }
    c.events = (uint16_t *)(void *)next;
    c.hosts = c.events + STORE_CHUNK;
    c.progs = c.hosts + STORE_CHUNK;
    s->chunks[number] = c;
}

/* Counts an object's visit to a host, unless `again` is true. Gives the object the color of the host that, among its
 * hosts, the fewest objects have visited so far. */
static void visit(store *s, uint32_t object, unsigned layer, uint16_t host, bool again)
{
    if (host == NAMES_NONE)
        return;
    if (!again)
        s->visits[host]++;
    uint16_t *color = color_of(s, object, layer);
    if (*color == NAMES_NONE || s->visits[host] < s->visits[*color])
        *color = host;
}

/*
 * Adds the lines that lead to a record in row `to`. Each line goes into the list of the two rows that it connects.
 */
static void add_lines(const store *s, list **lists, unsigned rows, uint32_t record, unsigned layer, unsigned to,
                      const uint32_t *from, size_t count)
{
    int64_t time_ns = store_time(s, record);
    for (size_t i = 0; i < count; i++) {
        unsigned row = spec_step_of(s->spec, store_event(s, from[i]), layer).row;
        list_append(made(&lists[row * rows + to], true), record, (float)(time_ns - store_time(s, from[i])));
    }
}

static void add_step(store *s, uint32_t record, unsigned layer, const batch_row *row, const batch_step *step)
{
    chunk *c = &s->chunks[record / STORE_CHUNK];
    uint32_t at = record % STORE_CHUNK;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a chunk has arrays for every layer */
    c->objects[layer][at] = step->object;
    c->previous[layer][at] = STORE_NONE;
    if (step->object == STORE_NONE)
        return;
    spec_step what = spec_step_of(s->spec, row->event, layer);
    const spec_lifeline *l = &s->spec->lifelines[what.lifeline];
    lifeline_lists *lists = &s->lifelines[what.lifeline];
    uint32_t *last = last_of(s, step->object, layer), before = *last;
    if (before < s->first)
        before = STORE_NONE;
    *last = record;
    c->previous[layer][at] = before;
    if (l->color == COLOR_BY_HOST)
        visit(s, step->object, layer, row->host, before != STORE_NONE && store_host(s, before) == row->host);
    else if (*color_of(s, step->object, layer) == NAMES_NONE)
        *color_of(s, step->object, layer) = l->color == COLOR_BY_PROG ? row->prog : step->color;
    uint32_t found[EDGES_MAX];
    size_t count = edges_find(s, record, layer, found);
    add_lines(s, lists->segments, lists->rows, record, layer, what.row, found, count);
    if (count == 0)
        list_append(made(&lists->starts[what.row], false), record, 0);
    if (l->order == NULL || (l->order->children[what.row] | l->order->received[what.row]) == 0)
        return;
    count = edges_find_violations(s, record, layer, found);
    if (count > 0 && lists->violations == NULL)
        lists->violations = g_new0(list *, (size_t)lists->rows * lists->rows);
    add_lines(s, lists->violations, lists->rows, record, layer, what.row, found, count);
}

static void store_add_row(store *s, const batch *b, size_t i)
{
    const batch_row *row = &b->rows[i];
    if (s->count == STORE_NONE) {
        s->rejected++;
        return;
    }
    if (s->count % STORE_CHUNK == 0)
        add_chunk(s);
    if (s->count % STORE_MARK == 0)
        s->marks[s->count / STORE_MARK] = row->time_ns;
    uint32_t record = s->count, at = record % STORE_CHUNK;
    chunk *c = &s->chunks[record / STORE_CHUNK];
    c->times[at] = row->time_ns;
    c->places[at] = row->place;
    c->events[at] = row->event;
    c->hosts[at] = row->host;
    c->progs[at] = row->prog;
    for (unsigned layer = 0; layer < b->layers; layer++)
        add_step(s, record, layer, row, &b->steps[i * b->layers + layer]);
    for (unsigned v = 0; v < row->value_count; v++) {
        const batch_value *value = &b->values[row->first_value + v];
        list *values =
            store_loadline_list(s, value->loadline, store_loadline_owner(s, value->loadline, row->event, row->host));
        if (values != NULL)
            list_append(values, record, value->value);
        if (value->loadline == s->spec->drawn_loadlines + SPEC_MACHINE)
            note_machine(s, value->value);
    }
    list *points = point_list(s, row->event);
    if (points != NULL) {
        list_append(points, record, 0);
        s->point_hosts[row->host] = true;
    }
    s->count++;
}

/* ---- late records ---- */

static void copy_row(batch *to, const batch *from, size_t i)
{
    batch_row row = from->rows[i];
    batch_row *copy = batch_add(to);
    uint32_t first = copy->first_value;
    *copy = row;
    copy->first_value = first;
    copy->value_count = 0;
    memcpy(&to->steps[(to->count - 1) * to->layers], &from->steps[i * from->layers], to->layers * sizeof *to->steps);
    for (unsigned v = 0; v < row.value_count; v++)
        batch_add_value(to, copy, from->values[row.first_value + v].loadline, from->values[row.first_value + v].value);
}

typedef struct row_order {
    int64_t time_ns;
    size_t row;
} row_order;

static gint compare_rows(gconstpointer a, gconstpointer b, gpointer unused)
{
    (void)unused;
    const row_order *first = a, *second = b;
    return (first->time_ns > second->time_ns) - (first->time_ns < second->time_ns);
}

static bool is_sorted(const batch *b)
{
    for (size_t i = 1; i < b->count; i++)
        if (b->rows[i - 1].time_ns > b->rows[i].time_ns)
            return false;
    return true;
}

/* Returns a batch's rows in order of time, sorted stably. */
static row_order *order_rows(const batch *b)
{
    row_order *order = g_new(row_order, b->count + 1);
    for (size_t i = 0; i < b->count; i++)
        order[i] = (row_order){b->rows[i].time_ns, i};
    if (!is_sorted(b))
        g_qsort_with_data(order, (gint)b->count, sizeof *order, compare_rows, NULL); /* stable */
    return order;
}

/* Moves the values of a record from its lists into a batch. The record must be the last record of these lists. */
static void take_values(store *s, uint32_t record, batch *to, batch_row *row)
{
    uint16_t event = store_event(s, record);
    for (unsigned i = 0; i < SPEC_HIDDEN_LOADLINES; i++) {
        size_t loadline = s->spec->drawn_loadlines + i;
        list *l = found_loadline_list(s, loadline, store_loadline_owner(s, loadline, event, store_host(s, record)));
        if (l == NULL || l->count == l->start || list_at(l, l->count - 1) != record)
            continue;
        batch_add_value(to, row, (uint16_t)(s->spec->drawn_loadlines + i), list_value(l, l->count - 1));
        list_truncate(l, l->count - 1, NULL, NULL);
    }
    if (event >= s->spec->event_count)
        return;
    const spec_event *e = &s->spec->events[event];
    for (unsigned i = e->loadline_count; i-- > 0;) {
        list *l = found_loadline_list(s, e->loadlines[i], store_host(s, record));
        if (l == NULL || l->count == l->start || list_at(l, l->count - 1) != record)
            continue;
        batch_add_value(to, row, e->loadlines[i], list_value(l, l->count - 1));
        list_truncate(l, l->count - 1, NULL, NULL);
    }
}

static void truncate_list(store *s, list *l, unsigned layer, const void *from)
{
    (void)s, (void)layer;
    list_truncate(l, list_find(l, *(const uint32_t *)from, l->start), no_measure, NULL);
}

/* Moves the records from index `from` to the end into `taken`, in reverse order. */
static void pull_back(store *s, uint32_t from, batch *taken)
{
    for (uint32_t record = s->count; record-- > from;) {
        batch_row *row = batch_add(taken);
        row->time_ns = store_time(s, record);
        row->place = store_place(s, record);
        row->event = store_event(s, record);
        row->host = store_host(s, record);
        row->prog = store_prog(s, record);
        take_values(s, record, taken, row);
        batch_step *steps = &taken->steps[(taken->count - 1) * taken->layers];
        for (unsigned layer = 0; layer < taken->layers; layer++) {
            steps[layer].object = store_object(s, record, layer);
            steps[layer].color = NAMES_NONE;
            if (steps[layer].object != STORE_NONE)
                *last_of(s, steps[layer].object, layer) = store_previous(s, record, layer);
        }
    }
    each_list(s, truncate_list, &from);
    for (uint32_t i = (from + STORE_CHUNK - 1) / STORE_CHUNK; i * (uint64_t)STORE_CHUNK < s->count; i++)
        free_chunk(&s->chunks[i]);
    s->count = from;
}

/* If the last chunk is in a mapped index, replaces the chunk with a copy. Call the function before adding records,
 * because the mapped chunk has no space for further records. */
static void own_last_chunk(store *s)
{
    if (s->count % STORE_CHUNK == 0 || !s->chunks[s->count / STORE_CHUNK].borrowed)
        return;
    uint32_t count = s->count, at = count % STORE_CHUNK;
    chunk old = s->chunks[count / STORE_CHUNK];
    s->count -= at;
    add_chunk(s);
    s->count = count;
    chunk *c = &s->chunks[count / STORE_CHUNK];
    memcpy(c->times, old.times, at * sizeof *c->times);
    memcpy(c->places, old.places, at * sizeof *c->places);
    memcpy(c->events, old.events, at * sizeof *c->events);
    memcpy(c->hosts, old.hosts, at * sizeof *c->hosts);
    memcpy(c->progs, old.progs, at * sizeof *c->progs);
    for (unsigned layer = 0; layer < s->spec->layers; layer++) {
        memcpy(c->objects[layer], old.objects[layer], at * sizeof *c->objects[layer]);
        memcpy(c->previous[layer], old.previous[layer], at * sizeof *c->previous[layer]);
    }
}

static uint32_t find_after(const store *s, int64_t time_ns)
{
    return time_ns == INT64_MAX ? s->count : store_find_time(s, time_ns + 1);
}

/* Inserts rows in the order of time, and moves the later records. The rows must have their objects. */
static void merge(store *s, const batch *b)
{
    row_order *order = order_rows(b);
    batch taken = {.layers = b->layers};
    pull_back(s, find_after(s, order[0].time_ns), &taken);
    own_last_chunk(s);
    size_t left = taken.count;
    for (size_t i = 0; i < b->count; i++) {
        while (left > 0 && taken.rows[left - 1].time_ns <= order[i].time_ns)
            store_add_row(s, &taken, --left);
        store_add_row(s, b, order[i].row);
    }
    while (left > 0)
        store_add_row(s, &taken, --left);
    batch_free(&taken);
    g_free(order);
}

static void merge_late(store *s)
{
    batch late = s->late;
    s->late = (batch){.layers = late.layers};
    merge(s, &late);
    batch_free(&late);
}

/* Appends a row to the late rows. The store inserts many late rows together, because each insertion moves the later
 * records. */
static void put_late(store *s, const batch *b, size_t i)
{
    if (s->late.count == 0 || b->rows[i].time_ns < s->earliest_late)
        s->earliest_late = b->rows[i].time_ns;
    copy_row(&s->late, b, i);
}

static void count_unordered(store *s, const batch *b)
{
    int64_t latest_ns = s->count > s->first ? store_time(s, s->count - 1) : INT64_MIN;
    for (size_t i = 0; i < b->count; i++) {
        s->unordered += b->rows[i].time_ns < latest_ns;
        latest_ns = MAX(latest_ns, b->rows[i].time_ns);
    }
}

/* If the store has dropped records, removes the rows that are older than all remaining records, and counts these rows
 * as rejected. */
static void reject_oldest(store *s, batch *b)
{
    size_t kept = 0;
    int64_t oldest_ns = s->first > 0 && s->count > s->first ? store_time(s, s->first) : INT64_MIN;
    for (size_t i = 0; oldest_ns > INT64_MIN && i < b->count; i++) {
        if (b->rows[i].time_ns < oldest_ns)
            continue;
        b->rows[kept] = b->rows[i];
        memmove(&b->steps[kept * b->layers], &b->steps[i * b->layers], b->layers * sizeof *b->steps);
        kept++;
    }
    if (oldest_ns > INT64_MIN) {
        s->rejected += b->count - kept;
        b->count = kept;
    }
}

void store_append(store *s, batch *b)
{
    reject_oldest(s, b);
    if (b->count == 0)
        return;
    count_unordered(s, b);
    own_last_chunk(s);
    row_order *order = order_rows(b);
    for (size_t i = 0; i < b->count; i++) {
        resolve_objects(s, b, order[i].row);
        if (s->count > s->first && order[i].time_ns < store_time(s, s->count - 1))
            put_late(s, b, order[i].row);
        else
            store_add_row(s, b, order[i].row);
    }
    g_free(order);
    if (s->late.count == 0)
        return;
    uint32_t tail = s->count - find_after(s, s->earliest_late);
    if (tail < MAX(TAIL_MAX, s->late.count * LATE_SHARE))
        merge_late(s);
}

/* ---- colors ---- */

typedef void each_step(store *s, uint32_t record, unsigned layer, uint32_t object);

/*
 * Returns an array that is indexed by event of the spec. An element has a bit for each layer in which the event's
 * object has the color of a host.
 */
static uint8_t *layers_by_host(const spec *sp)
{
    uint8_t *layers = g_new0(uint8_t, sp->event_count + 1);
    for (size_t event = 0; event < sp->event_count; event++)
        for (unsigned layer = 0; layer < sp->layers; layer++) {
            uint16_t lifeline = sp->events[event].steps[layer].lifeline;
            if (lifeline != SPEC_NONE && sp->lifelines[lifeline].color == COLOR_BY_HOST)
                layers[event] |= (uint8_t)(1 << layer);
        }
    return layers;
}

/* Calls `function` for each step whose object has the color of a host. The compiler inlines this function and
 * `function`, because the loop visits every record. */
static inline __attribute__((always_inline)) void each_step_by_host(store *s, each_step *function)
{
    uint8_t *by_host = layers_by_host(s->spec);
    const size_t event_count = s->spec->event_count;
    for (uint32_t record = s->first; record < s->count; record++) {
        uint16_t event = store_event(s, record);
        unsigned layers = event < event_count ? by_host[event] : 0;
        for (unsigned layer = 0; layers != 0; layer++, layers >>= 1) {
            uint32_t object = (layers & 1) != 0 ? store_object(s, record, layer) : (uint32_t)STORE_NONE;
            if (object != STORE_NONE && object < s->objects[layer].count)
                function(s, record, layer, object);
        }
    }
    g_free(by_host);
}

static inline void count_visit(store *s, uint32_t record, unsigned layer, uint32_t object)
{
    uint16_t host = store_host(s, record);
    uint32_t before = store_previous(s, record, layer);
    if (host == NAMES_NONE || (before != STORE_NONE && store_host(s, before) == host))
        return;
    s->visits[host]++;
    if (before == STORE_NONE)
        *color_of(s, object, layer) = NAMES_NONE;
}

static inline void color_step(store *s, uint32_t record, unsigned layer, uint32_t object)
{
    visit(s, object, layer, store_host(s, record), true);
}

/* Gives each object the color of the host that, among its hosts, the fewest objects visit. For example, if all objects
 * share a client, their servers distinguish the objects better. */
static void give_colors(store *s)
{
    memset(s->visits, 0, (NAMES_NONE + 1) * sizeof *s->visits);
    each_step_by_host(s, count_visit);
    each_step_by_host(s, color_step);
    s->colored = s->count;
}

void store_settle(store *s)
{
    if (s->late.count > 0)
        merge_late(s);
}

typedef struct asked_colors {
    const store *store;
    unsigned layer;
} asked_colors;

static uint16_t color_of_step(const void *user, uint32_t record)
{
    const asked_colors *a = user;
    if (record < a->store->first)
        return LIST_COLOR_UNKNOWN; /* the store has dropped the record, but its node still exists */
    return store_color(a->store, store_object(a->store, record, a->layer), a->layer);
}

static uint16_t color_of_host(const void *user, uint32_t record)
{
    const asked_colors *a = user;
    return record >= a->store->first ? store_host(a->store, record) : LIST_COLOR_UNKNOWN;
}

/* Sets the colors of the lists' nodes, so that drawing need not look up a color for each pixel. If `all` is false,
 * colors only nodes with new entries. */
static void color_lists(store *s, bool all)
{
    for (size_t i = 0; i < s->spec->lifeline_count; i++) {
        lifeline_lists *l = &s->lifelines[i];
        asked_colors asked = {s, s->spec->lifelines[i].layer};
        for (size_t j = 0; j < (size_t)l->rows * l->rows; j++)
            if (l->segments[j] != NULL)
                list_color_nodes(l->segments[j], all, color_of_step, &asked);
    }
    for (size_t i = 0; i < s->point_count; i++)
        list_color_nodes(&s->points[i], all, color_of_host, &(asked_colors){s, 0});
}

void store_color_objects(store *s)
{
    bool all = s->count - s->first > (s->colored - MIN(s->colored, s->first)) / 4 * 5;
    if (all)
        give_colors(s);
    color_lists(s, all);
}

/* ---- memory ---- */

static void drop_from_list(store *s, list *l, unsigned layer, const void *first)
{
    (void)s, (void)layer;
    list_drop(l, *(const uint32_t *)first);
}

/* Returns whether no object of a chunk has a remaining step. */
static bool is_gone(const objects_chunk *c, uint32_t first)
{
    for (uint32_t i = 0; i < STORE_CHUNK; i++)
        if (c->last[i] != STORE_NONE && c->last[i] >= first)
            return false;
    return true;
}

static void drop_objects(objects *o, uint32_t first)
{
    bool any = false;
    for (uint32_t i = 0; i < o->count / STORE_CHUNK; i++) {
        objects_chunk *c = &o->chunks[i];
        if (c->keys == NULL || !is_gone(c, first))
            continue;
        if (!c->borrowed)
            g_free(c->keys);
        *c = (objects_chunk){0};
        any = true;
    }
    if (any && o->slots != NULL)
        grow_slots(o);
}

/* Drops the records before `first`, which is a multiple of STORE_CHUNK. There must be no late records. */
static void drop_before(store *s, uint32_t first)
{
    for (uint32_t i = s->first / STORE_CHUNK; i < first / STORE_CHUNK; i++)
        free_chunk(&s->chunks[i]);
    s->first = first;
    each_list(s, drop_from_list, &first);
    for (unsigned layer = 0; layer < s->spec->layers; layer++)
        drop_objects(&s->objects[layer], first);
}

bool store_shrink(store *s, size_t limit)
{
    if (store_memory(s) > limit)
        store_settle(s); /* inserted records may need less memory than late records, which drop_objects ignores */
    while (store_memory(s) > limit) {
        uint32_t first = s->first + MAX((s->count - s->first) / SHRUNK_SHARE, STORE_CHUNK);
        first -= first % STORE_CHUNK;
        if (first >= s->count)
            return false;
        drop_before(s, first);
    }
    return true;
}

static void add_list_memory(store *s, list *l, unsigned layer, const void *user)
{
    (void)s, (void)layer;
    **(size_t *const *)user += sizeof *l + list_memory(l);
}

/*
 * Returns the memory in bytes of late records, and of the records that will move when the store inserts the late
 * records. Ignores the records that will move if there are few late records. Otherwise, the limit would make the store
 * insert each very late record separately.
 */
static size_t late_memory(const store *s)
{
    if (s->late.count == 0)
        return 0;
    size_t row_size = sizeof(batch_row) + s->late.layers * sizeof(batch_step);
    bool are_few = s->late.count <= (s->count - s->first) / FEW_SHARE;
    size_t moved = are_few ? 0 : s->count - find_after(s, s->earliest_late);
    return 2 * (s->late.count + moved) * row_size + 2 * s->late.value_count * sizeof(batch_value);
}

size_t store_memory(const store *s)
{
    size_t sum = 0, *sum_at = &sum;
    for (uint32_t i = 0; i * (uint64_t)STORE_CHUNK < s->count; i++)
        if (s->chunks[i].times != NULL && !s->chunks[i].borrowed)
            sum += (size_t)STORE_CHUNK * (22 + 8 * s->spec->layers);
    for (unsigned layer = 0; layer < s->spec->layers; layer++) {
        const objects *o = &s->objects[layer];
        sum += o->slot_count * sizeof *o->slots;
        for (uint32_t i = 0; i * (uint64_t)STORE_CHUNK < o->count; i++)
            if (o->chunks[i].keys != NULL && !o->chunks[i].borrowed)
                sum += (size_t)STORE_CHUNK * 14;
    }
    sum += late_memory(s);
    each_list((store *)s, add_list_memory, &sum_at);
    return sum;
}

/*
 * Returns the last mark before a time, or the first mark. The time is in the interval that begins at this mark or at
 * the next mark.
 */
static uint32_t find_mark(const store *s, int64_t time_ns)
{
    uint32_t low = s->first / STORE_MARK, high = (uint32_t)(((uint64_t)s->count + STORE_MARK - 1) / STORE_MARK);
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->marks[middle] < time_ns)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint32_t store_find_place(const store *s, int64_t time_ns, uint64_t place)
{
    uint32_t record = store_find_time(s, time_ns);
    while (record < s->count && store_time(s, record) == time_ns && store_place(s, record) != place)
        record++;
    return record < s->count && store_place(s, record) == place ? record : (uint32_t)STORE_NONE;
}

uint32_t store_find_time_near(const store *s, int64_t time_ns)
{
    if (s->count == s->first)
        return s->count;
    uint32_t mark = find_mark(s, time_ns);
    uint64_t record = s->marks[mark] < time_ns ? (mark + 1) * (uint64_t)STORE_MARK : mark * (uint64_t)STORE_MARK;
    return (uint32_t)MIN(record, s->count);
}

uint32_t store_find_time(const store *s, int64_t time_ns)
{
    if (s->count == s->first)
        return s->count;
    uint32_t low = find_mark(s, time_ns);
    const int64_t *times =
        s->chunks[low / (STORE_CHUNK / STORE_MARK)].times + low % (STORE_CHUNK / STORE_MARK) * STORE_MARK;
    uint32_t from = 0, to = MIN(s->count - low * (uint32_t)STORE_MARK, STORE_MARK);
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (times[middle] < time_ns)
            from = middle + 1;
        else
            to = middle;
    }
    return low * STORE_MARK + from;
}
