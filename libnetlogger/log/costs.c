/*
 * Measures the cost of an event to its caller.
 */
#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/thread.h"
#include "log/clock.h"
#include "log/format_site.h"
#include "log/log_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    RING_SIZE = 64 << 10,
    EVENT_MAX = 1 << 10, /* maximum size of an event in bytes; events with NL_FIELDS_MAX typical values are smaller */
    EVENTS = 1000,       /* number of events per round */
    ROUNDS = 7,
};

/* Typical values: a string, and bits that serve as a number of any type. */
static const char typical_text[] = "/data/run-17/block-0042";
static const uint64_t typical_bits = 0x0000001cbe991a14;

typedef struct measuring {
    nl_event_site **sites;
    nl_event_cost *costs;
    size_t count;
    nl_format_cache cache;
    nl_log_gate gate;
    nl_ring_producer ring;
    uint64_t published;
    char data[RING_SIZE + EVENT_MAX];
} measuring;

static size_t typical_size(const nl_event_site *site)
{
    size_t size = sizeof(nl_event_header);
    for (unsigned i = 0; i < site->field_count; i++)
        size += site->types[i] == NL_RAW_STRING ? sizeof(uint32_t) + strlen(typical_text) : nl_raw_size(site->types[i]);
    return size;
}

static void put_typical(char *at, const nl_event_site *site)
{
    for (unsigned i = 0; i < site->field_count; i++) {
        switch (site->types[i]) {
        case NL_RAW_STRING: {
            nl_string text = nl_private_text(typical_text);
            at = nl_private_put_string(at, &text, 0);
            break;
        }
        case NL_RAW_BOOL:
        case NL_RAW_INT8:
        case NL_RAW_UINT8:
            at = nl_private_put_scalar(at, &typical_bits, 1);
            break;
        case NL_RAW_TRACE_ID:
            at = nl_private_put_scalar(at, &(nl_span_ids){0}.trace_id, 16);
            break;
        case NL_RAW_INT16:
        case NL_RAW_UINT16:
            at = nl_private_put_scalar(at, &typical_bits, 2);
            break;
        case NL_RAW_INT32:
        case NL_RAW_UINT32:
        case NL_RAW_FLOAT:
            at = nl_private_put_scalar(at, &typical_bits, 4);
            break;
        default:
            at = nl_private_put_scalar(at, &typical_bits, 8);
        }
    }
}

/* Logs EVENTS events as the program would. For nl_write, this includes the lookup of the format. */
static void log_some(measuring *m, nl_event_site *site, const nl_format_site *format, size_t size)
{
    for (int i = 0; i < EVENTS; i++) {
        if (format != NULL)
            nl_format_site_find(&m->cache, format->level, format->event, format->format);
        nl_ring_producer *ring;
        char *at = nl_private_begin(&m->gate, site, size, &ring);
        if (at == NULL) /* impossible, because the ring exists and has space */
            return;
        put_typical(at, site);
        nl_private_commit(ring, size);
    }
}

static void costs_measure(measuring *m, const nl_event_site *measured, nl_event_cost *cost)
{
    /*
     * The copy of the site has a fixed number, so that the measured events need no registration and only look up the
     * scratch ring.
     */
    nl_event_site site = *measured;
    site.id = NL_SITE_FIRST;
    const nl_format_site *format = nl_format_site_of(measured);
    *cost = (nl_event_cost){.event = site.event,
                            .level = (nl_level)site.level,
                            .names = site.names,
                            .field_count = site.field_count,
                            .printed_fields = format != NULL ? nl_plan_printed(&format->plan) : 0,
                            .bytes = typical_size(&site)};
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_ns = nl_monotonic_ns();
        log_some(m, &site, format, cost->bytes);
        double each_ns = (double)(nl_monotonic_ns() - start_ns) / EVENTS;
        cost->ns = round == 0 || each_ns < cost->ns ? each_ns : cost->ns;
    }
}

/*
 * Measures all sites. Runs in a separate thread, which signal handlers do not interrupt, and writes to a scratch ring
 * of the same kind as a log's rings.
 */
static void *measure_all(void *user)
{
    measuring *m = user;
    nl_private_rings[m->gate.slot] = &m->ring;
    for (size_t i = 0; i < m->count; i++)
        costs_measure(m, m->sites[i], &m->costs[i]);
    nl_private_rings[m->gate.slot] = NULL;
    nl_format_cache_free(&m->cache);
    return NULL;
}

static nl_status measure_apart(measuring *m)
{
    pthread_t thread;
    int error = nl_thread_create(&thread, NULL, measure_all, m);
    if (error != 0)
        return nl_error_set(NL_ERROR_SYSTEM, "cannot start the measuring thread: %s", strerror(error));
    pthread_join(thread, NULL);
    return NL_OK;
}

static void free_measuring(measuring *m)
{
    free(m->sites);
    free(m->costs);
    free(m);
}

/*
 * Returns the input for measuring all registered sites, which the caller frees with free_measuring; NULL if memory runs
 * out.
 */
static measuring *prepare(void)
{
    measuring *m = nl_memory_check(calloc(1, sizeof *m));
    if (m == NULL)
        return NULL;
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    m->sites = nl_sites_registered(&m->count);
    nl_registry_unlock();
    nl_leave(&visit);
    m->costs = nl_memory_check(calloc(m->count + 1, sizeof *m->costs));
    if (m->sites == NULL || m->costs == NULL) {
        free_measuring(m);
        return NULL;
    }
    m->gate.threshold = NL_DEBUG;
    m->ring = (nl_ring_producer){.data = m->data,
                                 .mask = RING_SIZE - 1,
                                 .limit = UINT64_MAX,
                                 .published = &m->published,
                                 .slow_clock = !nl_clock_has_counter()};
    return m;
}

nl_status nl_event_costs(void (*report)(void *user, const nl_event_cost *cost), void *user)
{
    measuring *m = prepare();
    if (m == NULL)
        return NL_FAILED;
    nl_status status = m->count > 0 ? measure_apart(m) : NL_OK;
    for (size_t i = 0; i < m->count && status == NL_OK; i++)
        report(user, &m->costs[i]);
    free_measuring(m);
    return status;
}
