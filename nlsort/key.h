/*
 * Sort keys: fields and their order.
 *
 * "-k FIELD[:OPTIONS]" with t (time), n (number), s (text), r (descending). Without a type, numbers precede text,
 * numbers order by value and text by bytes. Records without the field come first. Only one thread may change a key.
 */
#ifndef NLSORT_KEY_H
#define NLSORT_KEY_H

#include <netlogger.h>

typedef struct key key;

/* Returns a key that orders by time until key_add. Free with key_free. */
key *key_new(void);
void key_free(key *k);

/* Adds a field. Returns false when text is invalid. */
bool key_add(key *k, const char *text);

/* Reverses the order (-r). Records with equal keys keep their order. */
void key_set_reverse(key *k, bool reverse);

/* Returns whether the key is the time only. */
bool key_is_time(const key *k);

/* Appends the key of a record: bytes with the order (by memcmp) of the records. A key precedes its extensions. */
void key_encode(const key *k, const nl_record *record, nl_buffer *out);

#endif
