/*
 * Fingerprints of what was read of a log, a piece of about a megabyte each, taken while it is scanned: by them an index
 * that was made of it knows whether what lies between its ends is still what it was. No locks.
 */
#ifndef NLV_PRINTS_H
#define NLV_PRINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRINTS_PIECE = 1 << 20 /* bytes, of those that are read for their fingerprint alone */ };

typedef struct print {
    uint64_t end, hash; /* of the bytes from where the one before ends; hash 0: not known yet */
} print;

typedef struct prints {
    print *all;
    size_t count, capacity;
} prints;

void prints_free(prints *p); /* what it holds */

/* How much of the log they are of. */
static inline uint64_t prints_end(const prints *p)
{
    return p->count > 0 ? p->all[p->count - 1].end : 0;
}

/* The fingerprint of a piece. */
uint64_t prints_hash(const char *data, size_t size);

/*
 * Adds that of the bytes [from, to), which was made by prints_hash. What is known already is not added again; of small
 * pieces none is kept.
 */
void prints_add(prints *p, uint64_t from, uint64_t to, uint64_t hash);

/* Finds out what is not known, from the file, which is read there. False when it can't be read. */
bool prints_complete(prints *p, int fd);

/* Whether the piece is in the file as it was. */
bool prints_is_same(const prints *p, size_t piece, int fd);

#endif
