/*
 * Implements spans (netlogger/span.h): the IDs, the thread's current context, and the events that mark the start and
 * end of a span.
 *
 * The module owns each thread's nl_private_current, which NL_SPAN reads inline, and each thread's generator of IDs.
 * Events that have a context take the slow path of producer.c, which puts the IDs before the event in the ring. Spans
 * do not slow down events outside spans. The library keeps no pointers to spans or scopes. Therefore, a span that never
 * ends, for example because its thread has ended, needs no cleanup.
 */
#include "config.h"

#include "log/log_internal.h"

#include "base/error.h"
#include "base/memory.h"
#include "record/field_name.h"
#include "log/hex.h"
#include "log/site.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

__thread nl_private_current_context nl_private_current;

/* ---- IDs ---- */

/* The state of xoshiro256++ by D. Blackman and S. Vigna; all zeros before seed() runs. */
static __thread uint64_t generator[4];

/*
 * Runs in the child after fork. The child inherits the state of the thread's generator, but must not generate the same
 * IDs as the parent.
 */
static void forget_seed(void)
{
    memset(generator, 0, sizeof generator);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_seed);
}

static void seed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int saved = errno;
    pthread_once(&once, watch_forks);
    if (getrandom(generator, sizeof generator, GRND_NONBLOCK) != sizeof generator) {
        /* Early at boot, the kernel has no random numbers. */
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        generator[0] ^= (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec;
        generator[1] ^= (uint64_t)getpid() << 32 ^ (uint64_t)gettid();
        clock_gettime(CLOCK_REALTIME, &now);
        generator[2] ^= (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec;
    }
    generator[3] |= 1;
    errno = saved;
}

static inline uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline uint64_t new_id(void)
{
    uint64_t *s = generator, id;
    if (__builtin_expect((s[0] | s[1] | s[2] | s[3]) == 0, 0))
        seed();
    do {
        id = rotate(s[0] + s[3], 23) + s[0];
        uint64_t shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = rotate(s[3], 45);
    } while (__builtin_expect(id == 0, 0));
    return id;
}

uint64_t nl_span_new_id(void)
{
    return new_id();
}

/* ---- contexts ---- */

static inline bool has_trace(const nl_context *context)
{
    uint64_t id[2];
    memcpy(id, context->trace_id, sizeof id);
    return (id[0] | id[1]) != 0;
}

/*
 * Sets the thread's current context. If a signal handler logs an event during the change, the event has no context, and
 * the handler can set an entry of nl_private_rings. With this entry, later events would not get the new context.
 * Therefore, this function clears the entries after it has set the context.
 */
static inline void make_current(const nl_context *context)
{
    nl_private_current_context *current = &nl_private_current;
    __atomic_store_n(&current->carried, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    current->context = *context;
    if ((context->flags & NL_CONTEXT_SAMPLED) == 0 || !has_trace(context))
        return;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&current->carried, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    nl_producer_carry_context();
}

nl_context nl_context_attach(const nl_context *context)
{
    nl_context previous = nl_private_current.context;
    make_current(context != NULL && has_trace(context) ? context : NL_NO_PARENT);
    return previous;
}

/* ---- start and end as events ---- */

/* Sets the IDs of *span, which is a child of parent or begins a new trace. */
static inline void new_span(nl_span *span, nl_log *log, const nl_context *parent)
{
    uint64_t id = new_id();
    if (has_trace(parent)) {
        memcpy(span->parent_id, parent->span_id, sizeof span->parent_id);
        span->context = *parent;
    } else {
        uint64_t trace_id[2] = {new_id(), new_id()};
        memset(span->parent_id, 0, sizeof span->parent_id);
        memcpy(span->context.trace_id, trace_id, sizeof trace_id);
        span->context.flags = NL_CONTEXT_SAMPLED | NL_CONTEXT_RANDOM;
        memset(span->context.reserved, 0, sizeof span->context.reserved);
    }
    memcpy(span->context.span_id, &id, sizeof id);
    span->log = log;
    span->begun = NULL;
    span->level = 0;
    span->status = 0;
}

static inline bool is_root(const nl_span *span)
{
    uint64_t parent;
    memcpy(&parent, span->parent_id, sizeof parent);
    return parent == 0;
}

static void not_logged(nl_span *span, const nl_context *parent)
{
    *span = (nl_span){.context = *parent};
}

/*
 * Writes the span's IDs. The trace ID and the span ID are adjacent in the context. Returns the end of the written
 * bytes.
 */
static inline char *put_ids(char *at, const nl_span *span, bool root)
{
    if (!root) {
        memcpy(at, span->parent_id, sizeof span->parent_id);
        at += sizeof span->parent_id;
    }
    memcpy(at, span->context.trace_id, sizeof(nl_span_ids));
    return at + sizeof(nl_span_ids);
}

char *nl_private_span_begin(nl_span *span, nl_log *log, nl_span_place *place, const nl_context *parent, size_t *size,
                            nl_ring_producer **ring)
{
    new_span(span, log, parent);
    span->begun = place;
    bool root = is_root(span);
    nl_event_site *site = &place->start[root];
    *size -= root ? sizeof span->parent_id : 0;
    char *at = nl_producer_begin(log, site, *size, ring);
    if (__builtin_expect(at != NULL, 1))
        return put_ids(at, span, root);
    if (__atomic_load_n(&site->off, __ATOMIC_RELAXED))
        not_logged(span, parent);
    return NULL;
}

/*
 * The sites that one nl_span_end uses for spans with the same name and level. The sites have a copy of the name,
 * because a span may begin in a module that is unloaded before the span ends. The sites are never freed.
 */
struct nl_span_end_sites {
    nl_event_site sites[2];
    const nl_span_place *begun;     /* a place where such spans begin; NULL if unknown or unloaded */
    const nl_span_end_place *place; /* NULL: the place was unloaded */
    struct nl_span_end_sites *next; /* next element of the bucket */
    size_t name_size;
    char event[];
};

enum {
    END_BUCKETS = 1024,
    RUN_TIME_NAMES_MAX = 4096,
    END_FIELDS = 4 /* number of fields, without those of the program */,
    NAME_SIZE_MAX = 4000
};

static struct nl_span_end_sites *end_buckets[END_BUCKETS]; /* changed while the registry is locked; read without the
                                                            * lock */
static unsigned run_time_name_count;

/* Returns the place of the program where a span began; NULL for nl_span_begin_fields. */
static inline const nl_span_place *place_of(const nl_span *span)
{
    return span->level == 0 ? (const nl_span_place *)span->begun : NULL;
}

/* Returns the name of a span without suffix. */
static nl_string name_of(const nl_span *span)
{
    const nl_span_place *place = place_of(span);
    const char *name = place != NULL ? place->end[0].event : (const char *)span->begun;
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): begun is a name or a place */
    return (nl_string){name, strlen(name) - (place != NULL ? strlen(".end") : 0)};
}

static int level_of(const nl_span *span)
{
    const nl_span_place *place = place_of(span);
    return place != NULL ? place->end[0].level : span->level;
}

static struct nl_span_end_sites **end_bucket(const nl_span_end_place *place, nl_string name)
{
    uint32_t hash = 2166136261U ^ (uint32_t)((uintptr_t)place >> 4); /* FNV-1a */
    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * 16777619U;
    return &end_buckets[(hash ^ hash >> 16) % END_BUCKETS];
}

static struct nl_span_end_sites *find_end_sites(struct nl_span_end_sites *const *bucket, const nl_span_end_place *place,
                                                nl_string name, int level)
{
    struct nl_span_end_sites *s = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    for (; s != NULL; s = s->next)
        if (__atomic_load_n(&s->place, __ATOMIC_RELAXED) == place && s->sites[0].level == level &&
            s->name_size == name.size && memcmp(s->event, name.data, name.size) == 0)
            break;
    return s;
}

/*
 * Creates the sites of a place for the spans with this name. Returns NULL if memory runs out, or if RUN_TIME_NAMES_MAX
 * sites exist for spans from nl_span_begin_fields.
 */
static struct nl_span_end_sites *make_end_sites(const nl_span_end_place *place, const nl_span *span, nl_string name)
{
    const nl_span_place *begun = place_of(span);
    if (begun == NULL && run_time_name_count == RUN_TIME_NAMES_MAX)
        return NULL;
    struct nl_span_end_sites *s = malloc(sizeof *s + name.size + sizeof ".end");
    if (s == NULL)
        return NULL;
    run_time_name_count += begun == NULL;
    s->begun = begun;
    s->place = place;
    s->name_size = name.size;
    memcpy(s->event, name.data, name.size);
    memcpy(s->event + name.size, ".end", sizeof ".end");
    for (unsigned root = 0; root < 2; root++)
        s->sites[root] = (nl_event_site){.event = s->event,
                                         .names = place->names + root,
                                         .types = place->types + root,
                                         .field_count = (unsigned short)(place->field_count - root),
                                         .level = (unsigned char)level_of(span)};
    return s;
}

/* Returns the sites of a place for a span that cannot use the sites place->first; NULL if the sites cannot be
 * created. */
static nl_event_site *other_end_sites(nl_span_end_place *place, const nl_span *span)
{
    const nl_string name = name_of(span);
    const int level = level_of(span);
    struct nl_span_end_sites **bucket = end_bucket(place, name), *s = find_end_sites(bucket, place, name, level);
    if (s != NULL)
        return s->sites;
    if (nl_inside > 0)
        return NULL;
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    s = find_end_sites(bucket, place, name, level);
    if (s == NULL && (s = make_end_sites(place, span, name)) != NULL) {
        s->next = *bucket;
        __atomic_store_n(bucket, s, __ATOMIC_RELEASE);
        if (place->first == NULL)
            __atomic_store_n(&place->first, s, __ATOMIC_RELEASE);
    }
    nl_registry_unlock();
    nl_leave(&visit);
    return s != NULL ? s->sites : NULL;
}

/* Returns the sites for the end of a span at a place; NULL if the sites cannot be created. */
static inline nl_event_site *end_sites(nl_span_end_place *place, const nl_span *span)
{
    const nl_span_place *begun = place_of(span);
    if (begun == NULL)
        return other_end_sites(place, span);
    if (place->field_count == END_FIELDS)
        return ((nl_span_place *)span->begun)->end;
    struct nl_span_end_sites *first = __atomic_load_n(&place->first, __ATOMIC_ACQUIRE);
    if (first != NULL && __atomic_load_n(&first->begun, __ATOMIC_RELAXED) == begun)
        return first->sites;
    return other_end_sites(place, span);
}

void nl_span_leave_module(const void *module)
{
    for (size_t i = 0; i < END_BUCKETS; i++)
        for (struct nl_span_end_sites *s = end_buckets[i]; s != NULL; s = s->next) {
            if (s->begun != NULL && nl_module_of(s->begun) == module)
                __atomic_store_n(&s->begun, NULL, __ATOMIC_RELAXED);
            if (s->place != NULL && nl_module_of(s->place) == module)
                __atomic_store_n(&s->place, NULL, __ATOMIC_RELAXED);
        }
}

/*
 * Ends the span: reserves space for an event of this size, and writes the IDs and the status. Returns the position of
 * the program's fields, or NULL if the event is off or lost.
 */
static inline char *end_at(nl_span *span, nl_event_site *site, size_t size, nl_ring_producer **ring)
{
    nl_log *log = span->log;
    span->log = NULL;
    char *at = __atomic_load_n(&site->off, __ATOMIC_RELAXED) ? NULL : nl_producer_begin(log, site, size, ring);
    if (__builtin_expect(at == NULL, 0))
        return NULL;
    int32_t status = span->status;
    at = put_ids(at, span, is_root(span));
    memcpy(at, &status, sizeof status);
    return at + sizeof status;
}

/* Logs the end of a span without fields of the program. */
static void end_plainly(nl_span *span)
{
    nl_ring_producer *ring;
    bool root = is_root(span);
    size_t size = NL_PRIVATE_SPAN_END_HEAD - (root ? sizeof span->parent_id : 0);
    char *at = end_at(span, &((nl_span_place *)span->begun)->end[root], size, &ring);
    if (at != NULL)
        nl_private_commit(ring, size);
}

/* ---- scopes ---- */

void nl_private_scope_enter(nl_private_scope *scope)
{
    scope->previous = nl_private_current.context;
    scope->previous_status = nl_private_current.status;
    nl_private_current.status = 0;
    make_current(&scope->span.context);
}

void nl_private_scope_leave(nl_private_scope *scope)
{
    scope->span.status = nl_private_current.status;
    nl_private_current.status = scope->previous_status;
    make_current(&scope->previous);
    end_plainly(&scope->span);
}

/* ---- names at run time ---- */

enum { USUAL_FIELDS = NL_SITE_FIELDS_MAX };

/*
 * Copies fields. Replaces invalid names with valid copies at scratch, and truncates names for which scratch has no
 * space.
 */
static void copy_fields(nl_field *to, const nl_field *from, size_t count, char *scratch, size_t capacity)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        if (to[i].type == NL_TYPE_STRING && to[i].string.data == NULL)
            to[i].string = (nl_string){"", 0};
        nl_string name = to[i].name;
        if (nl_is_name(name))
            continue;
        name = name.size > 0 ? name : (nl_string){"_", 1};
        name.size = name.size < capacity ? name.size : capacity;
        if (name.size == 0) {
            to[i].name = (nl_string){"_", 1};
            continue;
        }
        memcpy(scratch, name.data, name.size);
        nl_name_make_valid(scratch, name.size);
        to[i].name = (nl_string){scratch, name.size};
        scratch += name.size;
        capacity -= name.size;
    }
}

/*
 * Writes the record of the start or the end of a span: its IDs, its status unless `status` is NULL, and then the
 * program's fields. Returns the same values as nl_write.
 */
static nl_status write_span(const nl_span *span, nl_log *log, const char *suffix, const int64_t *status,
                            const nl_field *more, size_t count)
{
    char event[NAME_SIZE_MAX + 8], digits[2][2 * 16 + 1], parent[2 * 8 + 1];
    const nl_string name = name_of(span);
    memcpy(event, name.data, name.size);
    memcpy(event + name.size, suffix, strlen(suffix));
    nl_field usual[USUAL_FIELDS], *fields = usual;
    if (count > USUAL_FIELDS - 4 && (fields = reallocarray(NULL, count + 4, sizeof *fields)) == NULL) {
        nl_producer_lose(log);
        return nl_memory_failed();
    }
    size_t n = 0;
    if (!is_root(span)) {
        nl_hex_put(parent, span->parent_id, sizeof span->parent_id);
        fields[n++] = (nl_field){.name = {"PARENT.ID", 9}, .type = NL_TYPE_STRING, .string = {parent, 16}};
    }
    nl_hex_put(digits[0], span->context.trace_id, sizeof span->context.trace_id);
    nl_hex_put(digits[1], span->context.span_id, sizeof span->context.span_id);
    fields[n++] = (nl_field){.name = {"TRACE.ID", 8}, .type = NL_TYPE_STRING, .string = {digits[0], 32}};
    fields[n++] = (nl_field){.name = {"SPAN.ID", 7}, .type = NL_TYPE_STRING, .string = {digits[1], 16}};
    if (status != NULL)
        fields[n++] = (nl_field){.name = {"STATUS", 6}, .type = NL_TYPE_INT, .int_value = *status};
    char names[1024];
    copy_fields(fields + n, more, count, names, sizeof names);
    nl_record record = {.level = (nl_level)level_of(span),
                        .event = {event, name.size + strlen(suffix)},
                        .fields = fields,
                        .field_count = n + count};
    nl_status result = nl_write_put_record(log, &record);
    if (fields != usual)
        free(fields);
    return result;
}

/*
 * Writes the end of a span as a whole record without the program's fields. Counts the end as lost if nl_inside is set.
 */
static void end_without_sites(nl_span *span)
{
    nl_log *log = span->log;
    const int64_t status = span->status;
    span->log = NULL;
    if (nl_inside == 0)
        write_span(span, log, ".end", &status, NULL, 0);
    else
        nl_producer_lose(log);
}

char *nl_private_span_end(nl_span *span, nl_span_end_place *place, size_t *size, nl_ring_producer **ring)
{
    bool root = is_root(span);
    nl_event_site *sites = end_sites(place, span);
    if (__builtin_expect(sites == NULL, 0)) {
        end_without_sites(span);
        return NULL;
    }
    *size -= root ? sizeof span->parent_id : 0;
    return end_at(span, &sites[root], *size, ring);
}

static bool have_types(const nl_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].type > NL_TYPE_BOOL)
            return false;
    return true;
}

nl_status nl_span_begin_fields(nl_span *span, nl_log *log, nl_level level, const char *name, const nl_context *parent,
                               const nl_field *fields, size_t count)
{
    NL_REQUIRE(span != NULL, "span is NULL", NL_FAILED);
    if (parent == NULL)
        parent = &nl_private_current.context;
    const nl_context from = *parent; /* parent may point into *span */
    not_logged(span, &from);
    NL_REQUIRE(name != NULL && *name != '\0', "a span has no name", NL_FAILED);
    NL_REQUIRE(strlen(name) <= NAME_SIZE_MAX, "the name of a span is too long", NL_FAILED);
    NL_REQUIRE(level > NL_LEVEL_NONE && level <= NL_DEBUG, "invalid level", NL_FAILED);
    NL_REQUIRE(fields != NULL || count == 0, "fields is NULL", NL_FAILED);
    NL_REQUIRE(have_types(fields, count), "a value has an invalid type", NL_FAILED);
    if (!nl_is_on(log, level) || !nl_private_is_sampled(&from))
        return NL_OFF;
    new_span(span, log, &from);
    span->begun = name;
    span->level = level;
    nl_status status = write_span(span, log, ".start", NULL, fields, count);
    if (status == NL_OFF)
        not_logged(span, &from);
    return status;
}

nl_status nl_span_end_fields(nl_span *span, const nl_field *fields, size_t count)
{
    if (span == NULL || span->log == NULL)
        return NL_OFF;
    NL_REQUIRE(fields != NULL || count == 0, "fields is NULL", NL_FAILED);
    NL_REQUIRE(have_types(fields, count), "a value has an invalid type", NL_FAILED);
    nl_log *log = span->log;
    span->log = NULL;
    const int64_t status = span->status;
    return write_span(span, log, ".end", &status, fields, count);
}
