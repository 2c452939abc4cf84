#include "config.h"

#include "log/format_site.h"

#include "base/memory.h"
#include "base/hash_bytes.h"
#include "base/text.h"
#include "log/log_internal.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024, PROBES = 4, EVENT_SIZE_MAX = 4096 };

/* A hash table of the process's sites; protected by the registry's lock. */
static nl_format_site *buckets[BUCKETS];
static unsigned shared_count;

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool is_of(const nl_format_site *site, nl_level level, const char *event, const char *format)
{
    return site->level == level && strcmp(site->event, event) == 0 && same_text(site->format, format);
}

/* ---- creation ---- */

/* Returns whether the site's events can be typed; typed events have stricter limits than whole records. */
static bool can_be_typed(const nl_format_site *site)
{
    return site->level >= NL_LEVEL_NONE && site->level <= NL_DEBUG && site->event_size < EVENT_SIZE_MAX &&
           site->plan.field_count <= NL_FIELDS_MAX;
}

static bool describe(nl_format_site *site)
{
    const nl_plan *plan = &site->plan;
    const char **names = malloc((plan->field_count + 1) * sizeof *names);
    unsigned char *types = malloc(plan->field_count + 1);
    if (names == NULL || types == NULL) {
        free(names);
        free(types);
        return false;
    }
    for (size_t i = 0; i < plan->field_count; i++) {
        names[i] = plan->fields[i].name;
        types[i] = plan->fields[i].raw_type;
    }
    site->site = (nl_event_site){.event = site->event,
                                 .names = names,
                                 .types = types,
                                 .field_count = (unsigned short)plan->field_count,
                                 .level = (unsigned char)site->level};
    return true;
}

/* Frees a site that threads do not share. Ignores a shared site and NULL. */
static void release(nl_format_site *site)
{
    if (site == NULL || site->is_shared)
        return;
    nl_plan_free(&site->plan);
    free(site->event);
    free(site->format);
    free(site);
}

static nl_format_site *format_site_make(nl_level level, const char *event, const char *format)
{
    nl_plan plan;
    if (nl_plan_make(&plan, format) != NL_OK)
        return NULL;
    nl_format_site *site = nl_memory_check(calloc(1, sizeof *site));
    if (site == NULL) {
        nl_plan_free(&plan);
        return NULL;
    }
    *site = (nl_format_site){.level = level,
                             .event = nl_text_copy(event),
                             .format = nl_text_copy(format),
                             .event_size = strlen(event),
                             .plan = plan};
    if (site->event != NULL && (site->format != NULL || format == NULL))
        return site;
    release(site);
    return NULL;
}

/* ---- shared sites ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, text != NULL ? strlen(text) : 0);
}

static nl_format_site **bucket_of(nl_level level, const char *event, const char *format)
{
    return &buckets[hash_text(hash_text((uint64_t)level, event), format) % BUCKETS];
}

static nl_format_site *find_shared(nl_level level, const char *event, const char *format)
{
    for (nl_format_site *site = *bucket_of(level, event, format); site != NULL; site = site->next)
        if (is_of(site, level, event, format))
            return site;
    return NULL;
}

static void share(nl_format_site *site)
{
    if (shared_count == NL_FORMAT_SITES_MAX)
        return;
    shared_count++;
    site->is_shared = true;
    site->is_typed = can_be_typed(site) && describe(site); /* if false, the site's events are written as whole
                                                            * records */
    nl_format_site **bucket = bucket_of(site->level, site->event, site->format);
    site->next = *bucket;
    *bucket = site;
}

static nl_format_site *find_or_make(nl_level level, const char *event, const char *format)
{
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    nl_format_site *site = find_shared(level, event, format);
    if (site == NULL && (site = format_site_make(level, event, format)) != NULL)
        share(site);
    nl_registry_unlock();
    nl_leave(&visit);
    return site;
}

/* ---- the thread's cache ---- */

static size_t first_entry(nl_level level, const char *event, const char *format)
{
    uint64_t hash = (uint64_t)(uintptr_t)format + (uint64_t)(uintptr_t)event * 31 + (uint64_t)level;
    return (hash * UINT64_C(0x9e3779b97f4a7c15)) >> 56;
}

nl_format_site *nl_format_site_find(nl_format_cache *cache, nl_level level, const char *event, const char *format)
{
    _Static_assert(NL_FORMAT_CACHE_SIZE == 1 << 8, "first_entry returns an 8-bit hash");
    size_t first = first_entry(level, event, format), at = first;
    for (size_t i = 0; i < PROBES; i++) {
        at = (first + i) % NL_FORMAT_CACHE_SIZE;
        if (cache->entries[at].site == NULL)
            break;
        if (cache->entries[at].format != format || cache->entries[at].event != event ||
            cache->entries[at].level != level)
            continue;
        /* The caller may have changed the text at this pointer. */
        if (is_of(cache->entries[at].site, level, event, format))
            return cache->entries[at].site;
        break;
    }
    nl_format_site *site = find_or_make(level, event, format);
    if (site == NULL)
        return NULL;
    release(cache->entries[at].site);
    cache->entries[at].event = event;
    cache->entries[at].format = format;
    cache->entries[at].level = level;
    cache->entries[at].site = site;
    return site;
}

const nl_format_site *nl_format_site_of(const nl_event_site *site)
{
    const nl_format_site *found = NULL;
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    for (size_t i = 0; i < BUCKETS && found == NULL; i++)
        for (const nl_format_site *at = buckets[i]; at != NULL; at = at->next)
            if (&at->site == site)
                found = at;
    nl_registry_unlock();
    nl_leave(&visit);
    return found;
}

void nl_format_cache_free(nl_format_cache *cache)
{
    for (size_t i = 0; i < NL_FORMAT_CACHE_SIZE; i++)
        release(cache->entries[i].site);
}
