#include "config.h"

#include "archive/seen.h"

#include "base/memory.h"

#include <stdlib.h>

uint64_t seen_hash(const char *data, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3u;
    hash ^= hash >> 32;
    return hash == 0 ? 1 : hash; /* 0 marks a free slot */
}

static struct seen_slot *slot_of(const seen *s, uint64_t hash)
{
    size_t at = (size_t)hash & (s->capacity - 1);
    while (s->slots[at].hash != hash && s->slots[at].hash != 0)
        at = (at + 1) & (s->capacity - 1);
    return &s->slots[at];
}

static void seen_grow(seen *s)
{
    seen larger = {.capacity = s->capacity == 0 ? 1024 : 2 * s->capacity, .used = s->used};
    larger.slots = nl_memory_check(calloc(larger.capacity, sizeof *larger.slots));
    for (size_t i = 0; i < s->capacity; i++)
        if (s->slots[i].hash != 0)
            *slot_of(&larger, s->slots[i].hash) = s->slots[i];
    free(s->slots);
    *s = larger;
}

void seen_add(seen *s, uint64_t hash)
{
    if (2 * s->used >= s->capacity)
        seen_grow(s);
    struct seen_slot *slot = slot_of(s, hash);
    s->used += slot->hash == 0;
    slot->hash = hash;
    slot->count++;
}

bool seen_take(seen *s, uint64_t hash)
{
    struct seen_slot *slot = s->capacity > 0 ? slot_of(s, hash) : NULL;
    if (slot == NULL || slot->count == 0)
        return false;
    slot->count--;
    return true;
}

void seen_free(seen *s)
{
    free(s->slots);
    *s = (seen){0};
}
