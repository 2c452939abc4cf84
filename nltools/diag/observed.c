/* Observes a log: gathers objects, kinds and resources, corrects times, and makes legs. */
#include "config.h"

#include "diag/observed_inside.h"

#include <string.h>

enum { STEP_PLACES = 4096, VALUE_SIZE_MAX = 256, KIND_FIELDS_MAX = 128 };
/* Other bits of the hash than kind_mask has. */
enum { SAMPLE_BIT_FIRST = 32, SAMPLE_BITS_MAX = 30 };

/* The gatherer of a lifeline. */
typedef struct gathering {
    observed *observed;
    guint lifeline, places;
    gather *gatherer;
    GArray *hosts; /* guint: the gatherer's number of a host to that of the observed log + 1 */
} gathering;

/* A field that may have few values. */
typedef struct kind_field {
    char *name;
    GPtrArray *values; /* char *; the first is "" */
    bool is_many;
} kind_field;

typedef struct kinds {
    uint64_t hash; /* of the object's name */
    uint8_t values[KINDS_MAX];
} kinds;

struct observed {
    subject *subject;
    const drawing *drawing;
    size_t memory_max;                  /* bytes */
    uint64_t sample_mask, sample_value; /* only objects with (hash & mask) == value are kept */
    guint sample_bits;                  /* of the mask */
    uint64_t passages_left_out;
    gathering *gatherings;
    GHashTable *step_events; /* of all lifelines */
    GHashTable *host_numbers;
    GPtrArray *hosts;
    walks walks;
    resources resources;
    kind_field kind_fields[KINDS_MAX];
    guint kind_count;
    uint64_t kind_mask; /* kinds are known of objects whose hash has none of these bits */
    GHashTable *kinds;  /* hash, which is in the value, to kinds */
    GPtrArray *legs;
    passage *passages;
    measured_clocks *measured;
    host_clock *clocks; /* by host */
    GArray *clock_errors;
    int64_t from_ns, to_ns; /* of records; of objects once these are known */
    uint64_t records;
    double total_ns;
};

/* ---- hosts ---- */

static guint host_number(observed *o, nl_string name)
{
    char text[256];
    if (name.data == NULL || name.size == 0)
        return 0;
    size_t size = MIN(name.size, sizeof text - 1);
    memcpy(text, name.data, size);
    text[size] = '\0';
    gpointer found = g_hash_table_lookup(o->host_numbers, text);
    if (found != NULL || o->hosts->len == HOSTS_MAX)
        return GPOINTER_TO_UINT(found);
    char *kept = g_strdup(text);
    g_hash_table_insert(o->host_numbers, kept, GUINT_TO_POINTER(o->hosts->len));
    g_ptr_array_add(o->hosts, kept);
    return o->hosts->len - 1;
}

static uint16_t host_of(gathering *g, uint16_t by)
{
    if (by == 0)
        return 0;
    if (by >= g->hosts->len)
        g_array_set_size(g->hosts, by + 1u);
    guint *known = &g_array_index(g->hosts, guint, by);
    if (*known == 0) {
        const char *name = gather_by(g->gatherer, by);
        *known = 1 + host_number(g->observed, (nl_string){name, strlen(name)});
    }
    return (uint16_t)(*known - 1);
}

/* ---- objects ---- */

static bool is_sampled(const observed *o, uint64_t hash)
{
    return (hash & o->sample_mask) == o->sample_value;
}

/* Removes the objects that are not in the sample. */
static void thin_out(observed *o)
{
    guint count = 0;
    size_t steps = 0;
    for (guint i = 0; i < o->walks.objects->len; i++) {
        object of = *walks_object(&o->walks, i);
        if (!is_sampled(o, of.hash))
            continue;
        memmove(&g_array_index(o->walks.steps, step, steps), walks_steps(&o->walks, &of), of.step_count * sizeof(step));
        of.first_step = steps;
        steps += of.step_count;
        *walks_object(&o->walks, count++) = of;
    }
    g_array_set_size(o->walks.objects, count);
    g_array_set_size(o->walks.steps, (guint)steps);
}

/* Halves the sample by the next bit of the hash. Keeps the half with more steps, so that the sample is never empty. */
static void halve_sample(observed *o)
{
    uint64_t bit = UINT64_C(1) << (SAMPLE_BIT_FIRST + o->sample_bits++);
    size_t with = 0;
    for (guint i = 0; i < o->walks.objects->len; i++)
        if (walks_object(&o->walks, i)->hash & bit)
            with += walks_object(&o->walks, i)->step_count;
    o->sample_mask |= bit;
    if (with > o->walks.steps->len / 2)
        o->sample_value |= bit;
    thin_out(o);
    for (guint i = 0; i < o->drawing->lifelines->len; i++)
        gather_sample(o->gatherings[i].gatherer, o->sample_mask, o->sample_value);
}

/* Whether the objects and their legs use up the memory. The rest of the memory is for the gatherers. */
static bool is_full(const observed *o)
{
    return o->walks.steps->len * (sizeof(step) + sizeof(passage) + sizeof(int64_t)) +
               o->walks.objects->len * sizeof(object) >
           o->memory_max / 4 * 3;
}

static void take_object(void *user, const gather_request *given)
{
    gathering *g = user;
    observed *o = g->observed;
    while (is_full(o) && o->sample_bits < SAMPLE_BITS_MAX)
        halve_sample(o);
    if (is_full(o) || !is_sampled(o, given->hash))
        return;
    object made = {.from_ns = given->steps[0].time_ns,
                   .to_ns = given->steps[given->step_count - 1].time_ns,
                   .lifeline = (uint16_t)g->lifeline,
                   .host = host_of(g, given->by),
                   .step_count = (uint32_t)given->step_count,
                   .first_step = o->walks.steps->len,
                   .hash = given->hash};
    bool first = false, last = false;
    for (size_t i = 0; i < given->step_count; i++) {
        const gather_step *from = &given->steps[i];
        step s = {from->time_ns, (uint16_t)MIN(from->event, STEP_PLACES - 1), host_of(g, from->by)};
        g_array_append_val(o->walks.steps, s);
        first = first || from->event == 0;
        last = last || from->event == g->places - 1;
    }
    made.whole = first && last;
    g_array_append_val(o->walks.objects, made);
}

/* ---- kinds ---- */

static gboolean is_left_out(gpointer key, gpointer value, gpointer user)
{
    (void)value;
    return (*(const uint64_t *)key & ((const observed *)user)->kind_mask) != 0;
}

static kinds *kinds_of(observed *o, uint64_t hash)
{
    kinds *found = g_hash_table_lookup(o->kinds, &hash);
    if (found != NULL)
        return found;
    kinds *made = g_new0(kinds, 1);
    made->hash = hash;
    g_hash_table_insert(o->kinds, &made->hash, made);
    return made;
}

/* Removes half of the objects if there are too many. */
static void bound_kinds(observed *o)
{
    if (g_hash_table_size(o->kinds) < KIND_OBJECTS)
        return;
    o->kind_mask = 2 * o->kind_mask + 1;
    g_hash_table_foreach_remove(o->kinds, is_left_out, o);
}

/* Returns the number of a field, or KINDS_MAX if there are too many fields. */
static guint kind_number(observed *o, nl_string name)
{
    for (guint i = 0; i < o->kind_count; i++)
        if (strlen(o->kind_fields[i].name) == name.size && memcmp(o->kind_fields[i].name, name.data, name.size) == 0)
            return i;
    if (o->kind_count == KINDS_MAX || name.size > VALUE_SIZE_MAX)
        return KINDS_MAX;
    kind_field *made = &o->kind_fields[o->kind_count];
    *made = (kind_field){g_strndup(name.data, name.size), g_ptr_array_new_with_free_func(g_free), false};
    g_ptr_array_add(made->values, g_strdup(""));
    return o->kind_count++;
}

/* Returns the number of a value, or 0 if the field has too many values. */
static uint8_t value_number(kind_field *f, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = nl_field_text(field, scratch);
    if (text.size > VALUE_SIZE_MAX) {
        f->is_many = true;
        return 0;
    }
    for (guint i = 1; i < f->values->len; i++) {
        const char *known = g_ptr_array_index(f->values, i);
        if (strlen(known) == text.size && memcmp(known, text.data, text.size) == 0)
            return (uint8_t)i;
    }
    if (f->values->len > KIND_VALUES_MAX) {
        f->is_many = true;
        return 0;
    }
    g_ptr_array_add(f->values, g_strndup(text.data, text.size));
    return (uint8_t)(f->values->len - 1);
}

static bool is_id(const drawing_lifeline *l, nl_string name)
{
    for (char **id = l->ids; *id != NULL; id++)
        if (strlen(*id) == name.size && memcmp(*id, name.data, name.size) == 0)
            return true;
    return false;
}

/* Notes the first values of an object's fields. */
static void learn_kinds(observed *o, const drawing_lifeline *l, uint64_t hash, const nl_record *record)
{
    if (hash == 0 || (hash & o->kind_mask) != 0 || l->again)
        return;
    kinds *of = kinds_of(o, hash);
    for (size_t i = 0; i < MIN(record->field_count, KIND_FIELDS_MAX); i++) {
        const nl_field *field = &record->fields[i];
        guint number = is_id(l, field->name) || field->type == NL_TYPE_DOUBLE ? KINDS_MAX : kind_number(o, field->name);
        if (number < KINDS_MAX && of->values[number] == 0 && !o->kind_fields[number].is_many)
            of->values[number] = value_number(&o->kind_fields[number], field);
    }
    bound_kinds(o);
}

static void observed_begin(void *user, const drawing *d)
{
    observed *o = user;
    guint count = d->lifelines->len;
    o->drawing = d;
    o->gatherings = g_new0(gathering, count + 1);
    for (guint i = 0; i < count; i++) {
        const drawing_lifeline *lifeline = g_ptr_array_index(d->lifelines, i);
        gathering *g = &o->gatherings[i];
        *g = (gathering){o, i, g_strv_length(lifeline->events), NULL, g_array_new(FALSE, TRUE, sizeof(guint))};
        g->gatherer = gather_new(lifeline, "HOST", o->memory_max / 4 / count, take_object, g);
        for (char **event = lifeline->events; *event != NULL; event++)
            g_hash_table_add(o->step_events, g_strdup(*event));
    }
}

static bool is_step(const observed *o, nl_string event)
{
    char name[256];
    if (event.data == NULL || event.size >= sizeof name)
        return false;
    memcpy(name, event.data, event.size);
    name[event.size] = '\0';
    return g_hash_table_contains(o->step_events, name);
}

static void observed_take(void *user, const nl_record *record)
{
    observed *o = user;
    o->from_ns = o->records == 0 ? record->time_ns : MIN(o->from_ns, record->time_ns);
    o->to_ns = o->records == 0 ? record->time_ns : MAX(o->to_ns, record->time_ns);
    o->records++;
    measured_clocks_learn(o->measured, record);
    if (is_step(o, record->event)) {
        for (guint i = 0; i < o->drawing->lifelines->len; i++)
            learn_kinds(o, g_ptr_array_index(o->drawing->lifelines, i), gather_add(o->gatherings[i].gatherer, record),
                        record);
    } else if (record->event.data != NULL) {
        resources_add(&o->resources, host_number(o, record->host), record);
    }
}

/* ---- the end ---- */

/* Sets the times of objects after the correction of their steps. */
static void set_times(observed *o)
{
    for (guint i = 0; i < o->walks.objects->len; i++) {
        object *of = walks_object(&o->walks, i);
        const step *steps = walks_steps(&o->walks, of);
        of->from_ns = steps[0].time_ns;
        of->to_ns = steps[of->step_count - 1].time_ns;
        o->total_ns += (double)(of->to_ns - of->from_ns);
        o->from_ns = i == 0 ? of->from_ns : MIN(o->from_ns, of->from_ns);
        o->to_ns = i == 0 ? of->to_ns : MAX(o->to_ns, of->to_ns);
    }
}

static void correct_resources(observed *o)
{
    for (guint i = 0; i < o->resources.list->len; i++) {
        resource *r = g_ptr_array_index(o->resources.list, i);
        int64_t taken = clocks_taken_ns(o->clock_errors, r->host);
        const host_clock *clock = &o->clocks[r->host];
        for (guint k = 0; (taken != 0 || clock->is_off) && k < r->samples->len; k++) {
            sample *s = &g_array_index(r->samples, sample, k);
            s->time_ns = measured_clocks_time(o->measured, clock, observed_host(o, r->host), s->time_ns) - taken;
        }
    }
}

void observed_finish(observed *o)
{
    subject_settle(o->subject);
    for (guint i = 0; i < o->drawing->lifelines->len; i++)
        gather_finish(o->gatherings[i].gatherer);
    o->clocks = measured_clocks_correct(o->measured, o->hosts, &o->walks);
    o->clock_errors = clocks_correct(&o->walks, o->hosts->len);
    set_times(o);
    correct_resources(o);
    resources_finish(&o->resources);
    o->legs = legs_make(&o->walks, o->drawing, &o->passages, &o->passages_left_out);
}

/* ---- life ---- */

observed *observed_new(subject_options *options)
{
    observed *o = g_new0(observed, 1);
    o->memory_max = options->memory_max;
    o->step_events = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    o->host_numbers = g_hash_table_new(g_str_hash, g_str_equal);
    o->hosts = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(o->hosts, g_strdup(""));
    o->walks.steps = g_array_new(FALSE, FALSE, sizeof(step));
    o->walks.objects = g_array_new(FALSE, FALSE, sizeof(object));
    o->measured = measured_clocks_new();
    resources_init(&o->resources);
    o->kinds = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    o->subject = subject_new(options, (subject_user){observed_begin, observed_take, o});
    return o;
}

void observed_free(observed *o)
{
    if (o == NULL)
        return;
    for (guint i = 0; o->drawing != NULL && i < o->drawing->lifelines->len; i++) {
        gather_free(o->gatherings[i].gatherer);
        g_array_free(o->gatherings[i].hosts, TRUE);
    }
    g_free(o->gatherings);
    g_hash_table_destroy(o->step_events);
    g_hash_table_destroy(o->host_numbers);
    g_ptr_array_free(o->hosts, TRUE);
    g_array_free(o->walks.steps, TRUE);
    g_array_free(o->walks.objects, TRUE);
    resources_clear(&o->resources);
    g_hash_table_destroy(o->kinds);
    for (guint i = 0; i < o->kind_count; i++) {
        g_free(o->kind_fields[i].name);
        g_ptr_array_free(o->kind_fields[i].values, TRUE);
    }
    if (o->legs != NULL)
        g_ptr_array_free(o->legs, TRUE);
    if (o->clock_errors != NULL)
        g_array_free(o->clock_errors, TRUE);
    measured_clocks_free(o->measured);
    g_free(o->clocks);
    g_free(o->passages);
    subject_free(o->subject);
    g_free(o);
}

bool observed_read(observed *o, const char *source)
{
    return subject_read(o->subject, source);
}

/* ---- results ---- */

int64_t observed_from_ns(const observed *o)
{
    return o->from_ns;
}

int64_t observed_to_ns(const observed *o)
{
    return o->to_ns;
}

double observed_sampled(const observed *o)
{
    uint64_t steps = 0;
    for (guint i = 0; i < o->drawing->lifelines->len; i++)
        steps += gather_steps(o->gatherings[i].gatherer);
    return steps > o->walks.steps->len ? (double)o->walks.steps->len / (double)steps : 1;
}

uint64_t observed_early(const observed *o)
{
    uint64_t early = 0;
    for (guint i = 0; i < o->drawing->lifelines->len; i++)
        early += gather_early(o->gatherings[i].gatherer);
    return early;
}

uint64_t observed_passages_left_out(const observed *o)
{
    return o->passages_left_out;
}

uint64_t observed_records(const observed *o)
{
    return o->records;
}

guint observed_host_count(const observed *o)
{
    return o->hosts->len;
}

const char *observed_host(const observed *o, guint number)
{
    return g_ptr_array_index(o->hosts, number);
}

const GArray *observed_objects(const observed *o)
{
    return o->walks.objects;
}

const GPtrArray *observed_lifelines(const observed *o)
{
    return o->drawing->lifelines;
}

const GPtrArray *observed_legs(const observed *o)
{
    return o->legs;
}

const GPtrArray *observed_resources(const observed *o)
{
    return o->resources.list;
}

guint observed_kind_count(const observed *o)
{
    return o->kind_count;
}

const char *observed_kind_name(const observed *o, guint field)
{
    return o->kind_fields[field].is_many ? NULL : o->kind_fields[field].name;
}

const char *observed_kind_value(const observed *o, guint field, guint value)
{
    return g_ptr_array_index(o->kind_fields[field].values, value);
}

const uint8_t *observed_kinds_of(const observed *o, guint object)
{
    uint64_t hash = walks_object(&o->walks, object)->hash;
    const kinds *found = (hash & o->kind_mask) == 0 ? g_hash_table_lookup(o->kinds, &hash) : NULL;
    return found != NULL ? found->values : NULL;
}

const GArray *observed_clock_errors(const observed *o)
{
    return o->clock_errors;
}

const host_clock *observed_clock(const observed *o, guint host)
{
    return &o->clocks[host];
}

double observed_clock_doubt_ns(const observed *o, guint from_host, guint to_host)
{
    return from_host == to_host ? 0 : o->clocks[from_host].error_ns + o->clocks[to_host].error_ns;
}

double observed_total_ns(const observed *o)
{
    return o->total_ns;
}

const step *observed_steps(const observed *o, guint object, guint *count)
{
    *count = walks_object(&o->walks, object)->step_count;
    return walks_steps(&o->walks, walks_object(&o->walks, object));
}
