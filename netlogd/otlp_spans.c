#include "config.h"

#include "otlp_spans.h"

#include "base/hash_bytes.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "server.h"

#include <stdlib.h>
#include <sys/random.h>

enum { CAPACITY_MIN = 1 << 12, MEMORY_PER_SPAN = 256 };

/* Open addressing with linear probing. 0 marks an empty slot. At most half of the slots are used. */
typedef struct span_table {
    uint64_t *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} span_table;

static span_table young, old;
static uint64_t seed;

/* Returns the slot of a hash, or the empty slot where it belongs. */
static uint64_t *find_slot(const span_table *t, uint64_t hash)
{
    size_t at = hash & (t->capacity - 1);
    while (t->slots[at] != 0 && t->slots[at] != hash)
        at = (at + 1) & (t->capacity - 1);
    return &t->slots[at];
}

static bool has_hash(const span_table *t, uint64_t hash)
{
    return t->capacity > 0 && *find_slot(t, hash) != 0;
}

static void grow_table(span_table *t)
{
    span_table larger = {.capacity = t->capacity == 0 ? CAPACITY_MIN : 2 * t->capacity, .count = t->count};
    larger.slots = nl_memory_check(calloc(larger.capacity, sizeof *larger.slots));
    for (size_t i = 0; i < t->capacity; i++)
        if (t->slots[i] != 0)
            *find_slot(&larger, t->slots[i]) = t->slots[i];
    free(t->slots);
    *t = larger;
}

static void replace_old(void)
{
    free(old.slots);
    old = young;
    young = (span_table){0};
}

static uint64_t hash_span(nl_string trace, nl_string span)
{
    if (seed == 0 && getrandom(&seed, sizeof seed, 0) != sizeof seed)
        seed = (uint64_t)nl_monotonic_ns();
    uint64_t hash = hash_bytes(hash_bytes(seed, trace.data, trace.size), span.data, span.size);
    return hash + (hash == 0);
}

bool otlp_spans_has(nl_string trace, nl_string span)
{
    uint64_t hash = hash_span(trace, span);
    return has_hash(&young, hash) || has_hash(&old, hash);
}

void otlp_spans_add(nl_string trace, nl_string span)
{
    uint64_t hash = hash_span(trace, span);
    if (has_hash(&young, hash) || has_hash(&old, hash))
        return;
    if (young.count >= server_settings()->max_memory / MEMORY_PER_SPAN)
        replace_old();
    if (2 * young.count >= young.capacity)
        grow_table(&young);
    *find_slot(&young, hash) = hash;
    young.count++;
}

void otlp_spans_free(void)
{
    replace_old();
    replace_old();
}
