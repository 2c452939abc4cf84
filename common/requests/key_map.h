/*
 * Maps 64-bit keys other than 0 to 64-bit values. The value of a new key is 0.
 *
 * The map is an open-addressing table with linear probing (Knuth, The Art of Computer Programming, volume 3, section
 * 6.4, algorithms L and R). Keys from logs must be hashes with a secret seed; otherwise, an attacker could choose keys
 * that make every access slow. {0} is an empty map. Only one thread at a time may use a map.
 */
#ifndef NETLOGGER_REQUESTS_KEY_MAP_H
#define NETLOGGER_REQUESTS_KEY_MAP_H

#include <stddef.h>
#include <stdint.h>

typedef struct key_map_slot {
    uint64_t key; /* 0: the slot is free */
    uint64_t value;
} key_map_slot;

typedef struct key_map {
    key_map_slot *slots;
    size_t count;
    size_t capacity; /* number of allocated slots */
    unsigned shift;  /* the first 2^(64 - shift) slots are in use */
} key_map;

/* Empties the map and prepares it for `expected` keys. */
void key_map_reset(key_map *m, size_t expected);

/* Frees the map's memory. The map is empty afterwards. */
void key_map_free(key_map *m);

/* Doubles the number of slots. */
void key_map_grow(key_map *m);

/* Removes a key, which may be absent. */
void key_map_remove(key_map *m, uint64_t key);

/* Returns the index of the slot of a key, or of the free slot where the key would be added. The map must have slots. */
static inline size_t key_map_index(const key_map *m, uint64_t key)
{
    size_t mask = SIZE_MAX >> (m->shift + 8 * sizeof(size_t) - 64);
    size_t at = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> m->shift);
    while (m->slots[at].key != 0 && m->slots[at].key != key)
        at = (at + 1) & mask;
    return at;
}

/* Returns the value of a key, or NULL if the key is absent. The pointer is valid until the next addition or removal. */
static inline uint64_t *key_map_find(const key_map *m, uint64_t key)
{
    key_map_slot *slot = m->count > 0 ? &m->slots[key_map_index(m, key)] : NULL;
    return slot != NULL && slot->key != 0 ? &slot->value : NULL;
}

/* Like key_map_find, but adds the key if it is absent. */
static inline uint64_t *key_map_add(key_map *m, uint64_t key)
{
    uint64_t *known = key_map_find(m, key);
    if (known != NULL)
        return known;
    if (m->shift == 0 || m->count >= (size_t)1 << (63 - m->shift))
        key_map_grow(m);
    key_map_slot *slot = &m->slots[key_map_index(m, key)];
    slot->key = key;
    m->count++;
    return &slot->value;
}

#endif
