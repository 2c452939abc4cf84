/*
 * The chain of a gate is an immutable array. Attaching and detaching create a new array. Threads that pass a marker
 * find the chain without a lock. Old chains and detached probes are freed after a grace period.
 */
#include "config.h"

#include "log/marker.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "log/log_internal.h"
#include "log/probe.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

typedef struct link {
    nl_probe_object *probe;
    bool ends; /* the marker ends a measured time */
} link;

typedef struct chain {
    struct chain *next; /* next in the list of chains to free */
    size_t count;
    link links[];
} chain;

/* The markers of the program or of a shared library. */
typedef struct block {
    struct block *next;
    const nl_marker_entry *begin, *end;
} block;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;
static nl_probe_object *probes; /* in the order of attachment */
static nl_probe_object *old_probes;
static nl_probe_object *stuck_probes; /* detached probes that are still in chains, because memory ran out */
static chain *old_chains;
static nl_probe last_id;
static uint64_t slots_taken[NL_TIME_PROBES_MAX / 64];

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&mutex);
}

static void after_fork_in_child(void)
{
    nl_grace_after_fork();
    pthread_mutex_unlock(&mutex);
}

/* Registers the module's fork handlers before those of logs, so that fork takes the module's lock after all other
 * locks. */
__attribute__((constructor(101))) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

/* ---- passing a marker ---- */

void nl_private_marker_reached(nl_marker_gate *gate, const char *name, const nl_field *fields, size_t count)
{
    int saved = errno;
    if (!nl_grace_enter())
        return;
    const chain *passed = __atomic_load_n(&gate->chain, __ATOMIC_SEQ_CST);
    for (size_t i = 0; passed != NULL && i < passed->count; i++)
        nl_probe_pass(passed->links[i].probe, passed->links[i].ends, name, fields, count);
    nl_grace_leave();
    errno = saved;
}

/* ---- gates and their chains; the caller holds the lock ---- */

static nl_marker_gate *gate_of(const nl_marker_entry *entry)
{
    return (nl_marker_gate *)(void *)((const char *)entry + entry->gate);
}

static const char *marker_name_of(const nl_marker_entry *entry)
{
    return (const char *)entry + entry->text;
}

static bool is_match(const char *pattern, const char *name)
{
    return pattern != NULL && fnmatch(pattern, name, 0) == 0;
}

/*
 * Finds the probes of a marker with this name, and returns the number of links to the probes. Stores the links in
 * links[] unless links is NULL.
 */
static size_t find_links(const char *name, link *links)
{
    size_t count = 0;
    for (nl_probe_object *probe = probes; probe != NULL; probe = probe->next) {
        /* If a marker ends one measurement and begins the next, its links are in this order. */
        if (is_match(probe->to, name) && count++ < SIZE_MAX && links != NULL)
            links[count - 1] = (link){probe, true};
        if (is_match(probe->pattern, name) && count++ < SIZE_MAX && links != NULL)
            links[count - 1] = (link){probe, false};
    }
    return count;
}

/* The 16 bits of the gate's state that the library sets. Tracers set the other 16 bits. */
typedef uint16_t __attribute__((may_alias)) half;

static void set_chain(nl_marker_gate *gate, chain *now)
{
    chain *old = gate->chain;
    __atomic_store_n(&gate->chain, now, __ATOMIC_SEQ_CST);
    __atomic_store_n((half *)(void *)&gate->state + 1, now != NULL, __ATOMIC_RELAXED);
    if (old != NULL) {
        old->next = old_chains;
        old_chains = old;
    }
}

/*
 * Gives a gate a new chain of the probes that now match the marker. Returns false, with the chain unchanged, if memory
 * runs out.
 */
static bool arm(nl_marker_gate *gate, const char *name)
{
    size_t count = find_links(name, NULL);
    chain *made = NULL;
    if (count > 0) {
        made = nl_memory_check(malloc(sizeof *made + count * sizeof(link)));
        if (made == NULL)
            return false;
        made->count = count;
        find_links(name, made->links);
    }
    set_chain(gate, made);
    return true;
}

static bool is_in_chain(const nl_marker_gate *gate, const nl_probe_object *probe)
{
    const chain *now = gate->chain;
    for (size_t i = 0; now != NULL && i < now->count; i++)
        if (now->links[i].probe == probe)
            return true;
    return false;
}

/*
 * Updates the chain of each marker of a probe once, after the probe was attached or detached. Returns false if memory
 * ran out for some of the chains.
 */
static bool arm_all(const nl_probe_object *probe, bool attached)
{
    bool good = true;
    for (const block *at = blocks; at != NULL; at = at->next)
        for (const nl_marker_entry *entry = at->begin; entry < at->end; entry++) {
            const char *name = marker_name_of(entry);
            if (!is_match(probe->pattern, name) && !is_match(probe->to, name))
                continue;
            if (is_in_chain(gate_of(entry), probe) != attached)
                good &= arm(gate_of(entry), name);
        }
    return good;
}

/* ---- freeing ---- */

static void free_all(nl_probe_object *some_probes, chain *some_chains)
{
    for (chain *next; some_chains != NULL; some_chains = next) {
        next = some_chains->next;
        free(some_chains);
    }
    for (nl_probe_object *next; some_probes != NULL; some_probes = next) {
        next = some_probes->next;
        nl_probe_free(some_probes);
    }
}

/*
 * Waits for a grace period, and then frees old probes and chains. Also waits if there is no old object, because another
 * thread may be freeing the caller's probe.
 */
static void settle(void)
{
    lock();
    nl_probe_object *some_probes = old_probes;
    chain *some_chains = old_chains;
    old_probes = NULL;
    old_chains = NULL;
    pthread_mutex_unlock(&mutex);
    nl_grace_wait();
    free_all(some_probes, some_chains);
}

/* ---- loading and unloading of programs and libraries ---- */

void nl_private_markers_add(const nl_marker_entry *begin, const nl_marker_entry *end)
{
    lock();
    const block *known = blocks;
    while (known != NULL && known->begin != begin)
        known = known->next;
    block *made = known == NULL ? malloc(sizeof *made) : NULL;
    if (made != NULL) {
        *made = (block){blocks, begin, end};
        blocks = made;
        for (const nl_marker_entry *entry = begin; entry < end; entry++)
            if (gate_of(entry)->chain == NULL && find_links(marker_name_of(entry), NULL) > 0)
                arm(gate_of(entry), marker_name_of(entry));
    }
    pthread_mutex_unlock(&mutex);
}

void nl_private_markers_remove(const nl_marker_entry *begin)
{
    lock();
    for (block **at = &blocks; *at != NULL; at = &(*at)->next)
        if ((*at)->begin == begin) {
            block *gone = *at;
            for (const nl_marker_entry *entry = begin; entry < gone->end; entry++)
                if (gate_of(entry)->chain != NULL)
                    set_chain(gate_of(entry), NULL);
            *at = gone->next;
            free(gone);
            break;
        }
    pthread_mutex_unlock(&mutex);
}

/* ---- attaching and detaching ---- */

static bool marker_claim_slot(unsigned *slot)
{
    for (unsigned i = 0; i < NL_TIME_PROBES_MAX; i++)
        if ((slots_taken[i / 64] & (uint64_t)1 << i % 64) == 0) {
            slots_taken[i / 64] |= (uint64_t)1 << i % 64;
            *slot = i;
            return true;
        }
    nl_error_set(NL_ERROR_LIMIT, "the maximum number of probes that measure times (%d) is attached",
                 NL_TIME_PROBES_MAX);
    return false;
}

/*
 * Removes *at from the list. If memory for shorter chains runs out, the probe stays in some chains without effect and
 * is never freed. The caller holds the lock.
 */
static void delist(nl_probe_object **at)
{
    nl_probe_object *probe = *at;
    *at = probe->next;
    if (probe->kind == NL_PROBE_TIME)
        slots_taken[probe->slot / 64] &= ~((uint64_t)1 << probe->slot % 64);
    __atomic_store_n(&probe->detached, true, __ATOMIC_SEQ_CST);
    nl_probe_object **list = arm_all(probe, false) ? &old_probes : &stuck_probes;
    probe->next = *list;
    *list = probe;
}

/*
 * Appends the probe to the list with a new number, and arms its markers. Returns the number, or 0, with the probe
 * detached, if memory runs out. The caller holds the lock.
 */
static nl_probe enlist(nl_probe_object *probe)
{
    nl_probe_object **last = &probes;
    while (*last != NULL)
        last = &(*last)->next;
    *last = probe;
    if (++last_id == 0)
        last_id = 1;
    probe->id = last_id;
    if (arm_all(probe, true))
        return probe->id;
    delist(last);
    return 0;
}

/* Returns an unattached probe; NULL if memory runs out. */
static nl_probe_object *make_probe(const nl_probe_options *options)
{
    nl_probe_object *probe = nl_memory_check(malloc(sizeof *probe));
    if (probe == NULL)
        return NULL;
    const bool times = options->kind == NL_PROBE_TIME;
    *probe = (nl_probe_object){.kind = options->kind,
                               .pattern = strdup(options->pattern),
                               .to = times ? strdup(options->to) : NULL,
                               .log = options->log,
                               .level = options->level,
                               .function = options->function,
                               .user = options->user,
                               .times = times ? calloc(1, sizeof *probe->times) : NULL};
    if (probe->pattern == NULL || (times && (probe->to == NULL || probe->times == NULL))) {
        nl_memory_failed();
        nl_probe_free(probe);
        return NULL;
    }
    if (probe->times != NULL)
        probe->times->min_ns = UINT64_MAX;
    return probe;
}

nl_probe nl_marker_attach(const nl_probe_options *options)
{
    NL_REQUIRE(options != NULL, "options is NULL", 0);
    const nl_probe_kind kind = options->kind;
    NL_REQUIRE(kind >= NL_PROBE_LOG && kind <= NL_PROBE_CALL, "kind is not a kind of probe", 0);
    NL_REQUIRE(options->pattern != NULL, "pattern is NULL", 0);
    NL_REQUIRE(kind != NL_PROBE_TIME || options->to != NULL, "to is NULL", 0);
    NL_REQUIRE(kind != NL_PROBE_CALL || options->function != NULL, "function is NULL", 0);
    NL_REQUIRE(kind != NL_PROBE_LOG || options->log != NULL, "log is NULL", 0);
    NL_REQUIRE(kind != NL_PROBE_LOG || (options->level >= NL_EMERGENCY && options->level <= NL_DEBUG),
               "the level of an event must be from NL_EMERGENCY to NL_DEBUG", 0);
    if (*options->pattern == '\0' || (kind == NL_PROBE_TIME && *options->to == '\0')) {
        nl_error_set(NL_ERROR_INVALID, "a marker's pattern is empty");
        return 0;
    }
    nl_probe_object *probe = make_probe(options);
    if (probe == NULL)
        return 0;
    lock();
    bool has_slot = kind != NL_PROBE_TIME || marker_claim_slot(&probe->slot);
    nl_probe id = has_slot ? enlist(probe) : 0;
    pthread_mutex_unlock(&mutex);
    if (!has_slot)
        nl_probe_free(probe);
    return id;
}

static nl_probe_object **marker_find(nl_probe id)
{
    nl_probe_object **at = &probes;
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

nl_status nl_marker_detach_at_once(nl_probe id, nl_probe_info *info)
{
    lock();
    nl_probe_object **at = marker_find(id), *probe = *at;
    if (probe != NULL)
        delist(at);
    if (probe != NULL && info != NULL)
        nl_probe_sum(probe, info);
    pthread_mutex_unlock(&mutex);
    return probe != NULL ? NL_OK : NL_END;
}

nl_status nl_marker_detach(nl_probe id)
{
    nl_status status = nl_marker_detach_at_once(id, NULL);
    if (status == NL_OK && !nl_grace_is_inside())
        settle();
    return status;
}

void nl_markers_forget_log(nl_log *log)
{
    lock();
    for (nl_probe_object **at = &probes; *at != NULL;)
        if ((*at)->kind == NL_PROBE_LOG && (*at)->log == log)
            delist(at);
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&mutex);
    if (!nl_grace_is_inside()) /* another thread may be freeing probes of this log */
        settle();
}

/*
 * ---- lists ----
 *
 * The functions lock the mutex, copy the list, unlock the mutex, and then call the program's function.
 */

typedef struct text_of_markers {
    nl_buffer text;
    size_t *probes; /* per marker */
    size_t count;
} text_of_markers;

/* Returns whether an earlier entry has the same marker. Compilers duplicate markers by inlining and in templates. */
static bool is_repeated(const block *in, const nl_marker_entry *entry)
{
    const char *name = marker_name_of(entry), *place = name + strlen(name) + 1;
    for (const nl_marker_entry *other = in->begin; other < entry; other++) {
        const char *other_name = marker_name_of(other);
        if (strcmp(other_name, name) == 0 && strcmp(other_name + strlen(name) + 1, place) == 0)
            return true;
    }
    return false;
}

/* Appends the marker's three texts, each with a NUL. Returns false if memory runs out. */
static bool copy_entry(nl_buffer *text, const nl_marker_entry *entry)
{
    const char *at = marker_name_of(entry);
    for (int i = 0; i < 3; i++) {
        size_t size = strlen(at);
        /* A space follows each field name. The last space is omitted. */
        size_t shown = i == 2 && size > 0 ? size - 1 : size;
        if (!nl_buffer_append(text, at, shown) || !nl_buffer_append(text, "", 1))
            return false;
        at += size + 1;
    }
    return true;
}

static nl_status copy_markers(text_of_markers *copy)
{
    size_t count = 0;
    for (const block *at = blocks; at != NULL; at = at->next)
        count += (size_t)(at->end - at->begin);
    copy->probes = calloc(count + 1, sizeof *copy->probes);
    if (copy->probes == NULL)
        return nl_memory_failed();
    for (const block *at = blocks; at != NULL; at = at->next)
        for (const nl_marker_entry *entry = at->begin; entry < at->end; entry++) {
            if (is_repeated(at, entry))
                continue;
            if (!copy_entry(&copy->text, entry))
                return NL_FAILED;
            copy->probes[copy->count++] = find_links(marker_name_of(entry), NULL);
        }
    return NL_OK;
}

nl_status nl_marker_list(void (*function)(void *user, const nl_marker_info *marker), void *user)
{
    NL_REQUIRE(function != NULL, "function is NULL", NL_FAILED);
    text_of_markers copy = {0};
    lock();
    nl_status status = copy_markers(&copy);
    pthread_mutex_unlock(&mutex);
    const char *at = copy.text.data;
    for (size_t i = 0; i < copy.count && status == NL_OK; i++) {
        nl_marker_info info = {.name = at, .probes = copy.probes[i]};
        info.place = info.name + strlen(info.name) + 1;
        info.fields = info.place + strlen(info.place) + 1;
        at = info.fields + strlen(info.fields) + 1;
        function(user, &info);
    }
    free(copy.probes);
    nl_buffer_free(&copy.text);
    return status;
}

static size_t count_places(const nl_probe_object *probe)
{
    size_t count = 0;
    for (const block *at = blocks; at != NULL; at = at->next)
        for (const nl_marker_entry *entry = at->begin; entry < at->end; entry++)
            if (is_match(probe->pattern, marker_name_of(entry)) || is_match(probe->to, marker_name_of(entry)))
                count += !is_repeated(at, entry);
    return count;
}

/* The probes that are attached now. The list owns the texts `pattern` and `to` of its probes. */
typedef struct probe_list {
    nl_probe_info *infos;
    size_t count;
} probe_list;

static nl_status copy_probes(probe_list *list)
{
    size_t count = 0;
    for (const nl_probe_object *probe = probes; probe != NULL; probe = probe->next)
        count++;
    list->infos = nl_memory_check(calloc(count + 1, sizeof *list->infos));
    if (list->infos == NULL)
        return NL_FAILED;
    for (const nl_probe_object *probe = probes; probe != NULL; probe = probe->next) {
        nl_probe_info *info = &list->infos[list->count++];
        nl_probe_sum(probe, info);
        info->pattern = nl_text_copy(probe->pattern);
        info->to = nl_text_copy(probe->to);
        info->markers = count_places(probe);
        if (info->pattern == NULL || (info->to == NULL && probe->to != NULL))
            return NL_FAILED;
    }
    return NL_OK;
}

nl_status nl_probe_list(void (*function)(void *user, const nl_probe_info *probe), void *user)
{
    NL_REQUIRE(function != NULL, "function is NULL", NL_FAILED);
    probe_list list = {0};
    lock();
    nl_status status = copy_probes(&list);
    pthread_mutex_unlock(&mutex);
    for (size_t i = 0; i < list.count; i++) {
        if (status == NL_OK)
            function(user, &list.infos[i]);
        free((char *)list.infos[i].pattern);
        free((char *)list.infos[i].to);
    }
    free(list.infos);
    return status;
}

bool nl_probe_read(nl_probe id, nl_probe_info *info)
{
    lock();
    const nl_probe_object *probe = *marker_find(id);
    if (probe != NULL) {
        nl_probe_sum(probe, info);
        info->markers = count_places(probe);
    }
    pthread_mutex_unlock(&mutex);
    return probe != NULL;
}
