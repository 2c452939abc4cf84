/* How often each of many hashes was met: a table that grows. */
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

/* A hash of bytes (FNV-1a, and its upper half mixed in). */
uint64_t seen_hash(const char *data, size_t size);

void seen_add(seen *s, uint64_t hash);

/* Takes one away. False when there is none left. */
bool seen_take(seen *s, uint64_t hash);
void seen_free(seen *s);

#endif
