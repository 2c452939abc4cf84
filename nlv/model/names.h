/*
 * Names of events, hosts and programs as numbers from 0 on. Every name beyond the first NAMES_MAX, and every name that
 * would make the texts longer than NAMES_BYTES_MAX in all, gets the number NAMES_OTHERS.
 *
 * Any thread may add and read names; texts never move. A name_cache belongs to one thread.
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

/* Returns the number of a name, which is added if it is new; NAMES_NONE if there is no string. */
uint16_t names_put(names *n, nl_string text);

/* NAMES_NONE if the name was not added. */
uint16_t names_find(names *n, const char *text);

/* Returns the text of a name, with blanks in place of NUL bytes; "" for NAMES_NONE. */
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

/* Like names_put, usually without a lock. */
uint16_t names_put_cached(names *n, name_cache *cache, nl_string text);

#endif
