#include "config.h"

#include "requests/key_map.h"

#include <glib.h>
#include <string.h>

enum { BITS_MIN = 4 };

static size_t slot_count(const key_map *m)
{
    return m->shift == 0 ? 0 : (size_t)1 << (64 - m->shift);
}

void key_map_reset(key_map *m, size_t expected)
{
    unsigned bits = BITS_MIN;
    while ((size_t)1 << bits < 2 * expected)
        bits++;
    m->shift = 64 - bits;
    m->count = 0;
    if (slot_count(m) > m->capacity) {
        g_free(m->slots);
        m->capacity = slot_count(m);
        m->slots = g_new(key_map_slot, m->capacity);
    }
    memset(m->slots, 0, slot_count(m) * sizeof *m->slots);
}

void key_map_free(key_map *m)
{
    g_free(m->slots);
    *m = (key_map){0};
}

void key_map_grow(key_map *m)
{
    key_map larger = {0};
    key_map_reset(&larger, slot_count(m));
    for (size_t i = 0; i < slot_count(m); i++)
        if (m->slots[i].key != 0)
            *key_map_add(&larger, m->slots[i].key) = m->slots[i].value;
    key_map_free(m);
    *m = larger;
}

void key_map_remove(key_map *m, uint64_t key)
{
    if (m->count == 0)
        return;
    size_t mask = slot_count(m) - 1, hole = key_map_index(m, key);
    if (m->slots[hole].key == 0)
        return;
    m->count--;
    for (size_t at = (hole + 1) & mask; m->slots[at].key != 0; at = (at + 1) & mask) {
        size_t home = (size_t)((m->slots[at].key * UINT64_C(0x9e3779b97f4a7c15)) >> m->shift);
        if (((at - home) & mask) < ((at - hole) & mask))
            continue; /* the key must not move before its first slot */
        m->slots[hole] = m->slots[at];
        hole = at;
    }
    m->slots[hole] = (key_map_slot){0};
}
