/*
 * Maps names of events, hosts and programs to numbers from 0. A name gets the number NAMES_OTHERS if there are already
 * NAMES_MAX names, or if the total size of the texts would exceed NAMES_BYTES_MAX.
 *
 * Any thread may add and read names. Texts stay at the same address. A name_cache belongs to one thread.
 */
#ifndef NLV_NAMES_H
#define NLV_NAMES_H

#include <netlogger.h>

enum {
    NAMES_MAX = 0xfffe,
    NAMES_OTHERS = 0xfffe,
    NAMES_NONE = 0xffff,
    NAMES_BYTES_MAX = 16 << 20,
    NAME_CACHE_SLOTS = 512
};

typedef struct names names;

names *names_new(void);
void names_free(names *n);

/* Returns the number of a name. Adds the name if it is new. Returns NAMES_NONE if `text` has no data. */
uint16_t names_put(names *n, nl_string text);

/* Returns the number of a name, or NAMES_NONE if the name has no number. */
uint16_t names_find(names *n, const char *text);

/* Returns the text of a name, with blanks in place of NUL bytes; "" for NAMES_NONE, "(others)" for NAMES_OTHERS. */
const char *names_text(const names *n, uint16_t number);

size_t names_count(const names *n);

/* The names that a thread has looked up recently. Initially all zero. */
typedef struct name_cache {
    struct {
        const char *text; /* NULL: empty */
        uint32_t size;
        uint16_t number;
    } slots[NAME_CACHE_SLOTS];
} name_cache;

/* Like names_put, but needs the lock only for texts that are not in the cache. */
uint16_t names_put_cached(names *n, name_cache *cache, nl_string text);

#endif
