/*
 * Sort keys: fields and their order.
 *
 * The user gives a key as "-k FIELD[:OPTIONS]". The options are t (time), n (number), s (text) and r (descending).
 * Without t, n and s, numbers come before text; numbers are compared by value, and text by bytes. Records without the
 * field come first, or last with r. Only one thread at a time may change a key.
 */
#ifndef NLSORT_KEY_H
#define NLSORT_KEY_H

#include <netlogger.h>

typedef struct key key;

/* Returns a key that orders records by time until the first call of key_add. Free with key_free. */
key *key_new(void);
void key_free(key *k);

/* Adds a field from `text`, FIELD[:OPTIONS]. Returns false if `text` is invalid. */
bool key_add(key *k, const char *text);

/* Reverses the order (-r). The sort remains stable. */
void key_set_reverse(key *k, bool reverse);

/* Returns whether the key consists only of the time. */
bool key_is_time(const key *k);

/*
 * Appends the encoded key of a record to `out`. The order of encoded keys under memcmp is the order of their records. A
 * key comes before a longer key that begins with the same bytes.
 */
void key_encode(const key *k, const nl_record *record, nl_buffer *out);

#endif
