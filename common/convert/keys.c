#include "config.h"

#include "convert/keys.h"

#include "base/hash_bytes.h"
#include "base/buffer.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct keys_slot {
    nl_string name;
    uint32_t generation;
    uint32_t count;
} keys_slot;

static bool keys_is(nl_string name, const char *text)
{
    return memcmp(name.data, text, name.size) == 0;
}

member member_of(nl_string name)
{
    switch (name.size) {
    case 2:
        return keys_is(name, "ts") ? MEMBER_TIME : MEMBER_NONE;
    case 3:
        return keys_is(name, "LVL") ? MEMBER_LEVEL : MEMBER_NONE;
    case 4:
        if (keys_is(name, "host") || keys_is(name, "HOST"))
            return MEMBER_HOST;
        if (keys_is(name, "prog") || keys_is(name, "PROG"))
            return MEMBER_PROG;
        return keys_is(name, "DATE") ? MEMBER_TIME : MEMBER_NONE;
    case 5:
        return keys_is(name, "event") ? MEMBER_EVENT : keys_is(name, "level") ? MEMBER_LEVEL : MEMBER_NONE;
    case 7:
        return keys_is(name, "NL.EVNT") ? MEMBER_EVENT : MEMBER_NONE;
    }
    return MEMBER_NONE;
}

void keys_begin(keys *k, size_t field_count)
{
    if (k->slot_count < 2 * field_count || k->slot_count == 0) {
        size_t count = 64;
        while (count < 2 * field_count)
            count *= 2;
        free(k->slots);
        k->slots = nl_memory_check(calloc(count, sizeof *k->slots));
        k->slot_count = count;
        k->generation = 0;
        k->seed = hash_seed();
    }
    if (++k->generation == 0) {
        memset(k->slots, 0, k->slot_count * sizeof *k->slots);
        k->generation = 1;
    }
}

uint32_t keys_count(keys *k, nl_string name)
{
    for (size_t at = hash_bytes(k->seed, name.data, name.size);; at++) {
        keys_slot *slot = &k->slots[at & (k->slot_count - 1)];
        if (slot->generation != k->generation) {
            *slot = (keys_slot){name, k->generation, member_of(name) != MEMBER_NONE ? 2 : 1};
            return slot->count;
        }
        if (slot->name.size == name.size && memcmp(slot->name.data, name.data, name.size) == 0)
            return ++slot->count;
    }
}

void keys_free(keys *k)
{
    free(k->slots);
    *k = (keys){0};
}

void keys_put(keys *k, nl_string name, nl_buffer *out)
{
    uint32_t count = keys_count(k, name);
    nl_buffer_append(out, name.data, name.size);
    if (count > 1) {
        nl_buffer_reserve(out, 16);
        out->size += (size_t)snprintf(out->data + out->size, 16, "#%u", count);
    }
}

nl_string key_name(nl_string key, bool *repeated)
{
    const char *sharp = memchr(key.data, '#', key.size);
    size_t at = sharp != NULL ? (size_t)(sharp - key.data) + 1 : 0;
    *repeated = sharp != NULL && at > 1 && at < key.size;
    for (; *repeated && at < key.size; at++)
        *repeated = key.data[at] >= '0' && key.data[at] <= '9';
    return *repeated ? (nl_string){key.data, (size_t)(sharp - key.data)} : key;
}
