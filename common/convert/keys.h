/*
 * Makes unique keys for the fields of a record, for JSON, CSV and OTLP.
 *
 * The keys of the standard fields are their BP names: ts, event, level, host, prog. The key of another field is its
 * name; the second field with that name is NAME#2, and so on. If a field has the name of a standard field in ULM or BP
 * (ts, DATE, HOST ...), its first key already ends with #2. Names cannot contain "#".
 */
#ifndef NETLOGGER_CONVERT_KEYS_H
#define NETLOGGER_CONVERT_KEYS_H

#include "program/encoding.h"

#include <netlogger.h>

typedef enum member { MEMBER_NONE, MEMBER_TIME, MEMBER_EVENT, MEMBER_LEVEL, MEMBER_HOST, MEMBER_PROG } member;

/* Returns the standard field with this name in ULM or BP. */
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
 * Returns the position of the field among the fields with the same name; the first position is 1. The name must be
 * valid until the next record.
 */
uint32_t keys_count(keys *k, nl_string name);
void keys_free(keys *k);

/* Appends the key of a field. */
void keys_put(keys *k, nl_string name, nl_buffer *out);

/* Returns the name in a key, without "#" and digits at the end. Sets *repeated to whether the key had them. */
nl_string key_name(nl_string key, bool *repeated);

#endif
