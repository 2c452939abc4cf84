#include "config.h"

#include "convert/text_set.h"

#include "base/hash_bytes.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Returns the slot of a text, or the free slot where the text would be added. */
static uint32_t *find_slot(const text_set *set, nl_string text)
{
    for (size_t at = hash_bytes(set->seed, text.data, text.size);; at++) {
        uint32_t *slot = &set->slots[at & (set->slot_count - 1)];
        if (*slot == 0)
            return slot;
        nl_string known = set->texts[*slot - 1];
        if (known.size == text.size && memcmp(known.data, text.data, text.size) == 0)
            return slot;
    }
}

static void text_set_grow(text_set *set)
{
    if (set->capacity == 0)
        set->seed = hash_seed();
    set->capacity = set->capacity == 0 ? 64 : 2 * set->capacity;
    set->texts = nl_memory_check(reallocarray(set->texts, set->capacity, sizeof *set->texts));
    free(set->slots);
    set->slot_count = 2 * set->capacity;
    set->slots = nl_memory_check(calloc(set->slot_count, sizeof *set->slots));
    for (size_t i = 0; i < set->count; i++)
        *find_slot(set, set->texts[i]) = (uint32_t)i + 1;
}

size_t text_set_find(const text_set *set, nl_string text)
{
    uint32_t *slot = set->slot_count > 0 ? find_slot(set, text) : NULL;
    return slot != NULL && *slot != 0 ? *slot - 1 : SIZE_MAX;
}

size_t text_set_add(text_set *set, nl_string text, bool *added)
{
    if (set->count == set->capacity)
        text_set_grow(set);
    uint32_t *slot = find_slot(set, text);
    *added = *slot == 0;
    if (*added) {
        char *copy = nl_memory_check(malloc(text.size + 1));
        if (text.size > 0)
            memcpy(copy, text.data, text.size);
        set->texts[set->count++] = (nl_string){copy, text.size};
        *slot = (uint32_t)set->count;
    }
    return *slot - 1;
}

void text_set_clear(text_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free((char *)set->texts[i].data);
    set->count = 0;
    if (set->slot_count > 0)
        memset(set->slots, 0, set->slot_count * sizeof *set->slots);
}

void text_set_free(text_set *set)
{
    text_set_clear(set);
    free(set->texts);
    free(set->slots);
}
