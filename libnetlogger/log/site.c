#include "config.h"

#include "log/site.h"

#include "base/memory.h"
#include "base/text.h"
#include "record/field_name.h"
#include "log/log_internal.h"
#include "log/session.h"

#include <dlfcn.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESERVE_STEP = 64 * 1024, RULES_MAX = 64 };

static nl_mapping mapping = {.fd = -1};
static nl_shared_sites *sites; /* memory of the mapping, set when its header is complete; read without a lock */
static size_t reserved;
static uint32_t next_id = NL_SITE_FIRST;
static nl_event_site *registered;

static pthread_mutex_t rules_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char pattern[NL_SITE_PATTERN_SIZE];
    bool off;
} rules[RULES_MAX];
static size_t rule_count;

const nl_shared_sites *nl_sites_shared(void)
{
    return __atomic_load_n(&sites, __ATOMIC_ACQUIRE);
}

static bool make_table(void)
{
    if (!nl_mapping_make(&mapping, NL_SHARED_SITES_SIZE, RESERVE_STEP, 0, "sites"))
        return false;
    reserved = RESERVE_STEP;
    nl_shared_sites *made = (nl_shared_sites *)(void *)mapping.memory;
    nl_shared_head_set(&made->head);
    __atomic_store_n(&sites, made, __ATOMIC_RELEASE);
    return true;
}

static char *site_put_text(char *at, const char *text, size_t size)
{
    uint16_t short_size = (uint16_t)size;
    memcpy(at, &short_size, sizeof short_size);
    memcpy(at + sizeof short_size, text, size);
    return at + sizeof short_size + size;
}

static size_t text_size(const char *text)
{
    size_t size = strlen(text);
    return size < 4096 ? size : 4096;
}

static void write_site(char *at, const nl_event_site *site, uint32_t id, size_t size)
{
    nl_shared_site head = {(uint32_t)size, id, site->level, site->field_count};
    memcpy(at, &head, sizeof head);
    at = site_put_text(at + sizeof head, site->event, text_size(site->event));
    for (unsigned i = 0; i < site->field_count; i++) {
        *at++ = (char)site->types[i];
        const char *name = *site->names[i] != '\0' ? site->names[i] : "_";
        size_t name_size = text_size(name);
        at = site_put_text(at, name, name_size);
        nl_name_make_valid(at - name_size, name_size);
    }
}

static size_t site_size(const nl_event_site *site)
{
    size_t size = sizeof(nl_shared_site) + 2 + text_size(site->event);
    for (unsigned i = 0; i < site->field_count; i++)
        size += 1 + 2 + (*site->names[i] != '\0' ? text_size(site->names[i]) : 1);
    return (size + 7) / 8 * 8;
}

static bool is_switched_off(const char *event)
{
    bool off = false;
    for (size_t i = 0; i < rule_count; i++)
        if (fnmatch(rules[i].pattern, event, 0) == 0)
            off = rules[i].off;
    return off;
}

const void *nl_module_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

void nl_private_sites_leave(const void *inside)
{
    const void *module = nl_module_of(inside);
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    pthread_mutex_lock(&rules_mutex);
    for (nl_event_site **at = &registered; *at != NULL;)
        if (module != NULL && (nl_module_of(*at) == module || nl_module_of((*at)->names) == module))
            *at = (*at)->next;
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&rules_mutex);
    if (module != NULL)
        nl_span_leave_module(module);
    nl_registry_unlock();
    nl_leave(&visit);
}

bool nl_site_register(nl_event_site *site)
{
    if (sites == NULL && !make_table())
        return false;
    nl_shared_sites *shared = sites;
    size_t size = site_size(site), end = NL_SHARED_HEADER + shared->published + size;
    if (end > NL_SHARED_SITES_SIZE)
        return false;
    while (end > reserved) {
        if (!nl_mapping_reserve(&mapping, reserved, reserved + RESERVE_STEP))
            return false;
        reserved += RESERVE_STEP;
    }
    write_site(mapping.memory + NL_SHARED_HEADER + shared->published, site, next_id, size);
    __atomic_store_n(&shared->published, shared->published + size, __ATOMIC_RELEASE);
    pthread_mutex_lock(&rules_mutex);
    __atomic_store_n(&site->off, is_switched_off(site->event), __ATOMIC_RELAXED);
    site->next = registered;
    registered = site;
    pthread_mutex_unlock(&rules_mutex);
    __atomic_store_n(&site->id, next_id++, __ATOMIC_RELEASE);
    return true;
}

nl_event_site **nl_sites_registered(size_t *count)
{
    pthread_mutex_lock(&rules_mutex);
    *count = 0;
    for (const nl_event_site *site = registered; site != NULL; site = site->next)
        ++*count;
    nl_event_site **all = nl_memory_check(malloc((*count + 1) * sizeof *all));
    size_t at = *count;
    for (nl_event_site *site = registered; site != NULL && all != NULL; site = site->next)
        all[--at] = site;
    pthread_mutex_unlock(&rules_mutex);
    return all;
}

void nl_sites_switch(const char *pattern, bool off)
{
    pthread_mutex_lock(&rules_mutex);
    size_t at = 0;
    while (at < rule_count && strcmp(rules[at].pattern, pattern) != 0)
        at++;
    if (at == RULES_MAX) /* drop the oldest rule; the sites that it has switched stay switched */
        at = 0;
    if (at < rule_count)
        memmove(&rules[at], &rules[at + 1], (--rule_count - at) * sizeof rules[0]);
    snprintf(rules[rule_count].pattern, NL_SITE_PATTERN_SIZE, "%s", pattern);
    rules[rule_count].off = off;
    __atomic_store_n(&rule_count, rule_count + 1, __ATOMIC_RELAXED);
    for (nl_event_site *site = registered; site != NULL; site = site->next)
        if (fnmatch(pattern, site->event, 0) == 0)
            __atomic_store_n(&site->off, off, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&rules_mutex);
}

void nl_sites_forget_rule(const char *pattern)
{
    pthread_mutex_lock(&rules_mutex);
    size_t at = 0;
    while (at < rule_count && strcmp(rules[at].pattern, pattern) != 0)
        at++;
    if (at < rule_count)
        memmove(&rules[at], &rules[at + 1], (--rule_count - at) * sizeof rules[0]);
    for (nl_event_site *site = registered; site != NULL; site = site->next)
        if (fnmatch(pattern, site->event, 0) == 0)
            __atomic_store_n(&site->off, is_switched_off(site->event), __ATOMIC_RELAXED);
    pthread_mutex_unlock(&rules_mutex);
}

bool nl_sites_is_off(nl_string event)
{
    char usual[256];
    if (__atomic_load_n(&rule_count, __ATOMIC_RELAXED) == 0)
        return false;
    const nl_visit visit = nl_enter();
    char *name = event.size < sizeof usual ? usual : malloc(event.size + 1);
    if (name == NULL) { /* log the event, because memory for the check of the rules ran out */
        nl_leave(&visit);
        return false;
    }
    memcpy(name, event.data, event.size);
    name[event.size] = '\0';
    pthread_mutex_lock(&rules_mutex);
    bool off = is_switched_off(name);
    pthread_mutex_unlock(&rules_mutex);
    if (name != usual)
        free(name);
    nl_leave(&visit);
    return off;
}

void nl_sites_lock(void)
{
    pthread_mutex_lock(&rules_mutex);
}

void nl_sites_unlock(void)
{
    pthread_mutex_unlock(&rules_mutex);
}

void nl_sites_forget(void)
{
    for (nl_event_site *site = registered, *next; site != NULL; site = next) {
        next = site->next;
        __atomic_store_n(&site->id, 0, __ATOMIC_RELAXED);
    }
    registered = NULL;
    next_id = NL_SITE_FIRST;
    __atomic_store_n(&sites, NULL, __ATOMIC_RELAXED);
    if (nl_session_is_kept()) /* the remaining events refer to these sites */
        nl_mapping_leave(&mapping);
    else
        nl_mapping_remove(&mapping);
}

void nl_sites_leave(void)
{
    if (!nl_session_is_kept())
        nl_mapping_forget(&mapping);
}

size_t nl_raw_size(unsigned raw_type)
{
    static const unsigned char sizes[] = {
        [NL_RAW_INT8] = 1,   [NL_RAW_INT16] = 2,     [NL_RAW_INT32] = 4,   [NL_RAW_INT64] = 8, [NL_RAW_UINT8] = 1,
        [NL_RAW_UINT16] = 2, [NL_RAW_UINT32] = 4,    [NL_RAW_UINT64] = 8,  [NL_RAW_FLOAT] = 4, [NL_RAW_DOUBLE] = 8,
        [NL_RAW_BOOL] = 1,   [NL_RAW_TRACE_ID] = 16, [NL_RAW_SPAN_ID] = 8,
    };
    return raw_type < sizeof sizes ? sizes[raw_type] : 0;
}

/* Reads a text at *at and advances *at; returns false if the text extends beyond `end`. */
static bool get_text(const char **at, const char *end, nl_string *text)
{
    uint16_t size;
    if (end - *at < (ptrdiff_t)sizeof size)
        return false;
    memcpy(&size, *at, sizeof size);
    *at += sizeof size;
    if (end - *at < size)
        return false;
    *text = (nl_string){*at, size};
    *at += size;
    return true;
}

/* Returns false if the site is invalid because its memory is damaged. */
static bool read_site(nl_site *site, const char *at, const char *end, const nl_shared_site *head)
{
    *site = (nl_site){
        .level = (nl_level)head->level, .field_count = head->field_count, .minimum_size = sizeof(nl_event_header)};
    if (head->level > NL_DEBUG || head->field_count > NL_SITE_FIELDS_MAX || !get_text(&at, end, &site->event))
        return false;
    for (unsigned i = 0; i < head->field_count; i++) {
        if (at == end)
            return false;
        site->types[i] = (unsigned char)*at++;
        if (site->types[i] == NL_RAW_NONE || site->types[i] > NL_RAW_SPAN_ID || !get_text(&at, end, &site->names[i]) ||
            !nl_is_name(site->names[i]))
            return false;
        if (nl_string_is(site->names[i], "SPAN.ID"))
            site->has_span_id = true;
        site->minimum_size +=
            (unsigned)(site->types[i] == NL_RAW_STRING ? sizeof(uint32_t) : nl_raw_size(site->types[i]));
    }
    return true;
}

static bool read_next(nl_site_table *table)
{
    uint64_t published = __atomic_load_n(&table->shared->published, __ATOMIC_ACQUIRE);
    if (published > table->size - NL_SHARED_HEADER || published < table->read + sizeof(nl_shared_site))
        return false;
    const char *at = (const char *)table->shared + NL_SHARED_HEADER + table->read;
    nl_shared_site head;
    memcpy(&head, at, sizeof head);
    if (head.size < sizeof head || head.size > published - table->read)
        return false;
    if (table->count == table->capacity) {
        size_t capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
        nl_site *sites = nl_memory_check(reallocarray(table->sites, capacity, sizeof *sites));
        if (sites == NULL)
            return false;
        table->sites = sites;
        table->capacity = capacity;
    }
    if (!read_site(&table->sites[table->count], at + sizeof head, at + head.size, &head))
        return false;
    table->count++;
    table->read += head.size;
    return true;
}

const nl_site *nl_site_table_read(nl_site_table *table, uint32_t id)
{
    if (id < NL_SITE_FIRST || table->shared == NULL)
        return NULL;
    while (id - NL_SITE_FIRST >= table->count)
        if (!read_next(table))
            return NULL;
    return &table->sites[id - NL_SITE_FIRST];
}

void nl_site_table_free(nl_site_table *table)
{
    free(table->sites);
    *table = (nl_site_table){0};
}
