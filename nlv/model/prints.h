/*
 * Fingerprints of a log. nlv computes about one for each megabyte while it scans the log. The fingerprints show whether
 * the log has changed since nlv wrote its index. A prints struct has no locks.
 */
#ifndef NLV_PRINTS_H
#define NLV_PRINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRINTS_PIECE = 1 << 20 /* size in bytes of a piece that nlv reads only for its fingerprint */ };

typedef struct print {
    uint64_t end, hash; /* end offset, and hash of the bytes since the previous end; 0: unknown */
} print;

typedef struct prints {
    print *all;
    size_t count, capacity;
} prints;

void prints_free(prints *p); /* frees the members, not the struct */

/* Returns the number of bytes of the log that the fingerprints cover. */
static inline uint64_t prints_end(const prints *p)
{
    return p->count > 0 ? p->all[p->count - 1].end : 0;
}

/* Returns the fingerprint of a piece; never 0. */
uint64_t prints_hash(const char *data, size_t size);

/* Adds the bytes [from, to) with the fingerprint `hash`, unless the fingerprints already cover these bytes. If the
 * bytes are few or do not follow the covered bytes, stores their fingerprint as unknown. */
void prints_add(prints *p, uint64_t from, uint64_t to, uint64_t hash);

/* Reads the bytes that have no fingerprints from the file, and adds their fingerprints. Returns false on failure. */
bool prints_complete(prints *p, int fd);

/* Returns whether the bytes of the fingerprint with the index `piece` are unchanged in the file. */
bool prints_is_same(const prints *p, size_t piece, int fd);

#endif
