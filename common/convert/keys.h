/*
 * Unique keys for the fields of a record, for JSON, CSV and OTLP.
 *
 * The keys of the standard fields are their BP names: ts, event, level, host, prog. The key of another field is its
 * name; the second field with that name is NAME#2, and so on. A field with the name of a standard field in ULM or BP
 * (ts, DATE, HOST ...) begins with #2. Names cannot contain "#".
 */
#ifndef NETLOGGER_CONVERT_KEYS_H
#define NETLOGGER_CONVERT_KEYS_H

#include "program/encoding.h"

#include <netlogger.h>

typedef enum member { MEMBER_NONE, MEMBER_TIME, MEMBER_EVENT, MEMBER_LEVEL, MEMBER_HOST, MEMBER_PROG } member;

/* Returns the standard field with this name in ULM or BP. */
member member_of(nl_string name);

/* Counts the names in a record. Initialize it with zeros. One thread at a time. */
typedef struct keys {
    struct keys_slot *slots;
    size_t slot_count; /* a power of two */
    uint32_t generation;
    uint64_t seed;
} keys;

/* Begins a record. */
void keys_begin(keys *k, size_t field_count);

/*
 * Returns the number, from 1, of the field among the fields with its name. The name must be valid until the next
 * record.
 */
uint32_t keys_count(keys *k, nl_string name);
void keys_free(keys *k);

/* Appends the key of a field. */
void keys_put(keys *k, nl_string name, nl_buffer *out);

/* Returns the name in a key, without "#" and digits at the end; *repeated: the key had them. */
nl_string key_name(nl_string key, bool *repeated);

#endif
