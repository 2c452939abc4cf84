/* A growing table that counts hashes. Not thread-safe. */
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

/* Returns the FNV-1a hash of bytes, with the upper half mixed into the lower half. Never returns 0. */
uint64_t seen_hash(const char *data, size_t size);

void seen_add(seen *s, uint64_t hash);

/* Decrements the count of a hash and returns true, or returns false if the count is 0. */
bool seen_take(seen *s, uint64_t hash);
void seen_free(seen *s);

#endif
