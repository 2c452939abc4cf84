/* A growing table that counts hashes. One thread. */
#ifndef NLTOOLS_ARCHIVE_SEEN_H
#define NLTOOLS_ARCHIVE_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct seen {
    struct seen_slot {
        uint64_t hash;
        uint32_t count;
    } * slots;
    size_t capacity, used;
} seen;

/* Returns a hash of bytes: FNV-1a with the upper half mixed in. */
uint64_t seen_hash(const char *data, size_t size);

void seen_add(seen *s, uint64_t hash);

/* Decrements the count of a hash. Returns false if it is 0. */
bool seen_take(seen *s, uint64_t hash);
void seen_free(seen *s);

#endif
