#include "config.h"

#include "log/event_kind.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/hash_bytes.h"
#include "base/text.h"
#include "record/field_name.h"
#include "log/log_internal.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024, TEXT_SIZE_MAX = 4096, VARIANTS_MAX = 16 };

/* A kind together with one sequence of value types. */
struct nl_event_variant {
    uint64_t types; /* TYPE_BITS bits per value */
    nl_event_site site;
    nl_event_variant *next;
    const char *names[NL_FIELDS_MAX];
    unsigned char raw_types[NL_FIELDS_MAX];
};

enum { TYPE_BITS = 3 };
_Static_assert(NL_TYPE_BOOL < 1 << TYPE_BITS && NL_FIELDS_MAX * TYPE_BITS <= 64,
               "the types of all fields must fit into 64 bits");

/* A hash table of the process's kinds; protected by the registry's lock. */
static nl_event_kind *buckets[BUCKETS];
static unsigned shared_count;

/* ---- creation ---- */

static nl_string copy_name(nl_string name)
{
    nl_string copy = nl_string_copy(name.size > 0 ? name : (nl_string){"_", 1});
    if (copy.data != NULL)
        nl_name_make_valid((char *)copy.data, copy.size);
    return copy;
}

static void release(nl_event_kind *kind)
{
    for (size_t i = 0; i < kind->field_count && kind->names != NULL; i++)
        free((char *)kind->names[i].data);
    free(kind->names);
    free((char *)kind->event.data);
    free(kind);
}

void nl_event_kind_free(nl_event_kind *kind)
{
    if (kind != NULL && !kind->is_shared)
        release(kind);
}

/* ---- shared kinds ---- */

static bool event_kind_is_same(const nl_event_kind *a, const nl_event_kind *b)
{
    if (a->level != b->level || a->field_count != b->field_count || !nl_string_equals(a->event, b->event))
        return false;
    for (size_t i = 0; i < a->field_count; i++)
        if (!nl_string_equals(a->names[i], b->names[i]))
            return false;
    return true;
}

static nl_event_kind **bucket_of(const nl_event_kind *kind)
{
    uint64_t hash = hash_bytes((uint64_t)kind->level, kind->event.data, kind->event.size);
    for (size_t i = 0; i < kind->field_count; i++)
        hash = hash_bytes(hash, kind->names[i].data, kind->names[i].size);
    return &buckets[hash % BUCKETS];
}

/* Returns whether the kind's events can have a site. The limits of a site are stricter than those of a whole record. */
static bool can_have_sites(const nl_event_kind *kind)
{
    if (kind->field_count > NL_FIELDS_MAX || kind->event.size >= TEXT_SIZE_MAX ||
        memchr(kind->event.data, '\0', kind->event.size) != NULL)
        return false;
    for (size_t i = 0; i < kind->field_count; i++)
        if (kind->names[i].size >= TEXT_SIZE_MAX)
            return false;
    return true;
}

/*
 * Returns the shared kind that equals kind. If no shared kind is equal, shares kind and returns it. Returns NULL if
 * NL_EVENT_KINDS_MAX kinds are already shared.
 */
static nl_event_kind *share(nl_event_kind *kind)
{
    nl_event_kind **bucket = bucket_of(kind), *found = NULL;
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    for (found = *bucket; found != NULL && !event_kind_is_same(found, kind); found = found->next)
        ;
    if (found == NULL && shared_count < NL_EVENT_KINDS_MAX) {
        shared_count++;
        kind->is_shared = true;
        kind->next = *bucket;
        *bucket = found = kind;
    }
    nl_registry_unlock();
    nl_leave(&visit);
    return found;
}

nl_event_kind *nl_event_kind_new(nl_level level, nl_string event, const nl_string *names, size_t field_count)
{
    NL_REQUIRE(level > NL_LEVEL_NONE && level <= NL_DEBUG, "invalid level", NULL);
    NL_REQUIRE(event.data != NULL, "event is NULL", NULL);
    nl_event_kind *kind = nl_memory_check(calloc(1, sizeof *kind));
    if (kind == NULL)
        return NULL;
    *kind = (nl_event_kind){.level = level, .event = nl_string_copy(event), .field_count = field_count};
    kind->names = nl_memory_check(calloc(field_count + 1, sizeof *kind->names));
    bool good = kind->event.data != NULL && kind->names != NULL;
    for (size_t i = 0; i < field_count && good; i++) {
        kind->names[i] = copy_name(names[i]);
        good = kind->names[i].data != NULL;
    }
    if (!good) {
        release(kind);
        return NULL;
    }
    nl_event_kind *shared = can_have_sites(kind) ? share(kind) : NULL;
    if (shared == NULL || shared == kind)
        return kind;
    release(kind);
    return shared;
}

/* ---- sites ---- */

static unsigned char raw_type(nl_type type)
{
    static const unsigned char raw[] = {
        [NL_TYPE_STRING] = NL_RAW_STRING, [NL_TYPE_INT] = NL_RAW_INT64, [NL_TYPE_UINT] = NL_RAW_UINT64,
        [NL_TYPE_DOUBLE] = NL_RAW_DOUBLE, [NL_TYPE_BOOL] = NL_RAW_BOOL,
    };
    return raw[type];
}

static nl_event_variant *make_variant(const nl_event_kind *kind, const nl_field *values, uint64_t types)
{
    for (size_t i = 0; i < kind->field_count; i++)
        if (values[i].type > NL_TYPE_BOOL)
            return NULL;
    nl_event_variant *variant = nl_memory_check(calloc(1, sizeof *variant));
    if (variant == NULL)
        return NULL;
    for (size_t i = 0; i < kind->field_count; i++) {
        variant->names[i] = kind->names[i].data;
        variant->raw_types[i] = raw_type(values[i].type);
    }
    variant->types = types;
    variant->site = (nl_event_site){.event = kind->event.data,
                                    .names = variant->names,
                                    .types = variant->raw_types,
                                    .field_count = (unsigned short)kind->field_count,
                                    .level = (unsigned char)kind->level};
    return variant;
}

/* Returns the kind's variant for these types, or NULL. Adds the number of preceding variants to *count. */
static nl_event_variant *find_variant(nl_event_kind *kind, uint64_t types, unsigned *count)
{
    nl_event_variant *variant = __atomic_load_n(&kind->variants, __ATOMIC_ACQUIRE);
    for (; variant != NULL && variant->types != types; variant = variant->next)
        ++*count;
    return variant;
}

static nl_event_variant *find_or_make_variant(nl_event_kind *kind, const nl_field *values, uint64_t types)
{
    unsigned count = 0;
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    nl_event_variant *variant = find_variant(kind, types, &count);
    if (variant == NULL && count < VARIANTS_MAX) {
        variant = make_variant(kind, values, types); /* if variant is NULL, the event is written as a whole record */
        if (variant != NULL) {
            variant->next = kind->variants;
            __atomic_store_n(&kind->variants, variant, __ATOMIC_RELEASE);
        }
    }
    nl_registry_unlock();
    nl_leave(&visit);
    return variant;
}

nl_event_site *nl_event_kind_site(nl_event_kind *kind, const nl_field *values)
{
    if (!kind->is_shared)
        return NULL;
    uint64_t types = 0;
    for (size_t i = 0; i < kind->field_count; i++)
        types = types << TYPE_BITS | ((unsigned)values[i].type & ((1u << TYPE_BITS) - 1));
    unsigned count = 0;
    nl_event_variant *variant = find_variant(kind, types, &count);
    if (variant == NULL && count < VARIANTS_MAX && nl_inside == 0)
        variant = find_or_make_variant(kind, values, types);
    return variant != NULL ? &variant->site : NULL;
}
