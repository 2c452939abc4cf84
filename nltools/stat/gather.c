#include "config.h"

#include "stat/gather.h"

#include "base/hash_bytes.h"
#include "stat/text_key.h"

#include <string.h>
#include <sys/random.h>

enum {
    NAMES_MAX = 1 << 30 /* maximum size of the names of requests, in bytes */,
    GROUP_COUNT_MAX = GATHER_BY_OTHERS - 1,
    GROUP_TEXTS_MAX = 16 << 20
};
enum { IDS_MAX = 16, PLACES_MAX = 65535, MEMORY_MIN = 64 << 10 };

#define HASH_BIT (UINT64_C(1) << 63) /* set in every hash, so that no hash is 0 */

/* The data about a request, except its steps. */
typedef struct request {
    uint64_t hash;
    size_t name; /* offset in names */
    uint32_t name_size;
    uint32_t step_count;
    uint32_t latest; /* index of its latest step */
    uint16_t by;
} request;

struct gather {
    const drawing_lifeline *definition;
    const char *by;
    bool by_host;
    guint id_count, event_count;
    gather_take *take;
    void *user;
    size_t memory_max;
    uint64_t sample_mask, sample_value;

    GHashTable *places;    /* maps an event (nl_string) to its index + 1 */
    GHashTable *by_texts;  /* maps a group's text (nl_string) to its number */
    GPtrArray *by_numbers; /* maps a group's number to its text, NUL-terminated */
    size_t by_size;        /* size of these texts in bytes */
    GArray *host_visits;   /* if the groups are hosts: number of requests that visit each host */

    gather_step *steps;
    size_t step_count, step_capacity;
    GArray *requests;  /* request */
    GByteArray *names; /* the names of all requests, concatenated */
    uint32_t *slots;   /* hash table (linear probing) of request numbers + 1; 0: empty */
    size_t slot_count; /* a power of two */
    uint64_t seed;     /* random, so that no log can choose names that collide */
    GByteArray *name;  /* name of the current record's request */
    uint64_t early, steps_seen;
};

static request *request_at(const gather *g, guint number)
{
    return &g_array_index(g->requests, request, number);
}

/* Returns the memory in bytes that the steps need, now and while they are handed out. */
static size_t gather_memory(const gather *g)
{
    return g->step_count * 2 * sizeof(gather_step) + g->requests->len * (sizeof(request) + 32) + 2 * g->names->len;
}

/* ---- requests ---- */

static bool has_name(const gather *g, const request *r, uint64_t hash, const guint8 *name, size_t size)
{
    return r->hash == hash && r->name_size == size && memcmp(g->names->data + r->name, name, size) == 0;
}

/* Creates and fills a hash table of count slots. If several requests have the same name, the last one gets the slot. */
static void fill_slots(gather *g, size_t count)
{
    g_free(g->slots);
    g->slots = g_new0(uint32_t, count);
    g->slot_count = count;
    for (guint i = 0; i < g->requests->len; i++) {
        const request *r = request_at(g, i);
        size_t at = r->hash & (count - 1);
        while (g->slots[at] != 0 &&
               !has_name(g, request_at(g, g->slots[at] - 1), r->hash, g->names->data + r->name, r->name_size))
            at = (at + 1) & (count - 1);
        g->slots[at] = i + 1;
    }
}

/* Returns the number of the request whose name is in g->name. Adds a new request if none exists or if begins is set. */
static uint32_t find_request(gather *g, uint64_t hash, bool begins)
{
    size_t at = hash & (g->slot_count - 1);
    for (; g->slots[at] != 0; at = (at + 1) & (g->slot_count - 1))
        if (has_name(g, request_at(g, g->slots[at] - 1), hash, g->name->data, g->name->len)) {
            if (begins)
                break;
            return g->slots[at] - 1;
        }
    request r = {.hash = hash, .name = g->names->len, .name_size = g->name->len};
    g_byte_array_append(g->names, g->name->data, g->name->len);
    g_array_append_val(g->requests, r);
    g->slots[at] = g->requests->len;
    if (g->requests->len > g->slot_count / 2)
        fill_slots(g, 2 * g->slot_count);
    return g->requests->len - 1;
}

/* Joins the values of the record's ID fields. Returns false if the record lacks one. */
static bool make_name(gather *g, const nl_record *record)
{
    g_byte_array_set_size(g->name, 0);
    for (guint i = 0; i < g->id_count; i++) {
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

/* ---- groups ---- */

static uint16_t group_number(gather *g, const nl_record *record)
{
    nl_field field;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (g->by == NULL || !nl_record_find(record, g->by, &field))
        return 0;
    nl_string text = nl_field_text(&field, scratch);
    gpointer found = g_hash_table_lookup(g->by_texts, &text);
    if (found != NULL)
        return (uint16_t)GPOINTER_TO_UINT(found);
    guint number = g->by_numbers->len;
    if (number > GROUP_COUNT_MAX || g->by_size + text.size > GROUP_TEXTS_MAX)
        return GATHER_BY_OTHERS;
    g->by_size += text.size;
    g_ptr_array_add(g->by_numbers, g_strndup(text.data, text.size));
    g_hash_table_insert(g->by_texts, text_key_new(text), GUINT_TO_POINTER(number));
    return (uint16_t)number;
}

const char *gather_by(const gather *g, uint16_t by)
{
    return by == GATHER_BY_OTHERS ? "(others)" : g_ptr_array_index(g->by_numbers, by);
}

/* NOLINTBEGIN(clang-analyzer-core.*): in take_out a request has as many steps as were copied for it */

static bool is_first_visit(const gather_step *steps, size_t i)
{
    for (size_t before = 0; before < i; before++)
        if (steps[before].by == steps[i].by)
            return false;
    return true;
}

/*
 * Counts each host that a request visits once. The first 64 steps suffice to distinguish common hosts from rare ones.
 */
static void count_visits(gather *g, const gather_step *steps, size_t count)
{
    for (size_t i = 0; i < count && i < 64; i++) {
        if (!is_first_visit(steps, i))
            continue;
        if (steps[i].by >= g->host_visits->len)
            g_array_set_size(g->host_visits, steps[i].by + 1u);
        g_array_index(g->host_visits, uint32_t, steps[i].by)++;
    }
}

/*
 * Returns the request's host that the fewest requests visit. This host characterizes a request best: it is one of
 * several servers, and not the client that all requests share.
 */
static uint16_t rarest_host(const gather *g, const gather_step *steps, size_t count)
{
    uint16_t rarest = 0;
    for (size_t i = 0; i < count; i++) {
        uint16_t by = steps[i].by;
        if (by != 0 && by < g->host_visits->len &&
            (rarest == 0 ||
             g_array_index(g->host_visits, uint32_t, by) < g_array_index(g->host_visits, uint32_t, rarest)))
            rarest = by;
    }
    return rarest;
}

/* ---- handing out ---- */

static gint compare_times(gconstpointer a, gconstpointer b, gpointer unused)
{
    (void)unused;
    const gather_step *first = a, *second = b;
    return (first->time_ns > second->time_ns) - (first->time_ns < second->time_ns);
}

static void sort_steps(gather_step *steps, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (steps[i - 1].time_ns > steps[i].time_ns) {
            g_qsort_with_data(steps, (gint)count, sizeof *steps, compare_times, NULL); /* a stable sort */
            return;
        }
}

static bool has_last_event(const gather *g, const gather_step *steps, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (steps[i].event + 1u == g->event_count)
            return true;
    return false;
}

static void hand_out(gather *g, const request *r, gather_step *steps, bool is_early)
{
    sort_steps(steps, r->step_count);
    g->early += is_early && !has_last_event(g, steps, r->step_count);
    uint16_t by = g->by_host ? rarest_host(g, steps, r->step_count) : r->by;
    gather_request whole = {(const char *)g->names->data + r->name, r->name_size, r->hash, steps, r->step_count, by};
    g->take(g->user, &whole);
}

/* Hands out each request i with goes[i], and removes its steps. The other steps keep their order. */
static void take_out(gather *g, const bool *goes, bool is_early)
{
    size_t *ends = g_new(size_t, g->requests->len + 1), total = 0, kept = 0;
    for (guint i = 0; i < g->requests->len; i++) {
        ends[i] = total;
        total += goes[i] ? request_at(g, i)->step_count : 0;
    }
    gather_step *out = g_new(gather_step, total + 1);
    for (size_t i = 0; i < g->step_count; i++) {
        gather_step step = g->steps[i];
        if (goes[step.request])
            out[ends[step.request]++] = step;
        else
            g->steps[kept++] = step;
    }
    g->step_count = kept;
    for (guint i = 0; g->by_host && i < g->requests->len; i++)
        if (goes[i])
            count_visits(g, out + (ends[i] - request_at(g, i)->step_count), request_at(g, i)->step_count);
    for (guint i = 0; i < g->requests->len; i++)
        if (goes[i])
            hand_out(g, request_at(g, i), out + (ends[i] - request_at(g, i)->step_count), is_early);
    g_free(out);
    g_free(ends);
}
/* NOLINTEND(clang-analyzer-core.*) */

/* Forgets the requests that were handed out and renumbers the others. */
static void gather_forget(gather *g, const bool *gone)
{
    uint32_t *numbers = g_new(uint32_t, g->requests->len + 1);
    GByteArray *names = g_byte_array_new();
    guint count = 0;
    for (guint i = 0; i < g->requests->len; i++) {
        request r = *request_at(g, i);
        if (gone[i])
            continue;
        g_byte_array_append(names, g->names->data + r.name, r.name_size);
        r.name = names->len - r.name_size;
        numbers[i] = count;
        *request_at(g, count++) = r;
    }
    g_array_set_size(g->requests, count);
    g_byte_array_unref(g->names);
    g->names = names;
    for (size_t i = 0; i < g->step_count; i++) {
        g->steps[i].request = numbers[g->steps[i].request];
        request_at(g, g->steps[i].request)->latest = (uint32_t)i;
    }
    fill_slots(g, g->slot_count);
    g_free(numbers);
}

/*
 * Hands out the requests that have no step among the latest half of all steps. If that would free less than an eighth
 * of the steps, hands out all requests.
 */
static void gather_hand_out_old(gather *g)
{
    bool *goes = g_new(bool, g->requests->len + 1);
    size_t freed = 0;
    for (guint i = 0; i < g->requests->len; i++) {
        goes[i] = request_at(g, i)->latest < g->step_count / 2;
        freed += goes[i] ? request_at(g, i)->step_count : 0;
    }
    if (freed < g->step_count / 8)
        memset(goes, true, g->requests->len);
    take_out(g, goes, true);
    gather_forget(g, goes);
    g_free(goes);
}

/* ---- adding ---- */

static void append_step(gather *g, gather_step step)
{
    if (g->step_count == g->step_capacity) {
        g->step_capacity *= 2;
        g->steps = g_renew(gather_step, g->steps, g->step_capacity);
    }
    g->steps[g->step_count++] = step;
}

uint64_t gather_add(gather *g, const nl_record *record)
{
    guint place = record->event.data != NULL ? GPOINTER_TO_UINT(g_hash_table_lookup(g->places, &record->event)) : 0;
    if (place == 0 || !make_name(g, record))
        return 0;
    g->steps_seen++;
    uint64_t hash = hash_bytes(g->seed, (const char *)g->name->data, g->name->len) | HASH_BIT;
    if ((hash & g->sample_mask) != g->sample_value)
        return 0;
    if (gather_memory(g) >= g->memory_max || g->names->len > NAMES_MAX || g->step_count >= UINT32_MAX / 2)
        gather_hand_out_old(g);
    uint32_t number = find_request(g, hash, g->definition->again && place == 1);
    uint16_t by = group_number(g, record);
    request *r = request_at(g, number);
    r->step_count++;
    r->latest = (uint32_t)g->step_count;
    r->by = r->by == 0 ? by : r->by;
    /* Limit times to the years 1824 to 2116, so that the difference of two times does not overflow. */
    int64_t time_ns = CLAMP(record->time_ns, INT64_MIN / 2, INT64_MAX / 2);
    append_step(g, (gather_step){time_ns, number, (uint16_t)(place - 1), by});
    return hash;
}

void gather_sample(gather *g, uint64_t mask, uint64_t value)
{
    g->sample_mask = mask;
    g->sample_value = value;
}

/* Frees all steps and requests, and resets the gatherer. */
static void gather_clear(gather *g)
{
    g_free(g->steps);
    g_clear_pointer(&g->requests, g_array_unref);
    g_clear_pointer(&g->names, g_byte_array_unref);
    g->step_count = 0;
    g->step_capacity = 1024;
    g->steps = g_new(gather_step, g->step_capacity);
    g->requests = g_array_new(FALSE, FALSE, sizeof(request));
    g->names = g_byte_array_new();
    fill_slots(g, 1024);
}

void gather_finish(gather *g)
{
    bool *goes = g_new(bool, g->requests->len + 1);
    memset(goes, true, g->requests->len + 1);
    take_out(g, goes, false);
    g_free(goes);
    gather_clear(g);
}

uint64_t gather_steps(const gather *g)
{
    return g->steps_seen;
}

uint64_t gather_early(const gather *g)
{
    return g->early;
}

/* ---- creation and destruction ---- */

gather *gather_new(const drawing_lifeline *definition, const char *by, size_t memory_max, gather_take *take, void *user)
{
    gather *g = g_new0(gather, 1);
    g->definition = definition;
    g->by = by;
    g->by_host = by != NULL && g_ascii_strcasecmp(by, "HOST") == 0;
    g->id_count = MIN(g_strv_length(definition->ids), IDS_MAX);
    g->event_count = MIN(g_strv_length(definition->events), PLACES_MAX);
    g->take = take;
    g->user = user;
    g->memory_max = MAX(memory_max, MEMORY_MIN);
    g->places = g_hash_table_new_full(text_key_hash, text_key_equal, g_free, NULL);
    for (guint i = 0; i < g->event_count; i++) {
        nl_string event = {definition->events[i], strlen(definition->events[i])};
        g_hash_table_insert(g->places, text_key_new(event), GUINT_TO_POINTER(i + 1));
    }
    g->by_texts = g_hash_table_new_full(text_key_hash, text_key_equal, g_free, NULL);
    g->by_numbers = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(g->by_numbers, g_strdup(""));
    g->host_visits = g_array_new(FALSE, TRUE, sizeof(uint32_t));
    g->name = g_byte_array_new();
    if (getrandom(&g->seed, sizeof g->seed, GRND_NONBLOCK) != sizeof g->seed)
        g->seed = (uint64_t)g_get_monotonic_time();
    gather_clear(g);
    return g;
}

void gather_free(gather *g)
{
    if (g == NULL)
        return;
    g_hash_table_destroy(g->places);
    g_hash_table_destroy(g->by_texts);
    g_ptr_array_free(g->by_numbers, TRUE);
    g_array_free(g->host_visits, TRUE);
    g_array_free(g->requests, TRUE);
    g_byte_array_unref(g->names);
    g_byte_array_unref(g->name);
    g_free(g->steps);
    g_free(g->slots);
    g_free(g);
}
