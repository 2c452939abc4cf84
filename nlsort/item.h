/*
 * An item of the general sort: the line and the key of a record. Keys are byte strings whose order is the order of the
 * records (key.h). The first eight bytes are stored as a number (the prefix). A key that consists only of the time has
 * no other bytes.
 */
#ifndef NLSORT_ITEM_H
#define NLSORT_ITEM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct item {
    uint64_t prefix; /* the first eight bytes of the key, big endian, padded with zeros */
    const char *key; /* the rest of the key */
    const char *line;
    uint32_t key_size;
    uint32_t line_size; /* including the newline */
} item;

/* Returns the first eight bytes of a key as a number. */
static inline uint64_t item_prefix(const char *key, size_t size)
{
    unsigned char bytes[8] = {0};
    memcpy(bytes, key, size < 8 ? size : 8);
    uint64_t prefix = 0;
    for (int i = 0; i < 8; i++)
        prefix = prefix << 8 | bytes[i];
    return prefix;
}

/* Returns the time in a key that consists only of the time. */
static inline int64_t item_time(const char *key, size_t size, bool reverse)
{
    uint64_t prefix = item_prefix(key, size);
    return (int64_t)((reverse ? ~prefix : prefix) ^ (UINT64_C(1) << 63));
}

/* Compares items by their keys. Returns a number less than, equal to or greater than 0, like memcmp. */
static inline int item_compare(const item *a, const item *b)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    uint32_t common = a->key_size < b->key_size ? a->key_size : b->key_size;
    int order = common == 0 ? 0 : memcmp(a->key, b->key, common);
    return order != 0 ? order : (a->key_size > b->key_size) - (a->key_size < b->key_size);
}

#endif
