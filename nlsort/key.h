/*
 * Sort keys: which fields, and how they compare.
 *
 * "-k FIELD[:opts]" with t (time), n (number), s (text), r (descending). Without a type a field is compared by its
 * content: numbers by value and before all text, text by its bytes. A record without the field comes first.
 */
#ifndef NLSORT_KEY_H
#define NLSORT_KEY_H

#include <netlogger.h>

typedef struct key key;

/* No keys: records are ordered by time. Freed with key_free. */
key *key_new(void);
void key_free(key *k);

/* Adds a field. Returns false when text is invalid. */
bool key_add(key *k, const char *text);

/* Turns the whole order round (-r). Records of equal keys stay in the order in which they came. */
void key_set_reverse(key *k, bool reverse);

/* Whether records are ordered by their time alone. */
bool key_is_time(const key *k);

/*
 * Appends a record's key to out: bytes that compare with memcmp as the records do, a key that is a prefix of another
 * before it.
 */
void key_encode(const key *k, const nl_record *record, nl_buffer *out);

#endif
