/*
 * Makes unique keys for the fields of a record, for JSON, CSV and OTLP.
 *
 * The keys of the standard fields are their BP names: ts, event, level, host, prog. The key of another field is its
 * name. The second field with the same name has the key NAME#2, and so on. The first field that has the name of a
 * standard field in ULM or BP (such as ts, DATE or HOST) has the key NAME#2. Names cannot contain "#".
 */
#ifndef NETLOGGER_CONVERT_KEYS_H
#define NETLOGGER_CONVERT_KEYS_H

#include "program/encoding.h"

#include <netlogger.h>

typedef enum member { MEMBER_NONE, MEMBER_TIME, MEMBER_EVENT, MEMBER_LEVEL, MEMBER_HOST, MEMBER_PROG } member;

/* Returns the standard field with this name in ULM or BP, or MEMBER_NONE. */
member member_of(nl_string name);

/* Counts the names in a record. Initialize the structure with zeros. Only one thread at a time may use it. */
typedef struct keys {
    struct keys_slot *slots;
    size_t slot_count; /* a power of two */
    uint32_t generation;
    uint64_t seed;
} keys;

/* Begins a record. */
void keys_begin(keys *k, size_t field_count);

/*
 * Counts a field of the record. Returns its number among the fields with the same name; the first number is 1. The
 * bytes of the name must stay valid until the next record.
 */
uint32_t keys_count(keys *k, nl_string name);
void keys_free(keys *k);

/* Appends the key of a field. */
void keys_put(keys *k, nl_string name, nl_buffer *out);

/*
 * Returns the name in a key, which is the key without a "#" and digits at its end. Sets *repeated to whether the key
 * ends with these characters.
 */
nl_string key_name(nl_string key, bool *repeated);

#endif
